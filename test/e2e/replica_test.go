package e2e_test

import (
	"context"
	"testing"
	"time"
)

// Of two reconcilers one acts. The other takes over when it goes: at once when it says so,
// after the lease has run out when it crashed.
func TestOutageOfOneReconciler(t *testing.T) {
	s := newScene(t)
	second := shared.Replica(shared.Reconciler, "signalbox-reconciler-1")
	s.must(second.Start(s.ctx))
	t.Cleanup(func() {
		// The first one leads again for the tests that follow.
		_ = second.Stop(context.Background())
		if !shared.Reconciler.Running() {
			s.must(shared.Reconciler.Start(context.Background()))
		}
	})
	end := s.stamp(s.create("stopped", deadlineAnnotation(6))).Add(6 * time.Second)
	if looks := s.figure(second, "controller_runtime_reconcile_total", "controller", "deadline"); looks != 0 {
		t.Errorf("the second looked at %v TrainJobs beside the first", looks)
	}
	s.must(shared.Reconciler.Stop(s.ctx))
	stopped := time.Now()
	// The Lease would have run out after 13 s at the earliest.
	if took := end.Add(s.failsAt("stopped", end)).Sub(stopped); took > 12*time.Second {
		t.Errorf("failed %s after the first had said that it goes", took)
	}

	s.must(shared.Reconciler.Start(s.ctx))
	// By then the Lease has about run out.
	end = s.stamp(s.create("crashed", deadlineAnnotation(15))).Add(15 * time.Second)
	second.Kill()
	s.failsAt("crashed", end)
}
