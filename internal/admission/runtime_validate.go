package admission

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// RuntimeValidatePath is where the validating webhook of runtimes is served.
const RuntimeValidatePath = "/validate-runtime"

// listedJobs is how many TrainJobs a refusal lists.
const listedJobs = 10

// RuntimeValidator is the validating webhook of TrainingRuntimes and ClusterTrainingRuntimes,
// on CREATE, UPDATE and DELETE. It refuses clocks in a runtime, defaults for its TrainJobs that
// are none, and what breaks the unfinished TrainJobs that refer to it.
//
// It fails open: Trainer must be able to bring its own runtimes. The audit reports clocks that
// slipped through.
type RuntimeValidator struct {
	Index *guard.Index
	// Live reads namespaces from the API server.
	Live client.Reader
	// InUse says what becomes of what breaks unfinished TrainJobs.
	InUse guard.Mode
}

// storedRuntime is a runtime as the rules read it.
type storedRuntime struct {
	metav1.ObjectMeta
	// Spec is nil where it is absent or no object, or was not asked for.
	Spec map[string]any
}

// decodeRuntime decodes the runtime; whole numbers in its spec stay whole.
func decodeRuntime(raw []byte) (*storedRuntime, error) {
	var object struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              any `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decode runtime: %w", err)
	}
	spec, _ := object.Spec.(map[string]any)
	return &storedRuntime{ObjectMeta: object.ObjectMeta, Spec: spec}, nil
}

// decodeMetadata decodes the runtime without its spec, which is most of the work.
func decodeMetadata(raw []byte) (*storedRuntime, error) {
	var object struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decode runtime: %w", err)
	}
	return &storedRuntime{ObjectMeta: object.ObjectMeta}, nil
}

// mayDisrupt tells whether an admin lets one disruption of the runtime through.
func (r *storedRuntime) mayDisrupt() bool {
	return r.Annotations[v1alpha1.AnnotationAllowDisruption] == "true"
}

// Handle answers one admission request: all mistakes at once as Invalid (422), 403 for a
// deletion, and 400 for what it cannot decode. Where it cannot find out what uses the runtime,
// the request passes, with a warning.
func (v *RuntimeValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	var before, after *storedRuntime
	var err error
	if req.Operation == admissionv1.Delete {
		if before, err = decodeMetadata(req.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return v.judgeDeletion(ctx, req, before)
	}
	if req.Operation != admissionv1.Create {
		if before, err = decodeRuntime(req.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	if after, err = decodeRuntime(req.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if before == nil {
		return answer(req, after, append(guard.Clocks(nil, after.Spec), guard.Defaults(nil, after.Annotations)...), nil)
	}
	if !before.DeletionTimestamp.IsZero() {
		return admission.Allowed("")
	}
	errs := append(guard.Clocks(before.Spec, after.Spec), guard.Defaults(before.Annotations, after.Annotations)...)
	broken, warnings := v.judgeEdit(ctx, req, before, after)
	return answer(req, after, append(errs, broken...), warnings)
}

// judgeEdit returns what is wrong with an edit of the runtime because of the TrainJobs that use
// it, as errors or as warnings.
func (v *RuntimeValidator) judgeEdit(ctx context.Context, req admission.Request, before, after *storedRuntime) (field.ErrorList, []string) {
	// Most edits break nothing, whatever is needed of the runtime.
	if v.InUse == guard.Allow || before.mayDisrupt() ||
		len(guard.Breaks(before.Spec, after.Spec, guard.Needs{Dataset: true, Model: true})) == 0 {
		return nil, nil
	}
	users, text, err := v.usersOf(ctx, req, before)
	if err != nil {
		return nil, []string{unchecked(ctx, err)}
	}
	errs := guard.Breaks(before.Spec, after.Spec, guard.NeedsOf(users))
	if len(users) == 0 || len(errs) == 0 {
		return nil, nil
	}
	errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationAllowDisruption),
		`must be "true" before an edit that breaks unfinished TrainJobs: `+text))
	if v.InUse == guard.Warn {
		warnings := make([]string, len(errs))
		for i, err := range errs {
			warnings[i] = err.Error()
		}
		return nil, warnings
	}
	return errs, nil
}

// judgeDeletion refuses to delete a runtime that unfinished TrainJobs use. The end of a
// namespace is never held up.
func (v *RuntimeValidator) judgeDeletion(ctx context.Context, req admission.Request, runtime *storedRuntime) admission.Response {
	if v.InUse == guard.Allow || runtime.mayDisrupt() || !runtime.DeletionTimestamp.IsZero() {
		return admission.Allowed("")
	}
	users, text, err := v.usersOf(ctx, req, runtime)
	if err != nil {
		return admission.Allowed("").WithWarnings(unchecked(ctx, err))
	}
	if len(users) == 0 || v.terminating(ctx, runtime.Namespace) {
		return admission.Allowed("")
	}
	text = fmt.Sprintf("%s; Trainer refuses every change of a TrainJob whose runtime is gone, also to suspend it: "+
		"delete these TrainJobs or let them finish first, or annotate the runtime with %s=true to delete it all the same",
		text, v1alpha1.AnnotationAllowDisruption)
	if v.InUse == guard.Warn {
		return admission.Allowed("").WithWarnings(text)
	}
	return admission.Denied(text)
}

// usersOf returns the unfinished TrainJobs that use the stored runtime, up to listedJobs of
// them read live, and a text that lists them. It goes by the names in the object: a request
// for a whole collection has none.
func (v *RuntimeValidator) usersOf(ctx context.Context, req admission.Request, stored *storedRuntime) ([]*trainer.TrainJob, string, error) {
	runtime := guard.Runtime{Kind: req.Kind.Kind, Namespace: stored.Namespace, Name: stored.Name}
	indexed, err := v.Index.Users(ctx, runtime)
	if err != nil {
		return nil, "", err
	}
	users, rest, err := v.Index.Confirm(ctx, indexed, listedJobs)
	if err != nil || len(users) == 0 {
		return nil, "", err
	}
	names := make([]string, len(users), len(users)+1)
	for i := range users {
		names[i] = users[i].Namespace + "/" + users[i].Name
	}
	if rest > 0 {
		names = append(names, fmt.Sprintf("and %d more", rest))
		users = append(users, indexed[len(indexed)-rest:]...)
	}
	noun := "TrainJobs"
	if len(users) == 1 {
		noun = "TrainJob"
	}
	return users, fmt.Sprintf("%s is in use by %d unfinished %s: %s", runtime, len(users), noun, strings.Join(names, ", ")), nil
}

// terminating tells whether the namespace is being deleted; one that cannot be read is not.
func (v *RuntimeValidator) terminating(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := v.Live.Get(ctx, types.NamespacedName{Name: name}, namespace)
	return apierrors.IsNotFound(err) || err == nil && !namespace.DeletionTimestamp.IsZero()
}

// unchecked is the warning where it cannot be found out what uses a runtime.
func unchecked(ctx context.Context, err error) string {
	log.FromContext(ctx).Error(err, "could not find out which TrainJobs use a runtime; its change passes")
	return "Signalbox could not find out which TrainJobs use this runtime: " + err.Error()
}

// answer refuses a runtime with all that is wrong with it, or lets it pass with warnings.
func answer(req admission.Request, runtime *storedRuntime, errs field.ErrorList, warnings []string) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("").WithWarnings(warnings...)
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, cmp.Or(runtime.Name, runtime.GenerateName), errs).Status()
	response := admission.Denied("")
	response.Result = &status
	return response.WithWarnings(warnings...)
}
