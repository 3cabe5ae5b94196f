package e2e_test

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// A deadline that passes while the reconciler is away is enforced when it is back.
func TestDeadlineReconcilerBackAfterIt(t *testing.T) {
	s := newScene(t)
	end := s.stamp(s.create("job", deadlineAnnotation(10))).Add(10 * time.Second)
	s.running("job")
	shared.Reconciler.Kill()
	s.holds("job", end.Add(20*time.Second))
	if s.get("job").Terminal() {
		t.Fatal("failed by somebody else than the reconciler")
	}
	s.must(shared.Reconciler.Start(s.ctx))
	s.failsAt("job", end.Add(20*time.Second))
}

// A reconciler that is killed and back before the deadline fires on time: its pod takes its
// own lease back, and the timer is set anew from what is stored.
func TestDeadlineReconcilerBackBeforeIt(t *testing.T) {
	s := newScene(t)
	end := s.stamp(s.create("job", deadlineAnnotation(15))).Add(15 * time.Second)
	s.running("job")
	shared.Reconciler.Kill()
	s.must(shared.Reconciler.Start(s.ctx))
	if rest := time.Until(end); rest < time.Second {
		t.Fatalf("the restart took until %s before the deadline: it shows nothing", rest)
	}
	s.holds("job", end)
	if late := s.failsAt("job", end); late > 2*time.Second {
		t.Errorf("failed %s after its deadline, want at most 2 s", late)
	}
}

// While the webhook is away, what needs its stamp is refused and everything else passes;
// what it stamped before still counts.
func TestDeadlineWebhookRestart(t *testing.T) {
	s := newScene(t)
	start := s.stamp(s.create("active", deadlineAnnotation(3600)))
	s.create("waiting", suspended(), deadlineAnnotation(6))
	s.becomes("waiting", trainer.ConditionSuspended, "True/Suspended")
	s.must(shared.Webhook.Stop(s.ctx))
	t.Cleanup(func() {
		if !shared.Webhook.Running() {
			s.must(shared.Webhook.Start(context.Background()))
		}
	})

	if err := s.cluster.Client.Create(s.ctx, s.trainJob("new")); err == nil {
		t.Error("created without the webhook")
	}
	resume := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`))
	if err := s.cluster.Client.Patch(s.ctx, s.trainJob("waiting"), resume); err == nil {
		t.Error("resumed without the webhook")
	}
	s.patch("active", `{"metadata":{"labels":{"a":"b"}}}`)
	s.must(s.cluster.Client.Status().Patch(s.ctx, s.trainJob("active"), client.RawPatch("application/merge-patch+json", []byte(`{"status":{}}`))))
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("active")))
	s.gone("active")

	s.must(shared.Webhook.Start(s.ctx))
	again := s.stamp(s.resume("waiting"))
	if !again.After(start) {
		t.Errorf("resumed with the stamp %s", again)
	}
	s.failsAt("waiting", again.Add(6*time.Second))
	if _, found := s.create("new", suspended()).Annotations[v1alpha1.AnnotationResumedAt]; found {
		t.Error("created suspended with a stamp")
	}
}
