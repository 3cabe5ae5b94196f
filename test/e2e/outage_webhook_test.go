package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// While no webhook answers, what starts or stops a TrainJob is refused, and says why; all else
// passes, above all what ends. When one is back, what was held up goes on by itself, and the
// deadlines that were given before and after are kept.
func TestOutageOfTheWebhook(t *testing.T) {
	s, other := newScene(t), newScene(t)
	s.stage()
	for _, name := range []string{"deleted", "restarted"} {
		s.create(name, deadline(3600))
	}
	other.create("job", deadline(3600))
	s.running("deleted")
	s.running("restarted")
	other.running("job")
	start := s.stamp(s.create("expires", deadlineAnnotation(25)))
	bySpec := s.stamp(s.create("expires-by-spec", deadline(25)))
	s.running("expires")
	s.running("expires-by-spec")
	rejections := func() float64 {
		return s.apiServerFigure("apiserver_admission_webhook_rejection_count", "name", "trainjob.lifecycle.trainer.kubeflow.org", "error_type", "calling_webhook_error")
	}
	before := rejections()

	back := s.crashed(shared.Webhook)
	// What ends.
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("deleted")))
	s.must(s.cluster.Client.Delete(s.ctx, s.jobSetNamed("restarted")))
	s.finish("holder")
	s.becomes("holder", trainer.ConditionComplete, "True/AllJobsCompleted")
	s.gone("deleted")
	other.namespaceGone()
	s.asks(t, "trainjob", "trainjob-status", "jobset")
	if got := rejections() - before; got < 5 {
		t.Errorf("the API server counts %v rejections, want one for each", got)
	}
	if out := s.kubectl(s.text(s.trainJob("new").Object), "apply", "--filename", "-"); !strings.HasPrefix(out, `Error from server (InternalError): error when creating "STDIN": Internal error occurred: `+
		`failed calling webhook "trainjob.lifecycle.trainer.kubeflow.org": failed to call webhook: Post "https://`) {
		t.Errorf("kubectl prints %s", out)
	}
	s.failsAt("expires", start.Add(25*time.Second))
	s.failsAt("expires-by-spec", bySpec.Add(25*time.Second-truncation))
	// What is held up.
	s.eventually("a refusal of the JobSet that Trainer makes anew", func() (bool, string) {
		events := s.warnings("restarted")
		return strings.Contains(events, `failed calling webhook "jobset.lifecycle.trainer.kubeflow.org"`), events
	})
	s.eventually("an attempt of Kueue to resume a TrainJob", func() (bool, string) {
		return s.kueueErrors("queued", "failed calling webhook") > 0, s.text(s.get("queued"))
	})
	if job := s.get("queued"); job.Active() || len(s.pods("restarted")) > 0 {
		t.Fatalf("started without the webhook: %s %s", s.text(job), s.children("restarted"))
	}

	until := time.Now()
	back()
	s.running("queued")
	queued := s.stamp(s.get("queued"))
	if queued.Before(until) {
		t.Errorf("resumed with the stamp %s, of before %s", queued, until)
	}
	s.running("restarted")
	waiting := s.stamp(s.resume("waiting"))
	s.failsAt("waiting", waiting.Add(6*time.Second))
	s.failsAt("queued", queued.Add(15*time.Second))
	if _, found := s.create("new", suspended()).Annotations[v1alpha1.AnnotationResumedAt]; found {
		t.Error("created suspended with a stamp")
	}
}

// With failurePolicy Ignore and no webhook in reach, everything passes. TrainJobs start without a
// stamp: the clock starts at the creation, or when Trainer reports the resume.
func TestOutageOfTheWebhookIgnored(t *testing.T) {
	s := newScene(t)
	s.stage()
	s.ignored("trainjob", "trainjob-status", "jobset")
	s.crashed(shared.Webhook)
	open := func() float64 {
		return s.apiServerFigure("apiserver_admission_webhook_fail_open_count", "name", "trainjob.lifecycle.trainer.kubeflow.org")
	}
	// A copied stamp from last year comes through, and does not count.
	old := annotated(v1alpha1.AnnotationResumedAt, "2025-01-01T00:00:00Z")
	var job *trainer.TrainJob
	s.eventually("a creation without the webhook", func() (bool, string) {
		manifest := s.trainJob("job", deadlineAnnotation(12), old)
		err := s.cluster.Client.Create(s.ctx, manifest)
		job = s.view(manifest)
		return err == nil, fmt.Sprint(err)
	})
	before := open()
	s.asks(t)
	if got := open() - before; got < 5 {
		t.Errorf("the API server counts %v requests that passed unasked, want one for each", got)
	}
	s.resume("waiting")
	s.becomes("waiting", trainer.ConditionSuspended, "False/Resumed")
	resumed := meta.FindStatusCondition(s.get("waiting").Status.Conditions, trainer.ConditionSuspended).LastTransitionTime.Time
	s.failsAt("waiting", resumed.Add(6*time.Second))
	s.failsAt("job", job.CreationTimestamp.Add(12*time.Second))

	// An end that a stale writer erases does not stay so: the reconciler sets it again.
	s.statusPatch(s.cluster.Client, "job", `{"status":{"conditions":null}}`)
	s.becomes("job", trainer.ConditionFailed, "True/DeadlineExceeded")
	s.gone("job")
}

// A webhook that hangs is as one that is away, after the five seconds for which it is waited: only
// what is asked about it waits at all.
func TestOutageOfAWebhookThatHangs(t *testing.T) {
	s, other := newScene(t), newScene(t)
	train := s.stored(s.object(namespaced, "train", jobSetOf(oldImage)))
	s.create("deleted", deadline(3600))
	other.create("job", deadline(3600))
	s.running("deleted")
	other.running("job")
	start := s.stamp(s.create("expires", deadlineAnnotation(12)))
	s.must(shared.Webhook.Freeze())
	t.Cleanup(func() { s.must(shared.Webhook.Thaw()) })

	created, edited := make(chan error, 1), make(chan error, 1)
	began := time.Now()
	go func() { created <- s.cluster.Client.Create(s.ctx, s.trainJob("new")) }()
	// Both of its webhooks for runtimes are waited for.
	go func() {
		edited <- s.cluster.Client.Patch(s.ctx, bare(train), client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":"`+newImage+`"}]`)))
	}()
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("deleted")))
	s.patch("expires", `{"metadata":{"labels":{"a":"b"}}}`)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("what needs no webhook took %s", took)
	}
	err := <-created
	if took := time.Since(began); !notCalling(err, "trainjob") || !strings.Contains(err.Error(), "?timeout=5s") ||
		!strings.Contains(err.Error(), "context deadline exceeded") || took < 4*time.Second || took > 15*time.Second {
		t.Errorf("created after %s with %v", took, err)
	}
	if err := <-edited; err != nil || !strings.Contains(s.text(s.specOf(train.GetName())), newImage) {
		t.Errorf("edited with %v", err)
	}
	s.gone("deleted")
	other.namespaceGone()
	s.failsAt("expires", start.Add(12*time.Second))

	s.must(shared.Webhook.Thaw())
	// It works through what was asked meanwhile first.
	s.eventually("an answer", func() (bool, string) {
		err := s.cluster.Client.Create(s.ctx, s.trainJob("new"), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	s.failsAt("new", s.stamp(s.create("new", deadlineAnnotation(5))).Add(5*time.Second))
}

// An end that Trainer finds too early is not stored either while no webhook is there to say so:
// it is refused until one is.
func TestOutageOfTheWebhookNothingIsEarly(t *testing.T) {
	s := newScene(t)
	trainers := s.trainerAway()
	created := s.create("job", suspended(), deadline(10)).CreationTimestamp.Time
	s.holds("job", created.Add(11*time.Second))
	start := s.stamp(s.resume("job"))
	back := s.crashed(shared.Webhook)
	trainers()
	s.holds("job", start.Add(4*time.Second))
	back()
	end := start.Add(10 * time.Second)
	s.holds("job", end)
	// Until the webhook is there, it cannot fail.
	if now := time.Now(); now.After(end) {
		end = now
	}
	s.failsAt("job", end)
}
