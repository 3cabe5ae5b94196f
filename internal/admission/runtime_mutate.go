package admission

import (
	"context"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// RuntimeMutatePath is where the mutating webhook of runtimes is served.
const RuntimeMutatePath = "/mutate-runtime"

// RuntimeMutator is the mutating webhook of TrainingRuntimes and ClusterTrainingRuntimes, on
// CREATE and UPDATE. It keeps the revision of the runtime's content in the annotations of its
// JobSet template, from where Trainer copies it to the JobSets that it builds.
//
// It fails open: Trainer must be able to bring its own runtimes, and the reconciler stamps
// what slipped through.
type RuntimeMutator struct{}

// Handle answers one admission request. It refuses only what it cannot decode (400).
func (*RuntimeMutator) Handle(_ context.Context, req admission.Request) admission.Response {
	// Into a map, where whole numbers stay whole: the revision must not depend on how they
	// are decoded.
	var runtime map[string]any
	if err := json.Unmarshal(req.Object.Raw, &runtime); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode runtime: %w", err))
	}
	spec, _ := runtime["spec"].(map[string]any)
	template, found := spec["template"].(map[string]any)
	if !found {
		// Nothing that could run.
		return admission.Allowed("")
	}
	revision := snapshot.Revision(spec)
	if snapshot.Stamp(spec) == revision {
		return admission.Allowed("")
	}
	path, value := "/spec/template/metadata", any(map[string]any{"annotations": map[string]string{v1alpha1.AnnotationRuntimeRevision: revision}})
	if metadata, _ := template["metadata"].(map[string]any); metadata != nil {
		path, value = path+"/annotations", any(map[string]string{v1alpha1.AnnotationRuntimeRevision: revision})
		if annotations, _ := metadata["annotations"].(map[string]any); annotations != nil {
			path, value = path+"/"+pointerToken.Replace(v1alpha1.AnnotationRuntimeRevision), any(revision)
		}
	}
	return admission.Patched("", jsonpatch.NewOperation("add", path, value))
}
