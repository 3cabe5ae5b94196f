package admission

import (
	"context"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// RuntimeMutatePath is where the mutating webhook of runtimes is served.
const RuntimeMutatePath = "/mutate-runtime"

// RuntimeMutator is the mutating webhook of TrainingRuntimes and ClusterTrainingRuntimes, on
// CREATE and UPDATE. It keeps the revision of the runtime's content in the annotations of its
// JobSet template, from where Trainer copies it to the JobSets that it builds.
//
// An edit that would break unfinished TrainJobs and that an admin lets through by annotation
// takes that annotation away, so that it serves once.
//
// It fails open: Trainer must be able to bring its own runtimes, and the reconciler stamps
// what slipped through.
type RuntimeMutator struct{}

// Handle answers one admission request. It refuses only what it cannot decode (400).
func (*RuntimeMutator) Handle(_ context.Context, req admission.Request) admission.Response {
	// Into any, where whole numbers stay whole: the revision must not depend on how they are
	// decoded.
	var runtime struct {
		Spec any `json:"spec"`
	}
	if err := json.Unmarshal(req.Object.Raw, &runtime); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode runtime: %w", err))
	}
	spec, _ := runtime.Spec.(map[string]any)
	template, found := spec["template"].(map[string]any)
	if !found {
		// Nothing that could run.
		return admission.Allowed("")
	}
	patch, err := spent(req, spec)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	revision, stamped := snapshot.Stamped(spec)
	if stamped {
		return admission.Patched("", patch...)
	}
	return admission.Patched("", append(patch, stampPatch(template, revision)...)...)
}

// stampPatch returns the patch that puts the revision on the JobSet template, and takes away
// the source that a runtime has which was made from a snapshot. What is of another type than
// it should be is left to the API server to refuse.
func stampPatch(template map[string]any, revision string) []jsonpatch.Operation {
	const path = "/spec/template/metadata"
	stamp := map[string]string{v1alpha1.AnnotationRuntimeRevision: revision}
	metadata, isObject := template["metadata"].(map[string]any)
	if metadata == nil {
		if template["metadata"] != nil && !isObject {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, map[string]any{"annotations": stamp})}
	}
	annotations, isObject := metadata["annotations"].(map[string]any)
	if annotations == nil {
		if metadata["annotations"] != nil && !isObject {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path+"/annotations", stamp)}
	}
	key := func(name string) string { return path + "/annotations/" + pointerToken.Replace(name) }
	patch := []jsonpatch.Operation{jsonpatch.NewOperation("add", key(v1alpha1.AnnotationRuntimeRevision), revision)}
	if _, copied := annotations[v1alpha1.AnnotationRuntimeSource]; copied {
		patch = append(patch, jsonpatch.NewOperation("remove", key(v1alpha1.AnnotationRuntimeSource), nil))
	}
	return patch
}

// spent returns the patch that takes away the annotation by which an admin lets one edit
// through, when this is such an edit: the stored annotation counts, so the edit comes after it.
func spent(req admission.Request, spec map[string]any) ([]jsonpatch.Operation, error) {
	if req.Operation != admissionv1.Update {
		return nil, nil
	}
	before, err := decodeMetadata(req.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	after, err := decodeMetadata(req.Object.Raw)
	if err != nil {
		return nil, err
	}
	if !before.mayDisrupt() {
		return nil, nil
	}
	if before, err = decodeRuntime(req.OldObject.Raw); err != nil {
		return nil, err
	}
	if len(guard.Breaks(before.Spec, spec, guard.Needs{Dataset: true, Model: true})) == 0 {
		return nil, nil
	}
	return annotationPatch(after.Annotations, map[string]*string{v1alpha1.AnnotationAllowDisruption: nil}), nil
}
