package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// maxExecTime is Kueue's own limit. It counts the seconds that a Workload was admitted, all
// admissions together, and deactivates it then.
func maxExecTime(seconds int) change {
	return labelled("kueue.x-k8s.io/max-exec-time-seconds", fmt.Sprint(seconds))
}

// outOfTime is what Kueue says then.
const outOfTime = "False/DeactivatedDueToMaximumExecutionTimeExceeded"

// Of Kueue's limit and the deadline, the first one decides. Kueue's suspends the TrainJob and
// keeps it so, the deadline fails it. Kueue's begins when it admits a TrainJob, which it resumes a
// while later: beside other tests it may be over then.
func TestKueueMaxExecTime(t *testing.T) {
	t.Run("before the deadline", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
		history := s.follow("job")
		s.create("job", queued(), oneCPU(), maxExecTime(10), deadlineAnnotation(24))
		start := s.stamp(s.admission("job"))
		workload := s.workloadBecomes("job", requeued, outOfTime)
		if active, found, _ := unstructured.NestedBool(workload.Object, "spec", "active"); active || !found {
			t.Errorf("spec.active of the Workload = %t, %t", active, found)
		}
		s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
		s.noPods("job")
		// The deadline has no say any more.
		s.holds("job", start.Add(26*time.Second))
		if job := s.get("job"); job.Active() || condition(job, trainer.ConditionFailed) != "" {
			t.Errorf("out of Kueue's time: suspend %v, %s", job.Spec.Suspend, s.text(job.Status))
		}
		history.periods(start)
	})
	t.Run("after the deadline", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
		history := s.follow("job")
		s.create("job", queued(), oneCPU(), maxExecTime(24), deadlineAnnotation(6))
		start := s.stamp(s.admission("job"))
		s.failsAt("job", start.Add(6*time.Second))
		s.workloadBecomes("job", finished, "True/Failed")
		// Kueue's time has no say any more.
		s.eventually("the end of Kueue's time", func() (bool, string) { return time.Since(start) > 26*time.Second, "" })
		workload := s.workload("job")
		if active, found, _ := unstructured.NestedBool(workload.Object, "spec", "active"); !active || !found {
			t.Errorf("spec.active of the Workload = %t, %t", active, found)
		}
		if got := s.workloadCondition(workload, evicted); got.Type != "" {
			t.Errorf("evicted after its end: %s", s.text(got))
		}
		if job := s.get("job"); !job.Active() || condition(job, trainer.ConditionFailed) != "True/DeadlineExceeded" {
			t.Errorf("past its deadline: suspend %v, %s", job.Spec.Suspend, s.text(job.Status))
		}
		history.periods(start)
	})
	// What the first admission used, Kueue counts again in the second; the deadline does not.
	t.Run("over two admissions", func(t *testing.T) {
		t.Parallel()
		const limit = 31 * time.Second
		s := newScene(t)
		s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
		history := s.follow("job")
		s.create("job", queued(), oneCPU(), maxExecTime(30), deadlineAnnotation(31))
		first := s.stamp(s.admission("job"))
		s.holds("job", first.Add(12*time.Second))
		workload := s.preempt("job", "urgent")
		used, _, err := unstructured.NestedInt64(workload.Object, "status", "accumulatedPastExecutionTimeSeconds")
		s.must(err)
		if used < 12 || used > 30 {
			t.Fatalf("Kueue counts %d s after an admission of 12 s or a little more", used)
		}
		s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("urgent")))
		second := s.stamp(s.admission("job"))
		s.workloadBecomes("job", requeued, outOfTime)
		s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
		// Both admissions together were longer than the deadline, none of them was.
		if lasted := time.Since(second); lasted >= limit-time.Second {
			t.Errorf("the second admission lasted %s: Kueue counts anew", lasted)
		}
		s.holds("job", second.Add(limit+2*time.Second))
		history.periods(first, second)
	})
}
