package list

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// shelf holds the objects of one kind, of each what list needs.
type shelf[T any] struct {
	// read: all objects of the kind have been read once.
	read  bool
	items map[types.UID]T
	// reduce takes from an object what is needed.
	reduce func(*unstructured.Unstructured) (T, error)
	// fresh are those of a list that is being read, nil outside of one.
	fresh map[types.UID]T
}

// begin starts a list: what is put from now on replaces what is there when it is complete.
func (s *shelf[T]) begin() { s.fresh = map[types.UID]T{} }

// list puts an object of a list that is being read.
func (s *shelf[T]) list(object *unstructured.Unstructured) error {
	item, err := s.reduce(object)
	if err != nil {
		return err
	}
	s.fresh[object.GetUID()] = item
	return nil
}

// end completes a list, and returns what was there and is not in it.
func (s *shelf[T]) end() (gone map[types.UID]T) {
	gone = map[types.UID]T{}
	for uid, item := range s.items {
		if _, found := s.fresh[uid]; !found {
			gone[uid] = item
		}
	}
	s.items, s.fresh, s.read = s.fresh, nil, true
	return gone
}

// put puts an object that has come or has changed.
func (s *shelf[T]) put(object *unstructured.Unstructured) error {
	item, err := s.reduce(object)
	if err != nil {
		return err
	}
	if s.items == nil {
		s.items = map[types.UID]T{}
	}
	s.items[object.GetUID()] = item
	return nil
}

// take takes an object away, and returns what was kept of it.
func (s *shelf[T]) take(object *unstructured.Unstructured) (item T, found bool) {
	item, found = s.items[object.GetUID()]
	delete(s.items, object.GetUID())
	return item, found
}

// replace completes a list, whatever is not in it.
func (s *shelf[T]) replace() { s.end() }

// drop takes an object away.
func (s *shelf[T]) drop(object *unstructured.Unstructured) { s.take(object) }

// known tells whether all objects of the kind have been read once.
func (s *shelf[T]) known() bool { return s.read }

// holder is a shelf of whatever.
type holder interface {
	begin()
	list(*unstructured.Unstructured) error
	replace()
	put(*unstructured.Unstructured) error
	drop(*unstructured.Unstructured)
	known() bool
}

// viewOf reads a view of an object, which is not changed.
func viewOf[T any](object *unstructured.Unstructured, view *T) (*T, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, view); err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return view, nil
}

// sealedMark stands for what is sealed into a TrainJob, of which no more counts here than that it is.
const sealedMark = "sealed"

// jobOf takes from a TrainJob what list needs. What is sealed into it counts only if it holds together.
func jobOf(object *unstructured.Unstructured) (*trainer.TrainJob, error) {
	job, err := viewOf(object, &trainer.TrainJob{})
	if err != nil {
		return nil, err
	}
	job.ManagedFields = nil
	if kubectl.SealedRevision(job) == "" {
		return job, nil
	}
	if _, err := snapshot.Of(job); err != nil {
		delete(job.Annotations, v1alpha1.AnnotationRuntimeSnapshot)
		return job, nil
	}
	job.Annotations[v1alpha1.AnnotationRuntimeSnapshot] = sealedMark
	return job, nil
}

// jobSetOf takes from a JobSet what list needs.
func jobSetOf(object *unstructured.Unstructured) (*trainer.JobSet, error) {
	jobSet, err := viewOf(object, &trainer.JobSet{})
	if err == nil {
		jobSet.ManagedFields = nil
	}
	return jobSet, err
}

// revised is a runtime and the revision of its content.
type revised struct {
	key      runtimeKey
	revision string
}

// runtimeKey names a runtime; the namespace of one that belongs to the cluster is empty.
type runtimeKey struct {
	kind string
	types.NamespacedName
}

// revisedOf takes from a runtime what list needs.
func revisedOf(object *unstructured.Unstructured) (revised, error) {
	spec, _ := object.Object["spec"].(map[string]any)
	return revised{
		key:      runtimeKey{object.GetKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}},
		revision: snapshot.Revision(spec),
	}, nil
}

// workloadOf takes from a Workload what list needs: not its pods.
func workloadOf(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	workload := &unstructured.Unstructured{Object: map[string]any{}}
	workload.SetNamespace(object.GetNamespace())
	workload.SetName(object.GetName())
	workload.SetUID(object.GetUID())
	workload.SetCreationTimestamp(object.GetCreationTimestamp())
	workload.SetDeletionTimestamp(object.GetDeletionTimestamp())
	workload.SetOwnerReferences(object.GetOwnerReferences())
	for _, path := range kueue.OrderFields() {
		if value, found, err := unstructured.NestedFieldCopy(object.Object, path...); found && err == nil {
			if err := unstructured.SetNestedField(workload.Object, value, path...); err != nil {
				return nil, err
			}
		}
	}
	return workload, nil
}
