package e2e_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// truncation is how much earlier than Signalbox stock Trainer may find the spec field
// reached: it counts from the creation in whole seconds. By annotation there is none.
const truncation = time.Second

// limits are the two ways to limit a TrainJob, and how early each may fire.
var limits = map[string]struct {
	of    func(seconds int) change
	early time.Duration
}{
	"by spec":       {of: func(seconds int) change { return deadline(int64(seconds)) }, early: truncation},
	"by annotation": {of: deadlineAnnotation},
}

func TestDeadlineCreatedActive(t *testing.T) {
	t.Parallel()
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			start := s.stamp(s.create("job", limit.of(30)))
			s.running("job")
			s.failsAt("job", start.Add(30*time.Second-limit.early))
		})
	}
}

// Waiting suspended for longer than the deadline costs nothing of it.
func TestDeadlineCreatedSuspended(t *testing.T) {
	t.Parallel()
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			job := s.create("job", suspended(), limit.of(6))
			if stamp, found := job.Annotations[v1alpha1.AnnotationResumedAt]; found {
				t.Errorf("created suspended with the stamp %s", stamp)
			}
			s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
			s.holds("job", job.CreationTimestamp.Add(9*time.Second))
			start := s.stamp(s.resume("job"))
			s.holds("job", start.Add(6*time.Second-limit.early))
			s.failsAt("job", start.Add(6*time.Second-limit.early))
		})
	}
}

// Suspending forgets the time used; resuming gives the whole deadline again.
func TestDeadlineSuspendedAndResumed(t *testing.T) {
	t.Parallel()
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			first := s.stamp(s.create("job", limit.of(20)))
			s.running("job")
			s.holds("job", first.Add(5*time.Second))
			if stamp, found := s.suspend("job").Annotations[v1alpha1.AnnotationResumedAt]; found {
				t.Errorf("suspended with the stamp %s", stamp)
			}
			s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
			s.eventually("no pods", func() (bool, string) { return len(s.pods("job")) == 0, s.children("job") })
			// Past the deadline of the first period, nothing happens.
			s.holds("job", first.Add(22*time.Second))
			second := s.stamp(s.resume("job"))
			s.running("job")
			s.holds("job", second.Add(20*time.Second-limit.early))
			s.failsAt("job", second.Add(20*time.Second-limit.early))
		})
	}
}

func TestDeadlineCompletedInTime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(30)))
	s.finish("job")
	s.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
	// It completed well before; past the deadline it is as it was.
	s.eventually("the deadline", func() (bool, string) { return time.Now().After(start.Add(32 * time.Second)), "" })
	job := s.get("job")
	if meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed) != nil {
		t.Errorf("a completed TrainJob has conditions %+v", job.Status.Conditions)
	}
	if s.children("job") == "" {
		t.Error("the JobSet of a completed TrainJob is gone")
	}
}

// Nothing of the TrainJob is left but itself and Trainer's copy of its runtime, and nothing
// comes back within 60 s; and the events say what happened.
func TestDeadlineLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.create("job", deadlineAnnotation(30), set(int64(3), "spec", "trainer", "numNodes"))
	start := s.stamp(job)
	if job.CreationTimestamp.After(start) {
		// The API server's second had changed between the stamp and the creation.
		start = job.CreationTimestamp.Time
	}
	s.running("job")
	s.failsAt("job", start.Add(30*time.Second))
	expired := time.Now()
	var services corev1.ServiceList
	s.eventually("the end of the Services", func() (bool, string) {
		s.must(s.cluster.Client.List(s.ctx, &services, client.InNamespace(s.namespace)))
		return len(services.Items) == 0, services.String()
	})
	var configMaps corev1.ConfigMapList
	s.must(s.cluster.Client.List(s.ctx, &configMaps, client.InNamespace(s.namespace)))
	for _, configMap := range configMaps.Items {
		if configMap.Name != "job-runtime-snapshot" && configMap.Name != "kube-root-ca.crt" {
			t.Errorf("left over: ConfigMap %s", configMap.Name)
		}
	}
	want := "active since " + start.UTC().Format(time.RFC3339) + ", longer than the limit of 30 s (annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds)"
	if got := meta.FindStatusCondition(s.get("job").Status.Conditions, trainer.ConditionFailed).Message; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	s.eventually("one event with a first time stamp", func() (bool, string) {
		var events corev1.EventList
		s.must(s.cluster.Client.List(s.ctx, &events, client.InNamespace(s.namespace), client.MatchingFields{"reason": "DeadlineExceeded"}))
		return len(events.Items) == 1 && events.Items[0].Message == want && !events.Items[0].FirstTimestamp.IsZero() && events.Items[0].Count == 1, events.String()
	})
	var announced corev1.EventList
	s.must(s.cluster.Client.List(s.ctx, &announced, client.InNamespace(s.namespace), client.MatchingFields{"reason": "DeadlineApproaching"}))
	if len(announced.Items) != 1 || announced.Items[0].FirstTimestamp.IsZero() {
		t.Errorf("announced by %d events, want one: %v", len(announced.Items), announced.Items)
	}
	for time.Since(expired) < time.Minute {
		if left := s.children("job"); left != "" {
			t.Fatalf("%s after the expiry there is %s", time.Since(expired), left)
		}
		time.Sleep(time.Second)
	}
}

func TestDeadlineOfNamesakes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.stamp(s.create("job", deadlineAnnotation(5)))
	s.failsAt("job", first.Add(5*time.Second))
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
	s.eventually("the end of the first", func() (bool, string) {
		err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "job"}, s.trainJob("job"))
		return client.IgnoreNotFound(err) == nil && err != nil, "still there"
	})
	second := s.stamp(s.create("job", deadlineAnnotation(20)))
	s.running("job")
	s.holds("job", second.Add(20*time.Second))
	s.failsAt("job", second.Add(20*time.Second))
}

// A job that makes no event for longer than its deadline is still ended in time, by a timer
// of its own and not by a resync; until then nobody looks at it.
func TestDeadlineOfQuietJob(t *testing.T) {
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(25)))
	s.running("job")
	end := start.Add(25 * time.Second)
	// Let the last writes of the start settle.
	last, since := s.reconciles(), time.Now()
	s.eventually("quiet", func() (bool, string) {
		if now := s.reconciles(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 4*time.Second, "the reconciler is busy"
	})
	if got := s.figure(shared.Reconciler, "signalbox_deadline_trainjobs"); got != 1 {
		t.Errorf("TrainJobs with a running deadline = %v, want 1", got)
	}
	// The last tenth, which is announced, begins 2.5 s before the end.
	s.holds("job", end.Add(-3500*time.Millisecond))
	if got := s.reconciles(); got != last {
		t.Errorf("looked at it %v times while it was quiet", got-last)
	}
	if late := s.failsAt("job", end); late > 2*time.Second {
		t.Errorf("failed %s after its deadline, want at most 2 s", late)
	}
}

// Suspended and finished TrainJobs cost nothing.
func TestDeadlineOfSuspendedJobsIsQuiet(t *testing.T) {
	s := newScene(t)
	const many = 30
	for i := range many {
		s.create(fmt.Sprint("suspended-", i), suspended(), deadlineAnnotation(1))
	}
	s.create("complete", deadlineAnnotation(3600))
	s.finish("complete")
	s.becomes("complete", trainer.ConditionComplete, "True/AllJobsCompleted")
	s.failsAt("failed", s.stamp(s.create("failed", deadlineAnnotation(1))).Add(time.Second))
	for i := range many {
		s.becomes(fmt.Sprint("suspended-", i), trainer.ConditionSuspended, "True/Suspended")
	}
	// The last events of all that settle; then nobody looks for longer than any of the
	// deadlines.
	last, since := s.reconciles(), time.Now()
	s.eventually("20 s without a look", func() (bool, string) {
		if now := s.reconciles(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 20*time.Second, "the reconciler is busy"
	})
}
