package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// While the reconciler is away Trainer alone ends TrainJobs, by the spec field; with the webhook
// away too nobody does, but nothing that is deleted is held up. When the reconciler is back, with
// still no webhook, it ends at once what is overdue, finishes what Trainer left half done, and
// does the rest on time. So does the removal of finished TrainJobs.
func TestOutageOfTheReconcilerAndThenOfBoth(t *testing.T) {
	s, other := newScene(t), newScene(t)
	removed := s.watched("removed-later")
	for _, name := range []string{"deleted", "removed", "removed-later"} {
		s.create(name, stayAnnotation(map[string]int{"removed": 3}[name]+map[string]int{"removed-later": 75}[name]))
	}
	other.create("job", deadline(3600))
	other.running("job")
	s.running("deleted")
	annotated := s.stamp(s.create("annotated", deadlineAnnotation(20))).Add(20 * time.Second)
	bySpec := s.stamp(s.create("by-spec", deadline(20))).Add(20 * time.Second)
	left := s.stamp(s.create("left", deadline(32))).Add(32 * time.Second)
	for _, name := range []string{"annotated", "by-spec", "left"} {
		s.running(name)
	}
	s.finishedAs("removed", trainer.ConditionComplete)
	s.finishedAs("removed-later", trainer.ConditionFailed)
	reconciler := s.crashed(shared.Reconciler)
	s.failsAt("by-spec", bySpec.Add(-truncation))
	ahead := s.stamp(s.create("ahead", deadlineAnnotation(55))).Add(55 * time.Second)
	s.running("ahead")

	webhook := s.crashed(shared.Webhook)
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("deleted")))
	s.deleted("deleted")
	s.gone("deleted")
	other.namespaceGone()
	// Trainer's end needs the webhook.
	s.holds("left", left.Add(2*time.Second))
	// As where the status is set to pass: then it is stored, and Trainer tries once to delete the
	// JobSet, which no webhook lets it.
	s.ignored("trainjob-status")
	s.becomes("left", trainer.ConditionFailed, "True/DeadlineExceeded")
	if children := s.children("left"); !strings.Contains(children, "JobSet left") {
		t.Fatalf("Trainer left %q: it shows nothing", children)
	}
	s.holds("annotated", annotated.Add(20*time.Second))
	if s.get("annotated").Terminal() {
		t.Fatal("failed by somebody else than the reconciler")
	}
	s.staysUntil(time.Now().Add(100*time.Millisecond), "removed", "removed-later")

	reconciler()
	returned := time.Now()
	if rest := time.Until(ahead); rest < time.Second {
		t.Fatalf("the reconciler was back %s before the deadline: it shows nothing", rest)
	}
	s.fails("annotated", returned)
	s.deleted("removed")
	s.eventually("the end of the JobSets", func() (bool, string) {
		return s.jobSetNamed("annotated") == nil && s.jobSetNamed("left") == nil, s.children("annotated") + s.children("left")
	})
	if late := time.Since(returned); late > lateness {
		t.Errorf("all that was overdue took %s", late)
	}
	s.gone("annotated")
	s.gone("left")
	s.holds("ahead", ahead)
	if late := s.failsAt("ahead", ahead); late > 2*time.Second {
		t.Errorf("failed %s after its deadline, want at most 2 s", late)
	}
	if _, late := removed.goes(75); late > 2*time.Second {
		t.Errorf("removed %s after its time, want at most 2 s", late)
	}
	webhook()
	s.leavesNothing("removed")
	s.leavesNothing("removed-later")
}
