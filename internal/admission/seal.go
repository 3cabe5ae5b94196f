package admission

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// seal sets in want the annotations that seal the runtime into the TrainJob, when this write
// makes it active for the first time, and the name of the runtime from its creation on. A
// TrainJob that is sealed stays as it is. It returns a warning when the TrainJob is too large
// to be sealed, and as refusal that there is no runtime.
func (m *TrainJobMutator) seal(ctx context.Context, req admission.Request, stored decoded, after *trainer.TrainJob, runtime func() (*snapshot.Packed, error), want map[string]*string, now time.Time) (warning string, refusal *field.Error, err error) {
	ref, before := after.Spec.RuntimeRef, stored.TrainJob
	// A reference without a name the API server refuses, one of another kind Trainer.
	if ref.Name == "" || !ref.Known() || want[v1alpha1.AnnotationRuntimeSnapshot] != nil || before != nil && !before.DeletionTimestamp.IsZero() {
		return "", nil, nil
	}
	starts := after.Active() && (before == nil || !before.Active())
	switch {
	case m.Unsealed && (starts || before == nil):
		// As one whose creation was not seen: should TrainJobs be sealed again, a later resume takes
		// what Trainer keeps.
		want[v1alpha1.AnnotationRuntimeSource] = nil
		return "", nil, nil
	case !starts && before == nil:
		// What it will run on is decided when it starts.
		want[v1alpha1.AnnotationRuntimeSource] = ptr.To(ref.GroupVersionKind().Kind + "/" + ref.Name)
		return "", nil, nil
	case !starts && before.Active():
		// It started while the webhook was away: its first start is over.
		want[v1alpha1.AnnotationRuntimeSource] = nil
		return "", nil, nil
	case !starts:
		return "", nil, nil
	}
	packed, err := m.runtimeOf(ctx, stored, runtime)
	if apierrors.IsNotFound(err) {
		m.count(req, snapshot.RuntimeMissing)
		return "", field.NotFound(field.NewPath("spec", "runtimeRef"), ref.GroupVersionKind().Kind+"/"+ref.Name), nil
	}
	if err != nil {
		return "", nil, err
	}
	size, annotations := len(req.Object.Raw), 0
	for key, value := range after.Annotations {
		if _, replaced := want[key]; replaced {
			size -= len(key) + len(value)
			continue
		}
		annotations += len(key) + len(value)
	}
	if limit, text := packed.TooLarge(size, annotations); text != "" {
		m.count(req, limit)
		// Without this, a later resume takes what Trainer keeps, not the runtime of then.
		want[v1alpha1.AnnotationRuntimeSource] = nil
		return fmt.Sprintf("the runtime is not sealed into this TrainJob: %s; the TrainJob runs on what Trainer keeps of it", text), nil, nil
	}
	m.count(req, snapshot.Sealed)
	for key, value := range packed.Seal(now) {
		want[key] = &value
	}
	return "", nil, nil
}

// runtimeOf returns what to seal into a TrainJob that becomes active: the runtime as it is
// now. Of a TrainJob that has perhaps been active before, unseen by the webhook, what was kept
// of its runtime comes first. The error is NotFound when there is neither.
func (m *TrainJobMutator) runtimeOf(ctx context.Context, stored decoded, runtime func() (*snapshot.Packed, error)) (*snapshot.Packed, error) {
	before := stored.TrainJob
	var kept *snapshot.Snapshot
	var err error
	switch {
	case before == nil:
	case before.Annotations[v1alpha1.AnnotationRuntimeSource] == "":
		// Its creation was not seen.
		kept, err = m.Runtimes.Kept(ctx, before)
	case resumedBefore(stored):
		// A start was not seen. What Trainer keeps may be from before that start.
		kept, err = m.Runtimes.Filed(ctx, before)
	}
	if err != nil {
		return nil, err
	}
	if kept != nil {
		return kept.Pack(), nil
	}
	packed, missing := runtime()
	if before == nil || !apierrors.IsNotFound(missing) {
		return packed, missing
	}
	if kept, err = m.Runtimes.Kept(ctx, before); err != nil {
		return nil, err
	}
	if kept == nil {
		return nil, missing
	}
	return kept.Pack(), nil
}

// trainersLook is how long Trainer takes, as a rule, for its first look at a TrainJob. Where it
// took longer, a read more is made.
const trainersLook = time.Second

// resumedBefore tells whether the stored status of a suspended TrainJob may be that of one that
// ran: Trainer found it suspended later than when it was created.
func resumedBefore(stored decoded) bool {
	var status trainer.TrainJobStatus
	if err := decodePart(stored.status, &status); err != nil {
		return false
	}
	suspended := apimeta.FindStatusCondition(status.Conditions, trainer.ConditionSuspended)
	return suspended != nil && suspended.LastTransitionTime.Sub(stored.CreationTimestamp.Time) > trainersLook
}

// count counts what became of a seal; a dry run does not count.
func (m *TrainJobMutator) count(req admission.Request, result string) {
	if !ptr.Deref(req.DryRun, false) {
		m.Metrics.Seal(result)
	}
}
