// Package builder makes test objects: a minimal valid one, then one change at a time.
package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// TrainJobBuilder makes a view of a TrainJob.
type TrainJobBuilder struct {
	job trainer.TrainJob
}

// TrainJob starts with an active TrainJob without a deadline.
func TrainJob(namespace, name string) *TrainJobBuilder {
	b := &TrainJobBuilder{}
	b.job.APIVersion = trainer.GroupVersion.String()
	b.job.Kind = trainer.TrainJobKind
	b.job.Namespace = namespace
	b.job.Name = name
	b.job.UID = types.UID("uid-of-" + name)
	return b
}

// Obj returns the TrainJob.
func (b *TrainJobBuilder) Obj() *trainer.TrainJob { return b.job.DeepCopy() }

// Created sets the creation time, to whole seconds as the API server does.
func (b *TrainJobBuilder) Created(at time.Time) *TrainJobBuilder {
	b.job.CreationTimestamp = metav1.NewTime(at.Truncate(time.Second))
	return b
}

// Generation sets how often the spec has been written.
func (b *TrainJobBuilder) Generation(generation int64) *TrainJobBuilder {
	b.job.Generation = generation
	return b
}

// Deleting marks the TrainJob as being deleted since then, held by a finalizer.
func (b *TrainJobBuilder) Deleting(since time.Time) *TrainJobBuilder {
	at := metav1.NewTime(since.Truncate(time.Second))
	b.job.DeletionTimestamp, b.job.Finalizers = &at, []string{"example.com/keep"}
	return b
}

// Suspended sets suspend to true.
func (b *TrainJobBuilder) Suspended() *TrainJobBuilder { return b.Suspend(true) }

// Suspend sets suspend, where the minimal object has none.
func (b *TrainJobBuilder) Suspend(suspend bool) *TrainJobBuilder {
	b.job.Spec.Suspend = &suspend
	return b
}

// Deadline sets spec.activeDeadlineSeconds.
func (b *TrainJobBuilder) Deadline(seconds int64) *TrainJobBuilder {
	b.job.Spec.ActiveDeadlineSeconds = &seconds
	return b
}

// DeadlineAnnotation sets the annotation that stands for the spec field.
func (b *TrainJobBuilder) DeadlineAnnotation(value string) *TrainJobBuilder {
	return b.Annotation(v1alpha1.AnnotationActiveDeadlineSeconds, value)
}

// RunPolicy sets the limits of a later Trainer, as seconds; nil for what is not set.
func (b *TrainJobBuilder) RunPolicy(deadline, ttl *trainer.Setting) *TrainJobBuilder {
	b.job.Spec.RunPolicy = &trainer.RunPolicy{ActiveDeadlineSeconds: deadline, TTLSecondsAfterFinished: ttl}
	return b
}

// TTL sets how long the TrainJob stays after it has finished, to any text.
func (b *TrainJobBuilder) TTL(value string) *TrainJobBuilder {
	return b.Annotation(v1alpha1.AnnotationTTLSecondsAfterFinished, value)
}

// Label sets a label.
func (b *TrainJobBuilder) Label(key, value string) *TrainJobBuilder {
	if b.job.Labels == nil {
		b.job.Labels = map[string]string{}
	}
	b.job.Labels[key] = value
	return b
}

// CopyOfMultiKueue labels the TrainJob as Kueue does on the cluster that it copies it to.
func (b *TrainJobBuilder) CopyOfMultiKueue() *TrainJobBuilder {
	return b.Label(trainer.LabelMultiKueueOrigin, "manager")
}

// ManagedBy sets spec.managedBy.
func (b *TrainJobBuilder) ManagedBy(controller string) *TrainJobBuilder {
	b.job.Spec.ManagedBy = &controller
	return b
}

// Stamp sets the time of the last resume.
func (b *TrainJobBuilder) Stamp(at time.Time) *TrainJobBuilder {
	return b.StampText(at.Format(time.RFC3339Nano))
}

// StampText sets the annotation of the last resume to any text.
func (b *TrainJobBuilder) StampText(value string) *TrainJobBuilder {
	return b.Annotation(v1alpha1.AnnotationResumedAt, value)
}

// Annotation sets an annotation.
func (b *TrainJobBuilder) Annotation(key, value string) *TrainJobBuilder {
	if b.job.Annotations == nil {
		b.job.Annotations = map[string]string{}
	}
	b.job.Annotations[key] = value
	return b
}

// Annotations sets several annotations.
func (b *TrainJobBuilder) Annotations(annotations map[string]string) *TrainJobBuilder {
	for key, value := range annotations {
		b.Annotation(key, value)
	}
	return b
}

// Runtime sets spec.runtimeRef as the API server stores it.
func (b *TrainJobBuilder) Runtime(kind, name string) *TrainJobBuilder {
	group := trainer.GroupVersion.Group
	b.job.Spec.RuntimeRef = trainer.RuntimeRef{Name: name, Kind: &kind, APIGroup: &group}
	return b
}

// UID sets the UID, where the minimal object has one that follows from its name.
func (b *TrainJobBuilder) UID(uid types.UID) *TrainJobBuilder {
	b.job.UID = uid
	return b
}

// Condition adds a condition as Trainer writes it, to whole seconds.
func (b *TrainJobBuilder) Condition(kind string, status metav1.ConditionStatus, reason string, at time.Time) *TrainJobBuilder {
	b.job.Status.Conditions = append(b.job.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: "as Trainer says",
		LastTransitionTime: metav1.NewTime(at.Truncate(time.Second)),
	})
	return b
}
