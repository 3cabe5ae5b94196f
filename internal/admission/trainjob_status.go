package admission

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"slices"

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
// It fails closed: an end that comes too early kills a job, and one that gets lost may start
// it again. The webhook configuration calls it only for writes that drop or alter a terminal
// condition or set a second one, and for those by which Trainer adds one by a deadline; the
// reconciler's own end by a deadline does not depend on it.
type TrainJobStatusMutator struct {
	Clock clock.PassiveClock
	// TrainerUser is the user name of Trainer's controller; empty lets its deadlines pass
	// unchecked.
	TrainerUser string
}

// Handle answers one admission request. It refuses only what it cannot decode (400).
func (m *TrainJobStatusMutator) Handle(ctx context.Context, req admission.Request) admission.Response {
	stored, status, err := decodeStatus(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var read trainer.TrainJobStatus
	if err := decodePart(status, &read); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the status of a TrainJob: %w", err))
	}
	written := read.Conditions
	byTrainer := m.TrainerUser != "" && req.UserInfo.Username == m.TrainerUser
	want := deadline.Conditions(stored.TrainJob, written, byTrainer, m.Clock.Now())
	if equality.Semantic.DeepEqual(want, written) {
		return admission.Allowed("")
	}
	log.FromContext(ctx).Info("corrected the status of a TrainJob", "user", req.UserInfo.Username,
		"written", summary(written), "kept", summary(want))
	patch, err := conditionsPatch(stored.status, status, want)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return admission.Patched("", patch)
}

// conditionsPatch returns the JSON patch that sets the conditions of the written status to the
// wanted ones, each as it stands there, or else in the stored one: with fields that these sources
// do not know.
func conditionsPatch(rawStored, rawWritten stdjson.RawMessage, want []metav1.Condition) (jsonpatch.Operation, error) {
	written, err := rawConditions(rawWritten)
	if err != nil {
		return jsonpatch.Operation{}, err
	}
	stored, err := rawConditions(rawStored)
	if err != nil {
		return jsonpatch.Operation{}, err
	}
	list := make([]any, 0, len(want))
	for _, condition := range want {
		for _, raw := range slices.Concat(written, stored) {
			if equality.Semantic.DeepEqual(raw.Condition, condition) {
				list = append(list, raw.fields)
				break
			}
		}
	}
	var status map[string]any
	if err := decodePart(rawWritten, &status); err != nil || status == nil {
		return jsonpatch.NewOperation("add", "/status", map[string]any{"conditions": list}), err
	}
	return jsonpatch.NewOperation("add", "/status/conditions", list), nil
}

// rawCondition is a condition and all its fields.
type rawCondition struct {
	metav1.Condition
	fields map[string]any
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *rawCondition) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &c.fields); err != nil {
		return err
	}
	return json.Unmarshal(data, &c.Condition)
}

// rawConditions decodes the conditions of a status with all their fields.
func rawConditions(raw stdjson.RawMessage) ([]rawCondition, error) {
	var status struct {
		Conditions []rawCondition `json:"conditions"`
	}
	if err := decodePart(raw, &status); err != nil {
		return nil, fmt.Errorf("decode the conditions of a TrainJob: %w", err)
	}
	return status.Conditions, nil
}

// summary names conditions for the log.
func summary(conditions []metav1.Condition) []string {
	names := make([]string, 0, len(conditions))
	for _, c := range conditions {
		names = append(names, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return names
}
