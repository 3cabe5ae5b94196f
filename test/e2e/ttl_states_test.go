package e2e_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// No suspended TrainJob is ever removed, whoever has suspended it and whatever its status says.
func TestTTLNotWhileSuspended(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.sets("p", `{"ttlAfterFinished":{"succeeded":"1s","failed":"1s","max":"1s"}}`)
	s.create("halted", suspended(), stayAnnotation(0))
	s.becomes("halted", trainer.ConditionSuspended, "True/Suspended")
	s.finishedAs("halted", trainer.ConditionComplete)
	s.create("job", queued(), oneCPU(), stayAnnotation(0))
	s.running("job")
	s.preempt("job", "urgent")
	s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
	s.noPods("job")
	s.stays("job", "halted")

	s.resume("halted")
	s.deleted("halted")
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("urgent")))
	s.admission("job")
	s.stays("job")
	s.finish("job")
	s.leavesNothing("job")
}

// Of a finish in the future, by the clock of whoever wrote it, the time to stay counts from then.
// The log says so with every look, and there are but a few.
func TestTTLFinishedInTheFuture(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create("job", stayAnnotation(1))
	s.running("job")
	at := time.Now().Add(8 * time.Second).Truncate(time.Second)
	s.finishedAt("job", trainer.ConditionComplete, at)
	s.staysUntil(at.Add(time.Second), "job")
	s.leavesNothing("job")
	s.told("job", corev1.EventTypeNormal, "TTLExpired", removedText(at, 1, byAnnotation))
	if lines := s.logged(shared.Reconciler, "finished in the future", s.namespace); len(lines) < 1 || len(lines) > 10 {
		t.Errorf("logged %d times: %s", len(lines), lines)
	}
}

// What is there under the name of a TrainJob whose time is over is another one: its own time
// counts.
func TestTTLOfNamesakes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create("job", stayAnnotation(5))
	due := time.Now().Add(5 * time.Second)
	s.finishedAs("job", trainer.ConditionComplete)
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
	s.deleted("job")
	s.create("job", stayAnnotation(3600))
	s.finishedAs("job", trainer.ConditionComplete)
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
	s.deleted("job")
	job := s.create("job", stayAnnotation(0))
	s.staysUntil(due.Add(stayed), "job")
	if now := s.get("job"); now.UID != job.UID || now.Terminal() {
		t.Fatalf("it is another one now, or finished: %s", s.text(now))
	}
	if events := s.events("job", "TTLExpired"); len(events) > 0 {
		t.Errorf("told of a removal: %s", s.text(events))
	}
	s.finishedAs("job", trainer.ConditionComplete)
	s.leavesNothing("job")
}

// TrainJobs that are to stay, or are just going, do not hold up the end of their namespace.
func TestTTLOfANamespaceThatEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sets("p", `{"ttlAfterFinished":{"max":"1h"}}`)
	for name, seconds := range map[string]int{"long": 3600, "now": 0, "soon": 1} {
		s.create(name, stayAnnotation(seconds))
	}
	s.create("free")
	s.create("unfinished")
	s.running("long")
	for _, name := range []string{"long", "now", "soon", "free"} {
		s.finishedAs(name, trainer.ConditionComplete)
	}
	s.namespaceGone()
}

// A finalizer of somebody keeps a TrainJob that is to go: it is deleted once, and then nobody looks
// at it any more.
func TestTTLWithAFinalizer(t *testing.T) {
	s := newScene(t)
	removals, before := s.removals("annotation"), s.cleanUps()
	s.create("job", stayAnnotation(0), set([]any{"example.com/keep"}, "metadata", "finalizers"))
	s.running("job")
	s.finish("job")
	s.eventually("the deletion of TrainJob job", func() (bool, string) {
		job := s.get("job")
		return job.DeletionTimestamp != nil, s.text(job)
	})
	s.told("job", corev1.EventTypeNormal, "TTLExpired", removedText(s.get("job").FinishedAt().LastTransitionTime.Time, 0, byAnnotation))
	last, since := s.cleanUps(), time.Now()
	s.eventually("5 s without a look", func() (bool, string) {
		if now := s.cleanUps(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 5*time.Second, "the clean-up is busy"
	})
	if looks := last - before; looks < 1 || looks > 10 {
		t.Errorf("looked at it %v times", looks)
	}
	if got := s.removals("annotation") - removals; got != 1 {
		t.Errorf("removed %v times", got)
	}
	s.patch("job", `{"metadata":{"finalizers":null}}`)
	s.leavesNothing("job")
}
