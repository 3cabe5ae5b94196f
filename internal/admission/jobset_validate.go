package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// JobSetValidatePath is where the validating webhook of JobSets is served.
const JobSetValidatePath = "/validate-jobset"

// JobSetValidator is the validating webhook of the JobSets of TrainJobs: on CREATE, on the
// UPDATE that ends a suspension, and on a DELETE by Trainer's own account. A TrainJob that is
// finished or whose time is up gets no pods again, and one that has time left keeps those it
// has.
//
// It fails closed: pods that start are hard to take back. The webhook configuration calls it
// only for JobSets whose controller is a TrainJob, and for no deletion but Trainer's own, so
// that garbage collection, namespaces and the reconciler never depend on it.
type JobSetValidator struct {
	// TrainJobs reads live: a cached TrainJob could be one that still has time left.
	TrainJobs client.Reader
	Clock     clock.PassiveClock
	// TrainerUser is the user name of Trainer's controller; empty lets all deletions pass.
	TrainerUser string
}

// jobSet is the part of a JobSet that the rules read.
type jobSet struct {
	metav1.ObjectMeta `json:"metadata"`
}

// Handle answers one admission request: 403 with the reason, 400 for what it cannot decode,
// 500 when the TrainJob cannot be read.
func (v *JobSetValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation == admissionv1.Delete && (v.TrainerUser == "" || req.UserInfo.Username != v.TrainerUser) {
		return admission.Allowed("")
	}
	// What is stored tells whose it is: an update could drop its owner with the same stroke.
	raw := req.OldObject.Raw
	if req.Operation == admissionv1.Create {
		raw = req.Object.Raw
	}
	var object jobSet
	if err := json.Unmarshal(raw, &object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode JobSet: %w", err))
	}
	job, err := v.trainJobOf(ctx, req.Namespace, &object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if job == nil || !job.ManagedByTrainer() {
		return admission.Allowed("")
	}
	now := v.Clock.Now()
	decision := deadline.Evaluate(job, now)
	switch {
	case req.Operation == admissionv1.Delete:
		if job.Active() && deadline.Early(job, now) {
			return admission.Denied(fmt.Sprintf("TrainJob %s is not at its deadline yet", job.Name))
		}
	case job.Terminal():
		return admission.Denied(fmt.Sprintf("TrainJob %s is finished", job.Name))
	case decision.State == deadline.Expired:
		return admission.Denied(fmt.Sprintf("TrainJob %s is past its deadline", job.Name))
	}
	return admission.Allowed("")
}

// trainJobOf reads the TrainJob that controls the JobSet. It returns nil when there is none:
// no TrainJob controls it, or that TrainJob is gone, whatever has its name now.
func (v *JobSetValidator) trainJobOf(ctx context.Context, namespace string, object *jobSet) (*trainer.TrainJob, error) {
	owner := metav1.GetControllerOfNoCopy(&object.ObjectMeta)
	if owner == nil || owner.Kind != trainer.TrainJobKind || !trainer.IsGroup(owner.APIVersion) {
		return nil, nil
	}
	job := &trainer.TrainJob{}
	err := v.TrainJobs.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read TrainJob: %w", err)
	}
	if job.UID != owner.UID {
		return nil, nil
	}
	return job, nil
}
