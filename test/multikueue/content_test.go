package multikueue_test

import (
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// made lists what is in the scene's namespace beside TrainJobs, runtimes and what is Kueue's:
// all that a TrainJob that runs here would have, and what Signalbox reports.
func (s *side) made() []string {
	s.Helper()
	var found []string
	for _, kind := range []schema.GroupVersionKind{
		trainer.JobSetGroupVersionKind,
		batchv1.SchemeGroupVersion.WithKind("Job"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		s.must(s.cluster.Client.List(s.ctx, list, client.InNamespace(s.namespace)))
		for _, object := range list.Items {
			found = append(found, kind.Kind+" "+object.Name)
		}
	}
	return append(found, s.events()...)
}

// events lists the events of Signalbox in the scene's namespace.
func (s *side) events() []string {
	s.Helper()
	var list corev1.EventList
	s.must(s.cluster.Client.List(s.ctx, &list, client.InNamespace(s.namespace)))
	var found []string
	for _, event := range list.Items {
		if event.Source.Component == v1alpha1.FieldManager {
			found = append(found, fmt.Sprintf("Event %s of %s", event.Reason, event.InvolvedObject.Name))
		}
	}
	return found
}

// protected returns the annotations of a TrainJob that Signalbox alone writes.
func protected(annotations map[string]string) map[string]string {
	found := map[string]string{}
	for _, key := range v1alpha1.ProtectedAnnotations() {
		if value, there := annotations[key]; there {
			found[key] = value
		}
	}
	return found
}

// forged is what a TrainJob may bring: the stamp and the seal of another one, of other content.
func (s *side) forged() map[string]string {
	s.Helper()
	runtime := s.runtimeNamed("train")
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), runtime))
	s.must(unstructured.SetNestedField(runtime.Object, int64(9), "spec", "mlPolicy", "numNodes"))
	other, err := snapshot.Take(runtime.Object)
	s.must(err)
	annotations := other.Pack().Seal(runtime.GetCreationTimestamp().Time)
	annotations[v1alpha1.AnnotationResumedAt] = "2026-01-01T00:00:00.000000001Z"
	return annotations
}

// sealed returns the snapshot that is sealed into a TrainJob, and fails without one.
func (s *side) sealed(job *trainer.TrainJob) *snapshot.Snapshot {
	s.Helper()
	sealed, err := snapshot.Of(job)
	if err != nil || sealed == nil {
		s.Fatalf("TrainJob %s is not sealed on the %s: %v, %v", job.Name, s.name, err, job.Annotations)
	}
	return sealed
}

// revision returns the revision of the runtime "train", and fails without one.
func (s *side) revision() string {
	s.Helper()
	runtime := s.runtimeNamed("train")
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), runtime))
	spec, _, err := unstructured.NestedMap(runtime.Object, "spec")
	s.must(err)
	revision := snapshot.Stamp(spec)
	if revision == "" {
		s.Fatalf("the runtime on the %s has no revision: %s", s.name, s.text(spec))
	}
	return revision
}

// filed waits for the TrainingRuntimeSnapshot of a TrainJob, and checks that it is its own and
// of this revision.
func (s *side) filed(job *trainer.TrainJob, revision string) {
	s.Helper()
	s.eventually("the filed snapshot of TrainJob "+job.Name, func() (bool, string) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind))
		object.SetNamespace(s.namespace)
		object.SetName(job.Name)
		if !s.find(object) {
			return false, "none"
		}
		var filed v1alpha1.TrainingRuntimeSnapshot
		s.must(json.Unmarshal([]byte(s.text(object)), &filed))
		return filed.Spec.Revision == revision && metav1.IsControlledBy(&filed, job), s.text(object)
	})
}

// podSets returns the pod sets of a Workload.
func podSets(workload *unstructured.Unstructured) []any {
	sets, _, err := unstructured.NestedSlice(workload.Object, "spec", "podSets")
	if err != nil {
		panic(err)
	}
	return sets
}

// managers lists the field managers of an object, sorted.
func managers(object client.Object) []string {
	var names []string
	for _, entry := range object.GetManagedFields() {
		names = append(names, entry.Manager)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
