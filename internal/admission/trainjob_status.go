package admission

import (
	"context"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// TrainJobStatusPath is where the mutating webhook of the status of TrainJobs is served.
const TrainJobStatusPath = "/mutate-trainjob-status"

// TrainJobStatusMutator is the mutating webhook of the status of TrainJobs, on UPDATE. It
// keeps terminal what is terminal, and takes out a deadline that Trainer finds exceeded too
// early.
//
// It fails open: a blocked status write would hide the state of every job, and the
// reconciler sets an end by a deadline again when it is lost. The webhook configuration calls it only for writes
// that drop or alter a terminal condition or add one by a deadline.
type TrainJobStatusMutator struct {
	Clock clock.PassiveClock
	// TrainerUser is the user name of Trainer's controller; empty lets its deadlines pass
	// unchecked.
	TrainerUser string
}

// Handle answers one admission request. It refuses only what it cannot decode (400).
func (m *TrainJobStatusMutator) Handle(ctx context.Context, req admission.Request) admission.Response {
	stored, written, err := decodeStatus(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	byTrainer := m.TrainerUser != "" && req.UserInfo.Username == m.TrainerUser
	want := deadline.Conditions(stored, written, byTrainer, m.Clock.Now())
	if equality.Semantic.DeepEqual(want, written) {
		return admission.Allowed("")
	}
	log.FromContext(ctx).Info("corrected the status of a TrainJob", "user", req.UserInfo.Username,
		"written", summary(written), "kept", summary(want))
	return admission.Patched("", conditionsPatch(req.Object.Raw, want)...)
}

// conditionsPatch returns the JSON patch that sets the conditions of the object. A condition
// has no fields but those of its type, so that nothing is lost.
func conditionsPatch(raw []byte, conditions []metav1.Condition) []jsonpatch.Operation {
	var object struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(raw, &object); err != nil || object.Status == nil {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/status", trainer.TrainJobStatus{Conditions: conditions})}
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/status/conditions", conditions)}
}

// summary names conditions for the log.
func summary(conditions []metav1.Condition) []string {
	names := make([]string, 0, len(conditions))
	for _, c := range conditions {
		names = append(names, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return names
}
