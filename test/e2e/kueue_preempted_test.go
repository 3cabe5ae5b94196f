package e2e_test

import (
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Preempted, a TrainJob loses its stamp and keeps its seal, though its runtime changes in the
// meantime. Admitted again, it has its full time, on what it ran on before.
func TestKueuePreempted(t *testing.T) {
	t.Parallel()
	const limit = 40 * time.Second
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	runtime := s.stored(s.object(namespaced, "train", jobSetOf(oldImage)))
	history := s.follow("job")
	s.createOn(runtime, "job", queued(), oneCPU(), deadlineAnnotation(40))
	s.runs("job", oldImage)
	first := s.stamp(s.get("job"))
	workload := s.preempt("job", "urgent")
	s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
	s.noPods("job")
	s.edit("train", newImage)

	// The time that it had left goes by.
	s.holds("job", first.Add(limit+2*time.Second))
	if job := s.get("job"); job.Active() {
		t.Fatalf("active while another one has its quota: %s", s.text(s.workload("job")))
	}
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("urgent")))
	second := s.stamp(s.admission("job"))
	s.runs("job", oldImage)
	s.holds("job", second.Add(limit))
	s.failsAt("job", second.Add(limit))
	history.periods(first, second)
	if now := s.workloadBecomes("job", finished, "True/Failed"); now.GetUID() != workload.GetUID() {
		t.Errorf("the Workload is another: %s", s.text(now))
	}
}

// Deactivated by its Workload, a TrainJob has no clock, however long that lasts. Activated
// again, it has its full time.
func TestKueueDeactivated(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Second
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	history := s.follow("job")
	s.create("job", queued(), oneCPU(), deadlineAnnotation(30))
	s.running("job")
	first := s.stamp(s.get("job"))
	s.activate("job", false)
	workload := s.workloadBecomes("job", requeued, "False/Deactivated")
	s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
	s.noPods("job")
	s.useBecomes(queueUse{Reserved: "0", Used: "0"})

	s.holds("job", first.Add(limit+2*time.Second))
	if job := s.get("job"); job.Active() || len(s.pods("job")) > 0 {
		t.Fatalf("inactive, with suspend %v and %s", *job.Spec.Suspend, s.children("job"))
	}
	s.activate("job", true)
	second := s.stamp(s.admission("job"))
	s.running("job")
	s.holds("job", second.Add(limit))
	s.failsAt("job", second.Add(limit))
	history.periods(first, second)
	if now := s.workloadBecomes("job", finished, "True/Failed"); now.GetUID() != workload.GetUID() {
		t.Errorf("the Workload is another: %s", s.text(now))
	}
}
