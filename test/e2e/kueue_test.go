package e2e_test

import (
	"context"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
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
// time in the queue costs nothing.
func TestDeadlineInAQueue(t *testing.T) {
	for name, order := range map[string]func(*scene){
		"after Kueue's webhook":             func(*scene) {},
		"before and after Kueue's webhook":  func(s *scene) { s.alsoBefore("kueue-mutating-webhook-configuration") },
		"before Kueue's webhook, reinvoked": func(s *scene) { s.alsoBefore("kueue-mutating-webhook-configuration"); s.notAfter() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			order(s)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.create("first", queued(), oneCPU())
			s.running("first")

			job := s.create("second", queued(), oneCPU(), deadlineAnnotation(5))
			if job.Active() || job.Annotations[v1alpha1.AnnotationResumedAt] != "" {
				t.Fatalf("in the queue with suspend %v, annotations %v", job.Spec.Suspend, job.Annotations)
			}
			s.holds("second", job.CreationTimestamp.Add(8*time.Second))
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("first")))
			s.eventually("admission of the second", func() (bool, string) {
				job = s.get("second")
				return job.Active(), s.children("second")
			})
			start := s.stamp(job)
			if age := start.Sub(job.CreationTimestamp.Time); age < 7*time.Second {
				t.Errorf("stamped %s after the creation, before the queue had room", age)
			}
			if patches := s.patchesOfKueue("second"); patches != 1 {
				t.Errorf("Kueue's runtimePatches came %d times, want once", patches)
			}
			s.failsAt("second", start.Add(5*time.Second))

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
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, ours))
	if ours.Name < name {
		s.Fatalf("%s sorts before %s by itself: the order is not what this test thinks", ours.Name, name)
	}
	ours.ObjectMeta = metav1.ObjectMeta{Name: "before-" + s.namespace}
	for i := range ours.Webhooks {
		ours.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{
			MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace},
		}
	}
	s.must(s.cluster.Client.Create(s.ctx, ours))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), ours) })
}

// notAfter takes this namespace from our webhooks as they are installed.
func (s *scene) notAfter() {
	s.Helper()
	s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		ours := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, ours); err != nil {
			return err
		}
		for i := range ours.Webhooks {
			excluded := &ours.Webhooks[i].NamespaceSelector.MatchExpressions[0]
			excluded.Values = append(excluded.Values, s.namespace)
		}
		return s.cluster.Client.Update(s.ctx, ours)
	}))
}

// patchesOfKueue counts the runtimePatches of a TrainJob that Kueue made.
func (s *scene) patchesOfKueue(name string) int {
	s.Helper()
	job := s.trainJob(name)
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job))
	patches, _, err := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	s.must(err)
	count := 0
	for _, patch := range patches {
		if patch, ok := patch.(map[string]any); ok && patch["manager"] == "kueue.x-k8s.io/manager" {
			count++
		}
	}
	return count
}
