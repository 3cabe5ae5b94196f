package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// decodeTrainJobs decodes the TrainJob of a request, and the stored one where there is one.
// They come without their status: outside of the status endpoint the API server drops what
// is written there, so that nothing in it may decide anything, not even by being broken.
func decodeTrainJobs(req admission.Request) (before, after *trainer.TrainJob, err error) {
	if after, err = decodeSpec(req.Object.Raw); err != nil {
		return nil, nil, fmt.Errorf("decode TrainJob: %w", err)
	}
	if req.Operation != admissionv1.Update {
		return nil, after, nil
	}
	if before, err = decodeSpec(req.OldObject.Raw); err != nil {
		return nil, nil, fmt.Errorf("decode stored TrainJob: %w", err)
	}
	return before, after, nil
}

func decodeSpec(raw []byte) (*trainer.TrainJob, error) {
	var object struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              trainer.TrainJobSpec `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	return &trainer.TrainJob{ObjectMeta: object.ObjectMeta, Spec: object.Spec}, nil
}

// decodeStatus decodes the stored TrainJob of a request on the status endpoint, whole, and
// the conditions that are written. Spec and metadata that come with them are not looked at:
// the API server drops them.
func decodeStatus(req admission.Request) (stored *trainer.TrainJob, written []metav1.Condition, err error) {
	stored = &trainer.TrainJob{}
	if err := json.Unmarshal(req.OldObject.Raw, stored); err != nil {
		return nil, nil, fmt.Errorf("decode stored TrainJob: %w", err)
	}
	var object struct {
		Status trainer.TrainJobStatus `json:"status"`
	}
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return nil, nil, fmt.Errorf("decode the status of a TrainJob: %w", err)
	}
	return stored, object.Status.Conditions, nil
}
