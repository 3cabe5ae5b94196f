package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// However a TrainJob ends, the next one in the queue gets its quota, and in the end all of it
// is free.
func TestKueueQuotaIsReleased(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	one := queueUse{Reserved: "1", Used: "1", Pending: 1, Reserving: 1, Admitted: 1}
	s.create("fails", queued(), oneCPU(), deadlineAnnotation(20))
	start := s.stamp(s.admission("fails"))

	s.create("completes", queued(), oneCPU(), deadlineAnnotation(3600))
	s.useBecomes(one)
	s.failsAt("fails", start.Add(20*time.Second))
	s.workloadBecomes("fails", finished, "True/Failed")
	s.running("completes")

	s.create("goes", queued(), oneCPU(), deadlineAnnotation(3600))
	s.useBecomes(one)
	s.finish("completes")
	s.becomes("completes", trainer.ConditionComplete, "True/AllJobsCompleted")
	s.workloadBecomes("completes", finished, "True/Succeeded")
	s.running("goes")

	s.create("last", queued(), oneCPU(), deadlineAnnotation(3600))
	s.useBecomes(one)
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("goes")))
	s.running("last")
	s.useBecomes(queueUse{Reserved: "1", Used: "1", Reserving: 1, Admitted: 1})
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("last")))
	s.useBecomes(queueUse{Reserved: "0", Used: "0"})
}

// In the queue a deadline does nothing, neither ours nor Trainer's own, for as long as it
// takes, and it is not even near when the TrainJob is admitted.
func TestKueueQueueHasNoDeadline(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.create("first", queued(), oneCPU())
	s.running("first")
	histories := map[string]*history{}
	var created time.Time
	for name, limit := range limits {
		job := strings.ReplaceAll(name, " ", "-")
		histories[job] = s.follow(job)
		created = s.create(job, queued(), oneCPU(), limit.of(3)).CreationTimestamp.Time
		s.workloadBecomes(job, podsReady, "False/WaitForStart")
		s.becomes(job, trainer.ConditionSuspended, "True/Suspended")
	}
	s.useBecomes(queueUse{Reserved: "1", Used: "1", Pending: 2, Reserving: 1, Admitted: 1})
	before := map[string]string{}
	look := func(job string) string {
		return fmt.Sprintln(s.text(s.get(job).Status), s.text(s.workload(job).Object["status"]), s.children(job))
	}
	since := time.Now()
	s.eventually("rest", func() (bool, string) {
		for job := range histories {
			if seen := look(job); seen != before[job] {
				before[job], since = seen, time.Now()
			}
		}
		return time.Since(since) > 3*time.Second, s.text(before)
	})
	// For longer than any of the deadlines, however long the rest was in coming.
	end := created.Add(10 * time.Second)
	if least := time.Now().Add(4 * time.Second); least.After(end) {
		end = least
	}
	for time.Now().Before(end) {
		for job := range histories {
			if seen := look(job); seen != before[job] {
				t.Fatalf("TrainJob %s was left in the queue as\n%s\nand is\n%s", job, before[job], seen)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("first")))
	// The queue has room for one after the other: the second waits another 3 s.
	for name, limit := range limits {
		job := strings.ReplaceAll(name, " ", "-")
		start := s.stamp(s.admission(job))
		s.failsAt(job, start.Add(3*time.Second-limit.early))
		histories[job].periods(start)
	}
}
