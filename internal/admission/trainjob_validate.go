package admission

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// TrainJobValidatePath is where the validating webhook of TrainJobs is served.
const TrainJobValidatePath = "/validate-trainjob"

// TrainJobValidator is the validating webhook of TrainJobs, on CREATE and UPDATE. It refuses
// deadlines out of bounds and changes of a deadline.
//
// It fails closed, for the same requests as the mutating webhook: a deadline that slipped
// past could not be corrected later, being immutable.
type TrainJobValidator struct{}

// Handle answers one admission request: all mistakes at once as Invalid (422), and 400 for
// what it cannot decode. A TrainJob that is being deleted is never refused.
func (*TrainJobValidator) Handle(_ context.Context, req admission.Request) admission.Response {
	before, after, err := decodeTrainJobs(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	deleting := before != nil && !before.DeletionTimestamp.IsZero()
	if !after.ManagedByTrainer() || deleting {
		return admission.Allowed("")
	}
	if errs := deadline.Validate(before, after); len(errs) > 0 {
		return invalid(after, errs)
	}
	return admission.Allowed("").WithWarnings(deadline.Warnings(after)...)
}

// invalid refuses the TrainJob with all that is wrong with it.
func invalid(job *trainer.TrainJob, errs field.ErrorList) admission.Response {
	name := job.Name
	if name == "" {
		name = job.GenerateName
	}
	status := apierrors.NewInvalid(trainer.GroupVersion.WithKind(trainer.TrainJobKind).GroupKind(), name, errs).Status()
	response := admission.Denied("")
	response.Result = &status
	return response
}
