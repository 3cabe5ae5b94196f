package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// onNodes lets the pods of a TrainJob run on nodes with this label alone.
func onNodes(label string) change {
	return set([]any{untyped(fmt.Sprintf(`{"manager":"example.com/placement","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[
		{"name":"node","template":{"spec":{"template":{"spec":{"nodeSelector":{%q:"true"}}}}}}]}}}}`, label))}, "spec", "runtimePatches")
}

// labelNode gives a node this label for the time of the test.
func (s *scene) labelNode(label string) {
	s.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}
	s.must(s.patchAny(node, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, label)))
	s.Cleanup(func() {
		s := s.afterwards()
		_ = s.patchAny(node, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label))
	})
}

// pending waits until a TrainJob has a pod for which there is no node.
func (s *scene) pending(name string) {
	s.Helper()
	s.eventually("a pod of TrainJob "+name+" without a node", func() (bool, string) {
		for _, pod := range s.pods(name) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					return true, ""
				}
			}
		}
		return false, s.children(name)
	})
}

// evictions lists how often, and why, Kueue has taken the quota from a Workload.
func (s *scene) evictions(workload *unstructured.Unstructured) string {
	s.Helper()
	var all []string
	list, _, err := unstructured.NestedSlice(workload.Object, "status", "schedulingStats", "evictions")
	s.must(err)
	for _, entry := range list {
		eviction := entry.(map[string]any)
		all = append(all, fmt.Sprint(eviction["count"], " ", eviction["reason"]))
	}
	return strings.Join(all, ", ")
}

// Kueue takes the quota from a TrainJob whose pods are not ready in time (a minute here), and
// tries again. Its clock starts anew then; that of a TrainJob which is just slow runs on.
func TestKueuePodsNotReady(t *testing.T) {
	t.Parallel()
	const limit = 75 * time.Second
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "2"))
	never, late := s.follow("never"), s.follow("late")
	nowhere, somewhere := "example.com/no-"+s.namespace, "example.com/on-"+s.namespace
	s.create("never", queued(), oneCPU(), onNodes(nowhere), deadlineAnnotation(75))
	s.create("late", queued(), oneCPU(), onNodes(somewhere), deadlineAnnotation(75))
	first, slow := s.stamp(s.admission("never")), s.stamp(s.admission("late"))
	s.pending("never")
	s.pending("late")
	s.workloadBecomes("late", podsReady, "False/WaitForStart")
	workload := s.workloadBecomes("never", podsReady, "False/WaitForStart")
	since := s.workloadCondition(workload, admitted).LastTransitionTime
	s.labelNode(somewhere)
	s.running("late")
	s.workloadBecomes("late", podsReady, "True/Started")

	s.holds("never", since.Add(time.Minute))
	var stamps []time.Time
	s.eventually("another admission", func() (bool, string) {
		stamps = never.stamps()
		return len(stamps) > 1, s.text(s.workload("never"))
	})
	second := stamps[1]
	if after := second.Sub(since.Time); after < time.Minute {
		t.Errorf("admitted again %s after the first time, before Kueue's timeout", after)
	}
	if now := s.workload("never"); now.GetUID() != workload.GetUID() || s.evictions(now) != "1 PodsReadyTimeout" {
		t.Errorf("evicted %q, with Workload %s, was %s", s.evictions(now), s.text(now), workload.GetUID())
	}
	// The deadlines of the first period and of the one that is just slow.
	s.holds("late", slow.Add(limit))
	s.failsAt("late", slow.Add(limit))
	late.periods(slow)
	if now := s.workload("late"); s.evictions(now) != "" {
		t.Errorf("evicted though it was ready in time: %s", s.text(now))
	}
	s.holds("never", first.Add(limit+2*time.Second))
	s.labelNode(nowhere)
	s.running("never")
	if job := s.get("never"); condition(job, trainer.ConditionFailed) != "" {
		t.Errorf("failed: %s", s.text(job.Status))
	}
	never.periods(first, second)
}
