// Package admission holds the webhooks, one file each. They decode only the fields that
// the rules read, decide with the pure parts of the other packages, and answer with a patch
// of single fields: an object never makes a typed round trip, which would drop the fields
// that these sources do not know.
package admission

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// TrainJobMutatePath is where the mutating webhook of TrainJobs is served.
const TrainJobMutatePath = "/mutate-trainjob"

// TrainJobMutator is the mutating webhook of TrainJobs, on CREATE and UPDATE. It keeps the
// protected annotations: what a client sends for them is dropped or put back, and the stamp
// of the present active period is written when that period starts, the runtime is sealed when
// the first one does. It gives a new TrainJob the deadline that its runtime or a LifecyclePolicy
// says, and puts back one that an update drops.
//
// It fails closed: a TrainJob that starts without its stamp could end early or late. The
// webhook configuration calls it only where one of these fields can be at stake, so that
// labels, status and finalizers do not depend on it.
type TrainJobMutator struct {
	Clock    clock.PassiveClock
	Runtimes *snapshot.Resolver
	Metrics  *snapshot.AdmissionMetrics
	// Unsealed leaves TrainJobs that start without a seal, as without Signalbox; those that are
	// sealed stay so.
	Unsealed bool
	// Policies finds what LifecyclePolicies say; nil for none.
	Policies *policy.Reader
	// HasActiveDeadline tells whether the API of TrainJobs has spec.activeDeadlineSeconds.
	HasActiveDeadline func(ctx context.Context) bool
}

// Handle answers one admission request. It refuses what it cannot decode (400), and the start
// of a TrainJob whose runtime does not exist (422); 500 when the runtime or the policies cannot
// be read.
func (m *TrainJobMutator) Handle(ctx context.Context, req admission.Request) admission.Response {
	stored, sent, err := decodeTrainJobs(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	before, after := stored.TrainJob, sent.TrainJob
	now := deadline.Now(before, after, m.Clock.Now())
	want := m.protected(before, after, now)
	// One read of the runtime serves all that is asked about it.
	runtime := sync.OnceValues(func() (*snapshot.Packed, error) {
		return m.Runtimes.Runtime(ctx, req.Namespace, after.Spec.RuntimeRef)
	})
	carried := deadline.SettingsOf(after)
	var warnings []string
	switch {
	case before == nil && after.ManagedByTrainer():
		carried, err = m.give(ctx, req, after, runtime, want)
	case before == nil:
		carried, err = m.takeBack(ctx, req, after, runtime)
	case after.ManagedByTrainer():
		carried, warnings = deadline.Keep(before, after)
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	patch := specPatch(sent, carried.Spec)
	want[v1alpha1.AnnotationActiveDeadlineSeconds] = carried.Annotation
	if after.ManagedByTrainer() {
		warning, refusal, err := m.seal(ctx, req, stored, after, runtime, want, now)
		switch {
		case err != nil:
			return admission.Errored(http.StatusInternalServerError, err)
		case refusal != nil:
			return invalid(after, field.ErrorList{refusal})
		case warning != "":
			warnings = append(warnings, warning)
		}
	}
	if before == nil {
		patch = append(patch, kueueTwice(sent.runtimePatches)...)
	}
	patch = append(patch, annotationPatch(after.Annotations, want)...)
	return admission.Patched("", patch...).WithWarnings(warnings...)
}

// protected returns the value that each protected annotation must have, nil for absent.
func (m *TrainJobMutator) protected(before, after *trainer.TrainJob, now time.Time) map[string]*string {
	want := make(map[string]*string, len(v1alpha1.ProtectedAnnotations())+1)
	for _, key := range v1alpha1.ProtectedAnnotations() {
		want[key] = nil
		if before == nil || !after.ManagedByTrainer() {
			continue
		}
		if value, found := before.Annotations[key]; found {
			want[key] = &value
		}
	}
	if after.ManagedByTrainer() {
		want[v1alpha1.AnnotationResumedAt] = nil
		if at := deadline.ResumedAt(before, after, now); at != "" {
			want[v1alpha1.AnnotationResumedAt] = &at
		}
	}
	return want
}
