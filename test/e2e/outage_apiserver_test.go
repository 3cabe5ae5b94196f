package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// API server and etcd crash and come back. What had its deadline meanwhile ends at once, what has
// it later on time, each with one event, also where the reconciler gives up and starts anew; and it
// is not busier than it must be.
func TestOutageOfTheAPIServer(t *testing.T) {
	s := newScene(t)
	s.create("quiet", deadline(3600))
	s.create("waiting", suspended(), deadlineAnnotation(5))
	s.running("quiet")
	meanwhile := s.stamp(s.create("meanwhile", deadlineAnnotation(15))).Add(15 * time.Second)
	// Far enough for watches that ask anew only a while after the API server is back.
	later := s.stamp(s.create("later", deadlineAnnotation(75))).Add(75 * time.Second)
	s.running("meanwhile")
	s.running("later")
	s.holds("meanwhile", meanwhile.Add(-time.Second))
	looks := s.reconciles()
	t.Cleanup(func() { s.must(startAll()) })
	shared.APIServer.Kill()
	shared.Etcd.Kill()
	s.must(startAll())
	returned := time.Now()
	if returned.Before(meanwhile) {
		t.Fatal("the API server was back before the deadline: it shows nothing")
	}

	s.eventually("the end of TrainJob meanwhile", func() (bool, string) {
		if !shared.Reconciler.Running() {
			// It has given up only now.
			s.must(startAll())
			returned = time.Now()
		}
		job := s.get("meanwhile")
		return job.Terminal(), s.text(job.Status)
	})
	s.fails("meanwhile", returned)
	// What came up meanwhile goes on by itself.
	waiting := s.stamp(s.resume("waiting"))
	if seen := s.becomes("waiting", trainer.ConditionFailed, "True/DeadlineExceeded"); seen.Before(waiting.Add(5 * time.Second)) {
		t.Errorf("failed at %s, resumed at %s", seen, waiting)
	}
	s.eventually("the events of what ended", func() (bool, string) {
		told := len(s.events("meanwhile", trainer.ReasonDeadlineExceeded)) + len(s.events("waiting", trainer.ReasonDeadlineExceeded))
		return told == 2, fmt.Sprint(told)
	})
	if got := s.reconciles() - looks; got > 100 {
		t.Errorf("%v looks of the reconciler at 4 TrainJobs", got)
	}
	s.crashed(shared.Reconciler)()
	if rest := time.Until(later); rest < time.Second {
		t.Fatalf("the restart took until %s before the deadline: it shows nothing", rest)
	}
	s.holds("later", later)
	if late := s.failsAt("later", later); late > 2*time.Second {
		t.Errorf("failed %s after its deadline, want at most 2 s", late)
	}
	for _, name := range []string{"meanwhile", "later", "waiting"} {
		s.gone(name)
		for _, reason := range []string{trainer.ReasonDeadlineExceeded, "DeadlineApproaching"} {
			if name == "meanwhile" && reason == "DeadlineApproaching" {
				continue // it was due just then: told or not
			}
			s.eventually("the event "+reason+" of TrainJob "+name, func() (bool, string) {
				events := s.events(name, reason)
				return len(events) == 1 && events[0].Count == 1 && events[0].Type == corev1.EventTypeWarning, s.text(events)
			})
		}
	}
	s.create("new")
	s.finish("new")
	s.becomes("new", trainer.ConditionComplete, "True/AllJobsCompleted")
}

// startAll starts the parts of the cluster that do not run: those that were killed, and those that
// gave up since the API server was away, as their pods would be.
func startAll() error {
	for _, part := range []*cluster.Process{
		shared.Etcd, shared.APIServer, shared.ControllerManager, shared.Scheduler, shared.Kwok,
		shared.JobSet, shared.Trainer, shared.Kueue, shared.Webhook, shared.Reconciler,
	} {
		if part.Running() {
			continue
		}
		if err := part.Start(context.Background()); err != nil {
			return err
		}
	}
	return nil
}
