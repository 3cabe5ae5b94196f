package trainer

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/shared"
)

// Trim takes out of a TrainJob, which is on its way into a cache, what the rules do not read of a
// stored one, and has it share with others what they have in common: annotations of others,
// labels but that of MultiKueue, owners, finalizers, and the messages of conditions but that of a
// deadline.
func Trim(job *TrainJob, pool *shared.Pool) {
	trimMeta(&job.TypeMeta, &job.ObjectMeta, pool)
	job.Finalizers, job.OwnerReferences = nil, nil
	origin, copied := job.Labels[LabelMultiKueueOrigin]
	job.Labels = nil
	if copied {
		job.Labels = pool.Map(map[string]string{LabelMultiKueueOrigin: origin})
	}
	job.Annotations = own(job.Annotations, pool)
	spec := &job.Spec
	spec.RuntimeRef.Name = pool.String(spec.RuntimeRef.Name)
	spec.RuntimeRef.Kind, spec.RuntimeRef.APIGroup = pool.Pointer(spec.RuntimeRef.Kind), pool.Pointer(spec.RuntimeRef.APIGroup)
	spec.ManagedBy = pool.Pointer(spec.ManagedBy)
	spec.Initializer = nil
	job.Status.Conditions = trimConditions(job.Status.Conditions, pool, func(condition *metav1.Condition) bool {
		return condition.Type == ConditionFailed && condition.Reason == ReasonDeadlineExceeded
	})
}

// TrimJobSet does the same to a JobSet: of its annotations stay those of Signalbox, of its owners
// the controller.
func TrimJobSet(jobSet *JobSet, pool *shared.Pool) {
	trimMeta(&jobSet.TypeMeta, &jobSet.ObjectMeta, pool)
	jobSet.Finalizers, jobSet.Labels = nil, nil
	jobSet.Annotations = pool.Map(own(jobSet.Annotations, pool))
	jobSet.Status.Conditions = trimConditions(jobSet.Status.Conditions, pool, func(*metav1.Condition) bool { return false })
}

// trimMeta takes out of the metadata of an object who wrote what, and all owners but the
// controller, and has it share with others what they have in common.
func trimMeta(kind *metav1.TypeMeta, meta *metav1.ObjectMeta, pool *shared.Pool) {
	kind.APIVersion, kind.Kind = pool.String(kind.APIVersion), pool.String(kind.Kind)
	meta.ManagedFields, meta.GenerateName = nil, ""
	meta.Namespace = pool.String(meta.Namespace)
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil {
		meta.OwnerReferences = nil
		return
	}
	trimmed := *owner
	trimmed.APIVersion, trimmed.Kind = pool.String(owner.APIVersion), pool.String(owner.Kind)
	trimmed.Controller, trimmed.BlockOwnerDeletion = yes, nil
	if trimmed.Name == meta.Name {
		trimmed.Name = meta.Name
	}
	meta.OwnerReferences = []metav1.OwnerReference{trimmed}
}

// yes is what all controllers say of themselves.
var yes = ptr.To(true)

// own returns the annotations of Signalbox; nil for none.
func own(annotations map[string]string, pool *shared.Pool) map[string]string {
	var kept map[string]string
	for key, value := range annotations {
		if !strings.HasPrefix(key, v1alpha1.Group+"/") {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		if key != v1alpha1.AnnotationResumedAt && key != v1alpha1.AnnotationRuntimeSnapshot {
			value = pool.String(value)
		}
		kept[pool.String(key)] = value
	}
	return kept
}

// trimConditions returns the conditions without their messages, but for those that are told to stay.
func trimConditions(conditions []metav1.Condition, pool *shared.Pool, stays func(*metav1.Condition) bool) []metav1.Condition {
	if len(conditions) == 0 {
		return nil
	}
	trimmed := make([]metav1.Condition, len(conditions))
	for i, condition := range conditions {
		if !stays(&condition) {
			condition.Message = ""
		}
		condition.Type, condition.Reason = pool.String(condition.Type), pool.String(condition.Reason)
		condition.Status = metav1.ConditionStatus(pool.String(string(condition.Status)))
		trimmed[i] = condition
	}
	return trimmed
}
