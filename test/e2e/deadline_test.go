package e2e_test

import (
	"strings"
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
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			start := s.stamp(s.create("job", limit.of(8)))
			s.running("job")
			s.failsAt("job", start.Add(8*time.Second-limit.early))
		})
	}
}

// Waiting suspended for longer than the deadline costs nothing of it.
func TestDeadlineCreatedSuspended(t *testing.T) {
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
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			first := s.stamp(s.create("job", limit.of(10)))
			s.running("job")
			s.holds("job", first.Add(5*time.Second))
			if stamp, found := s.suspend("job").Annotations[v1alpha1.AnnotationResumedAt]; found {
				t.Errorf("suspended with the stamp %s", stamp)
			}
			s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
			s.eventually("no pods", func() (bool, string) { return len(s.pods("job")) == 0, s.children("job") })
			// Past the deadline of the first period, nothing happens.
			s.holds("job", first.Add(12*time.Second))
			second := s.stamp(s.resume("job"))
			s.running("job")
			s.holds("job", second.Add(10*time.Second-limit.early))
			s.failsAt("job", second.Add(10*time.Second-limit.early))
		})
	}
}

func TestDeadlineCompletedInTime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(15)))
	s.finish("job")
	s.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
	// It completed well before; past the deadline it is as it was.
	s.eventually("the deadline", func() (bool, string) { return time.Now().After(start.Add(17 * time.Second)), "" })
	job := s.get("job")
	if meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed) != nil {
		t.Errorf("a completed TrainJob has conditions %+v", job.Status.Conditions)
	}
	if s.children("job") == "" {
		t.Error("the JobSet of a completed TrainJob is gone")
	}
}

// 60 s after the expiry, and long before, nothing of the TrainJob is left but itself and
// Trainer's copy of its runtime; and the event says what happened.
func TestDeadlineLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(6), set(int64(3), "spec", "trainer", "numNodes")))
	s.running("job")
	late := s.failsAt("job", start.Add(6*time.Second))
	if late > time.Minute {
		t.Errorf("failed %s after its deadline", late)
	}
	var services corev1.ServiceList
	s.eventually("the end of the Services", func() (bool, string) {
		s.must(shared.Client.List(s.ctx, &services, client.InNamespace(s.namespace)))
		return len(services.Items) == 0, services.String()
	})
	var configMaps corev1.ConfigMapList
	s.must(shared.Client.List(s.ctx, &configMaps, client.InNamespace(s.namespace)))
	for _, configMap := range configMaps.Items {
		if configMap.Name != "job-runtime-snapshot" && configMap.Name != "kube-root-ca.crt" {
			t.Errorf("left over: ConfigMap %s", configMap.Name)
		}
	}
	want := "active since " + start.Format(time.RFC3339) + ", longer than the limit of 6 s (annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds)"
	if got := meta.FindStatusCondition(s.get("job").Status.Conditions, trainer.ConditionFailed).Message; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	s.eventually("one event with a first time stamp", func() (bool, string) {
		var events corev1.EventList
		s.must(shared.Client.List(s.ctx, &events, client.InNamespace(s.namespace), client.MatchingFields{"reason": "DeadlineExceeded"}))
		return len(events.Items) == 1 && events.Items[0].Message == want && !events.Items[0].FirstTimestamp.IsZero() && events.Items[0].Count == 1, events.String()
	})
}

func TestDeadlineOfNamesakes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.stamp(s.create("job", deadlineAnnotation(5)))
	s.failsAt("job", first.Add(5*time.Second))
	s.must(shared.Client.Delete(s.ctx, s.trainJob("job")))
	s.eventually("the end of the first", func() (bool, string) {
		err := shared.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "job"}, s.trainJob("job"))
		return client.IgnoreNotFound(err) == nil && err != nil, "still there"
	})
	second := s.stamp(s.create("job", deadlineAnnotation(8)))
	s.running("job")
	s.holds("job", second.Add(8*time.Second))
	s.failsAt("job", second.Add(8*time.Second))
}

// A job that makes no event for longer than its deadline is still ended in time, by a timer
// of its own and not by a resync; until then nobody looks at it.
func TestDeadlineOfQuietJob(t *testing.T) {
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(20)))
	s.running("job")
	end := start.Add(20 * time.Second)
	// Let the last writes of the start settle.
	last := s.reconciles()
	s.eventually("quiet", func() (bool, string) {
		before := last
		last = s.reconciles()
		return before == last && time.Since(start) > 8*time.Second, "the reconciler is busy"
	})
	if got := s.figure(shared.Reconciler, "signalbox_deadline_trainjobs"); got != 1 {
		t.Errorf("TrainJobs with a running deadline = %v, want 1", got)
	}
	s.holds("job", end.Add(-time.Second))
	if got := s.reconciles(); got != last && time.Now().Before(end) {
		t.Errorf("looked at it %v times while it was quiet", got-last)
	}
	if late := s.failsAt("job", end); late > 2*time.Second {
		t.Errorf("failed %s after its deadline, want at most 2 s", late)
	}
}

// Suspended and finished TrainJobs cost nothing.
func TestDeadlineOfSuspendedJobsIsQuiet(t *testing.T) {
	s := newScene(t)
	for _, name := range strings.Fields("a b c d e") {
		s.create(name, suspended(), deadlineAnnotation(1))
	}
	for _, name := range strings.Fields("a b c d e") {
		s.becomes(name, trainer.ConditionSuspended, "True/Suspended")
	}
	s.eventually("quiet", func() (bool, string) {
		before := s.reconciles()
		end := time.Now().Add(5 * time.Second)
		for time.Now().Before(end) && s.reconciles() == before {
			time.Sleep(100 * time.Millisecond)
		}
		return s.reconciles() == before, "the reconciler is busy"
	})
}
