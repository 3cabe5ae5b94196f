package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// JobSetValidatePath is where the validating webhook of JobSets is served.
const JobSetValidatePath = "/validate-jobset"

// JobSetValidator is the validating webhook of the JobSets of TrainJobs: on CREATE, on the
// UPDATE that ends a suspension, and on a DELETE by Trainer's own account. A TrainJob that is
// finished or whose time is up gets no pods again, one that has time left keeps those it has,
// and one that is sealed gets none that are built from other content.
//
// It fails closed: pods that start are hard to take back. The webhook configuration calls it
// only for JobSets whose controller is a TrainJob, and for no deletion but Trainer's own, so
// that garbage collection, namespaces and the reconciler never depend on it.
type JobSetValidator struct {
	// TrainJobs reads live: a cached TrainJob could be one that still has time left.
	TrainJobs client.Reader
	// ConfigMaps reads live: a cached one could hold content that is not the one that
	// Trainer builds from.
	ConfigMaps client.Reader
	Clock      clock.PassiveClock
	// KeepsSnapshots tells whether the installed Trainer reads the runtime of a TrainJob
	// from a ConfigMap; one that does not builds from the runtime as it is, and the content
	// of its JobSets is not judged.
	KeepsSnapshots func(ctx context.Context) bool
	// TrainerUser is the user name of Trainer's controller; empty lets all deletions pass.
	TrainerUser string
}

// jobSet is the part of a JobSet that the rules read.
type jobSet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              trainer.JobSetSpec `json:"spec"`
}

func decodeJobSet(raw []byte) (*jobSet, error) {
	object := &jobSet{}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("decode JobSet: %w", err)
	}
	return object, nil
}

// Handle answers one admission request: 403 with the reason, 400 for what it cannot decode,
// 500 when the TrainJob cannot be read.
func (v *JobSetValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation == admissionv1.Delete && (v.TrainerUser == "" || req.UserInfo.Username != v.TrainerUser) {
		return admission.Allowed("")
	}
	// What is stored tells whose it is: an update could drop its owner with the same stroke. One
	// without an owner is that of the TrainJob that takes it over.
	var job *trainer.TrainJob
	var object *jobSet
	for _, raw := range [][]byte{req.OldObject.Raw, req.Object.Raw} {
		if len(raw) == 0 || job != nil {
			continue
		}
		var err error
		if object, err = decodeJobSet(raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if job, err = v.trainJobOf(ctx, req.Namespace, object); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
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
	default:
		if len(req.OldObject.Raw) > 0 {
			var err error
			if object, err = decodeJobSet(req.Object.Raw); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
		}
		return v.judgeContent(ctx, object, job)
	}
	return admission.Allowed("")
}

// judgeContent refuses a JobSet that starts and is not built from what is sealed into its
// TrainJob, or may not be: Trainer puts the revision of what it read on the JobSet, and the
// ConfigMap that it read from holds that content. After a refusal Trainer tries again.
func (v *JobSetValidator) judgeContent(ctx context.Context, object *jobSet, job *trainer.TrainJob) admission.Response {
	if ptr.Deref(object.Spec.Suspend, false) {
		return admission.Allowed("")
	}
	sealed, err := snapshot.Of(job)
	if err != nil {
		// Nothing can be built from it, so nothing is lost by building from what is there.
		log.FromContext(ctx).Error(err, "the seal of a TrainJob cannot be read; its JobSet is not judged", "trainJob", client.ObjectKeyFromObject(job))
	}
	if sealed == nil || !v.KeepsSnapshots(ctx) {
		return admission.Allowed("")
	}
	if revision := object.Annotations[v1alpha1.AnnotationRuntimeRevision]; revision != sealed.Revision {
		return admission.Denied(fmt.Sprintf("TrainJob %s runs on revision %s of %s, this JobSet is built from revision %q",
			job.Name, sealed.Revision, snapshot.Name(sealed.Source), revision))
	}
	config := &corev1.ConfigMap{}
	err = v.ConfigMaps.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: trainer.SnapshotConfigMap(job.Name)}, config)
	switch {
	case apierrors.IsNotFound(err):
		return admission.Allowed("")
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("read ConfigMap: %w", err))
	case !metav1.IsControlledBy(config, job) || !sealed.HoldsFor(config.Data[trainer.SnapshotKey], object.Annotations):
		return admission.Denied(fmt.Sprintf("TrainJob %s runs on revision %s of %s, which ConfigMap %s does not hold yet, or not when this JobSet was built",
			job.Name, sealed.Revision, snapshot.Name(sealed.Source), config.Name))
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
