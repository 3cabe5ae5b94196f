package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// WorkloadBuilder makes a Workload of Kueue as it is stored.
type WorkloadBuilder struct {
	workload unstructured.Unstructured
}

// Workload starts with the Workload that Kueue made for a TrainJob, which waits for room and
// is of no pod sets.
func Workload(owner *trainer.TrainJob) *WorkloadBuilder {
	b := &WorkloadBuilder{}
	b.workload.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	b.workload.SetKind("Workload")
	b.workload.SetNamespace(owner.Namespace)
	b.Named("trainjob-" + owner.Name + "-1f2e3")
	b.workload.SetLabels(map[string]string{"kueue.x-k8s.io/job-uid": string(owner.UID)})
	b.workload.SetOwnerReferences(controlledBy(owner))
	return b
}

// Obj returns the Workload.
func (b *WorkloadBuilder) Obj() *unstructured.Unstructured { return b.workload.DeepCopy() }

// Named sets the name, and with it the UID.
func (b *WorkloadBuilder) Named(name string) *WorkloadBuilder {
	b.workload.SetName(name)
	b.workload.SetUID(types.UID("uid-of-" + name))
	return b
}

// Version sets the version of the API, where the minimal object has v1beta2.
func (b *WorkloadBuilder) Version(version string) *WorkloadBuilder {
	b.workload.SetAPIVersion("kueue.x-k8s.io/" + version)
	return b
}

// Created sets the creation time, to whole seconds as the API server does.
func (b *WorkloadBuilder) Created(at time.Time) *WorkloadBuilder {
	b.workload.SetCreationTimestamp(metav1.NewTime(at.Truncate(time.Second)))
	return b
}

// Deleting marks the Workload as being deleted since then, held by Kueue's finalizer.
func (b *WorkloadBuilder) Deleting(since time.Time) *WorkloadBuilder {
	at := metav1.NewTime(since.Truncate(time.Second))
	b.workload.SetDeletionTimestamp(&at)
	b.workload.SetFinalizers([]string{"kueue.x-k8s.io/resource-in-use"})
	return b
}

// OwnedBy makes another object its owners' only one; without a kind it has none.
func (b *WorkloadBuilder) OwnedBy(owner metav1.OwnerReference) *WorkloadBuilder {
	b.workload.SetOwnerReferences(nil)
	if owner.Kind != "" {
		b.workload.SetOwnerReferences([]metav1.OwnerReference{owner})
	}
	return b
}

// PodSets sets what the pods are.
func (b *WorkloadBuilder) PodSets(podSets ...any) *WorkloadBuilder {
	if err := unstructured.SetNestedSlice(b.workload.Object, podSets, "spec", "podSets"); err != nil {
		panic(err)
	}
	return b
}

// Condition adds a condition as Kueue writes it, to whole seconds.
func (b *WorkloadBuilder) Condition(kind string, status metav1.ConditionStatus, at time.Time) *WorkloadBuilder {
	conditions, _, err := unstructured.NestedSlice(b.workload.Object, "status", "conditions")
	if err != nil {
		panic(err)
	}
	conditions = append(conditions, map[string]any{
		"type": kind, "status": string(status), "reason": kind, "message": "as Kueue says",
		"lastTransitionTime": at.UTC().Format(time.RFC3339),
	})
	if err := unstructured.SetNestedSlice(b.workload.Object, conditions, "status", "conditions"); err != nil {
		panic(err)
	}
	return b
}
