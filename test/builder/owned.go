package builder

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// JobSetBuilder makes a view of a JobSet.
type JobSetBuilder struct {
	jobSet trainer.JobSet
}

// JobSet starts with the JobSet of a TrainJob that runs, without a revision.
func JobSet(owner *trainer.TrainJob) *JobSetBuilder {
	b := &JobSetBuilder{}
	b.jobSet.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	b.jobSet.Namespace, b.jobSet.Name, b.jobSet.UID = owner.Namespace, owner.Name, "uid-of-jobset-"+owner.UID
	b.jobSet.OwnerReferences = controlledBy(owner)
	return b
}

// Obj returns the JobSet.
func (b *JobSetBuilder) Obj() *trainer.JobSet { return b.jobSet.DeepCopy() }

// Suspended sets suspend to true.
func (b *JobSetBuilder) Suspended() *JobSetBuilder {
	suspend := true
	b.jobSet.Spec.Suspend = &suspend
	return b
}

// Annotation sets an annotation.
func (b *JobSetBuilder) Annotation(key, value string) *JobSetBuilder {
	if b.jobSet.Annotations == nil {
		b.jobSet.Annotations = map[string]string{}
	}
	b.jobSet.Annotations[key] = value
	return b
}

// Orphaned takes its owner away.
func (b *JobSetBuilder) Orphaned() *JobSetBuilder {
	b.jobSet.OwnerReferences = nil
	return b
}

// ConfigMapBuilder makes the ConfigMap in which Trainer keeps the runtime of a TrainJob.
type ConfigMapBuilder struct {
	config corev1.ConfigMap
}

// ConfigMap starts with the ConfigMap of a TrainJob as Trainer writes it, with this text.
func ConfigMap(owner *trainer.TrainJob, text string) *ConfigMapBuilder {
	b := &ConfigMapBuilder{}
	b.config.Namespace, b.config.Name, b.config.UID = owner.Namespace, trainer.SnapshotConfigMap(owner.Name), "uid-of-config-"+owner.UID
	b.config.OwnerReferences = controlledBy(owner)
	b.config.Data = map[string]string{trainer.SnapshotKey: text}
	return b
}

// Obj returns the ConfigMap.
func (b *ConfigMapBuilder) Obj() *corev1.ConfigMap { return b.config.DeepCopy() }

// Created sets the creation time, to whole seconds as the API server does.
func (b *ConfigMapBuilder) Created(at time.Time) *ConfigMapBuilder {
	b.config.CreationTimestamp = metav1.NewTime(at.Truncate(time.Second))
	return b
}

// Label sets a label.
func (b *ConfigMapBuilder) Label(key, value string) *ConfigMapBuilder {
	if b.config.Labels == nil {
		b.config.Labels = map[string]string{}
	}
	b.config.Labels[key] = value
	return b
}

// Annotation sets an annotation.
func (b *ConfigMapBuilder) Annotation(key, value string) *ConfigMapBuilder {
	if b.config.Annotations == nil {
		b.config.Annotations = map[string]string{}
	}
	b.config.Annotations[key] = value
	return b
}

// Immutable makes it immutable.
func (b *ConfigMapBuilder) Immutable() *ConfigMapBuilder {
	immutable := true
	b.config.Immutable = &immutable
	return b
}

// Emptied takes all its content away.
func (b *ConfigMapBuilder) Emptied() *ConfigMapBuilder {
	b.config.Data = nil
	return b
}

// OwnedBy gives it another owner; without a kind it has none.
func (b *ConfigMapBuilder) OwnedBy(owner metav1.OwnerReference) *ConfigMapBuilder {
	b.config.OwnerReferences = nil
	if owner.Kind != "" {
		b.config.OwnerReferences = []metav1.OwnerReference{owner}
	}
	return b
}

func controlledBy(owner *trainer.TrainJob) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, trainer.GroupVersion.WithKind(trainer.TrainJobKind))}
}
