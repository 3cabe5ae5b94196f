package admission

import (
	stdjson "encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// decoded is a TrainJob of a request. To read one of a megabyte takes milliseconds, so it is done
// once: what few ask for is kept as JSON, empty where it is absent.
type decoded struct {
	// TrainJob comes without its status; nil where there is none.
	*trainer.TrainJob
	// hasSpec tells whether there is a spec at all, which every stored one has.
	hasSpec bool
	// runtimePatches is spec.runtimePatches, of whatever type.
	runtimePatches stdjson.RawMessage
	// status is of whatever type too. On the status endpoint it counts, elsewhere the API server
	// drops what is written there, so that nothing in it may decide anything, not even by being
	// broken.
	status stdjson.RawMessage
}

// decodeTrainJobs decodes the TrainJob of a request, and the stored one where there is one.
func decodeTrainJobs(req admission.Request) (before, after decoded, err error) {
	if after, err = decodeTrainJob(req.Object.Raw); err != nil {
		return decoded{}, decoded{}, fmt.Errorf("decode TrainJob: %w", err)
	}
	if req.Operation != admissionv1.Update {
		return decoded{}, after, nil
	}
	if before, err = decodeTrainJob(req.OldObject.Raw); err != nil {
		return decoded{}, decoded{}, fmt.Errorf("decode stored TrainJob: %w", err)
	}
	return before, after, nil
}

// trainJob and spec are what is read of a TrainJob.
type (
	trainJob struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              *spec              `json:"spec"`
		Status            stdjson.RawMessage `json:"status"`
	}
	spec struct {
		trainer.TrainJobSpec
		RuntimePatches stdjson.RawMessage `json:"runtimePatches"`
	}
)

func decodeTrainJob(raw []byte) (decoded, error) {
	var object trainJob
	if err := json.Unmarshal(raw, &object); err != nil {
		return decoded{}, err
	}
	d := decoded{TrainJob: &trainer.TrainJob{ObjectMeta: object.ObjectMeta}, status: object.Status}
	if object.Spec != nil {
		d.hasSpec, d.Spec, d.runtimePatches = true, object.Spec.TrainJobSpec, object.Spec.RuntimePatches
	}
	return d, nil
}

// decodeStatus decodes the stored TrainJob of a request on the status endpoint, whole, and
// the status that is written. Spec and metadata that come with that are not looked at: the API
// server drops them.
func decodeStatus(req admission.Request) (stored decoded, written stdjson.RawMessage, err error) {
	if stored, err = decodeTrainJob(req.OldObject.Raw); err != nil {
		return decoded{}, nil, fmt.Errorf("decode stored TrainJob: %w", err)
	}
	if err := decodePart(stored.status, &stored.Status); err != nil {
		return decoded{}, nil, fmt.Errorf("decode the status of the stored TrainJob: %w", err)
	}
	var object struct {
		Status stdjson.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return decoded{}, nil, fmt.Errorf("decode TrainJob: %w", err)
	}
	return stored, object.Status, nil
}

// decodePart decodes a part of an object that was kept as JSON. An absent one leaves the value as
// it is.
func decodePart(raw stdjson.RawMessage, value any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, value)
}
