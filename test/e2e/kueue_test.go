package e2e_test

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

func queued() change { return labelled("kueue.x-k8s.io/queue-name", "queue") }

func labelled(key, value string) change { return set(value, "metadata", "labels", key) }

func oneCPU() change {
	return set(map[string]any{"requests": map[string]any{"cpu": "1"}}, "spec", "trainer", "resourcesPerNode")
}

// Kueue suspends a TrainJob on its way in and resumes it when there is room. Whether our
// webhook is called after Kueue's, before it and once more, or both before and after: the
// time in the queue costs nothing, and the deadline counts from the admission.
func TestKueueDeadlineInAQueue(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*scene){
		"after Kueue's webhook":             func(*scene) {},
		"before and after Kueue's webhook":  func(s *scene) { s.alsoBefore(kueuesConfiguration) },
		"before Kueue's webhook, reinvoked": func(s *scene) { s.alsoBefore(kueuesConfiguration); s.notAfter() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			order(s)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.create("first", queued(), oneCPU())
			s.running("first")

			history := s.follow("second")
			job := s.create("second", queued(), oneCPU(), deadlineAnnotation(5))
			if job.Active() || job.Annotations[v1alpha1.AnnotationResumedAt] != "" {
				t.Fatalf("in the queue with suspend %v, annotations %v", job.Spec.Suspend, job.Annotations)
			}
			s.holds("second", job.CreationTimestamp.Add(8*time.Second))
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("first")))
			start := s.stamp(s.admission("second"))
			if age := start.Sub(job.CreationTimestamp.Time); age < 7*time.Second {
				t.Errorf("stamped %s after the creation, before the queue had room", age)
			}
			if patches := s.patchesOfKueue("second"); patches != 1 {
				t.Errorf("Kueue's runtimePatches came %d times, want once", patches)
			}
			s.failsAt("second", start.Add(5*time.Second))
			history.periods(start)

			// The quota is free again.
			s.create("third", queued(), oneCPU())
			s.running("third")
		})
	}
}

// alsoBefore adds our webhooks a second time for this namespace, under a name that sorts
// before the given configuration: the API server calls configurations in order of names.
func (s *scene) alsoBefore(name string) {
	s.Helper()
	ours := &admissionregistrationv1.MutatingWebhookConfiguration{}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: name}, ours))
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: oursConfiguration}, ours))
	if ours.Name < name {
		s.Fatalf("%s sorts before %s by itself: the order is not what this test thinks", ours.Name, name)
	}
	s.calledHere("before-", ours.Webhooks)
}

// notAfter takes this namespace from our webhooks as they are installed.
func (s *scene) notAfter() {
	s.Helper()
	s.notCalled(oursConfiguration, "")
}

// patchesOfKueue counts the runtimePatches of a TrainJob that Kueue made.
func (s *scene) patchesOfKueue(name string) int {
	s.Helper()
	job := s.trainJob(name)
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job))
	return len(s.kueuesPatches(job))
}

// kueuesPatches are the runtimePatches of a TrainJob that Kueue made.
func (s *scene) kueuesPatches(job *unstructured.Unstructured) []map[string]any {
	s.Helper()
	patches, _, err := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	s.must(err)
	var kueues []map[string]any
	for _, patch := range patches {
		if patch, ok := patch.(map[string]any); ok && patch["manager"] == "kueue.x-k8s.io/manager" {
			kueues = append(kueues, patch)
		}
	}
	return kueues
}
