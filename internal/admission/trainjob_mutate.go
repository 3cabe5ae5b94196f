// Package admission holds the webhooks, one file each. They decode only the fields that
// the rules read, decide with the pure parts of the other packages, and answer with a patch
// of Signalbox's own keys: an object never makes a typed round trip, which would drop the
// fields that these sources do not know.
package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// TrainJobMutatePath is where the mutating webhook of TrainJobs is served.
const TrainJobMutatePath = "/mutate-trainjob"

// TrainJobMutator is the mutating webhook of TrainJobs, on CREATE and UPDATE. It keeps the
// protected annotations: what a client sends for them is dropped or put back, and the stamp
// of the present active period is written when that period starts.
//
// It fails closed: a TrainJob that starts without its stamp could end early or late. The
// webhook configuration calls it only where one of these annotations can be at stake, so
// that labels, status and finalizers do not depend on it.
type TrainJobMutator struct {
	Clock clock.PassiveClock
}

// Handle answers one admission request. It refuses only what it cannot decode (400).
func (m *TrainJobMutator) Handle(_ context.Context, req admission.Request) admission.Response {
	var after trainer.TrainJob
	if err := json.Unmarshal(req.Object.Raw, &after); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode TrainJob: %w", err))
	}
	var before *trainer.TrainJob
	if req.Operation == admissionv1.Update {
		before = &trainer.TrainJob{}
		if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode stored TrainJob: %w", err))
		}
	}
	return admission.Patched("", annotationPatch(after.Annotations, m.protected(before, &after))...)
}

// protected returns the value that each protected annotation must have, "" for absent.
func (m *TrainJobMutator) protected(before, after *trainer.TrainJob) map[string]string {
	want := make(map[string]string, len(v1alpha1.ProtectedAnnotations()))
	for _, key := range v1alpha1.ProtectedAnnotations() {
		want[key] = ""
		if before != nil && after.ManagedByTrainer() {
			want[key] = before.Annotations[key]
		}
	}
	if after.ManagedByTrainer() {
		want[v1alpha1.AnnotationResumedAt] = deadline.ResumedAt(before, after, m.Clock.Now())
	}
	return want
}
