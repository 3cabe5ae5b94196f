package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// exceededBy checks what a TrainJob that failed by a deadline that it was given says of it.
func (s *scene) exceededBy(name string, start time.Time, seconds int, by string) {
	s.Helper()
	message := meta.FindStatusCondition(s.get(name).Status.Conditions, trainer.ConditionFailed).Message
	want := fmt.Sprintf("active since %s, longer than the limit of %d s (spec.activeDeadlineSeconds from %s)", start.UTC().Format(time.RFC3339), seconds, by)
	if message != want {
		s.Errorf("TrainJob %s failed with %q, want %q", name, message, want)
	}
	s.told(name, "Warning", "DeadlineExceeded", want)
}

// With Trainer's controller away, what ends TrainJobs by the deadlines that they were given is
// Signalbox alone. It says by whom.
func TestPolicyDeadlineEnds(t *testing.T) {
	s := newScene(t)
	runtime := s.object(namespaced, "train", jobSetOf(oldImage))
	runtime.SetAnnotations(map[string]string{v1alpha1.AnnotationDefaultActiveDeadlineSeconds: "26"})
	s.stored(runtime)
	s.sets("p", `{"activeDeadline":{"default":"25s"}}`)
	s.gives(by(25, s.byPolicyNamed("p")))
	s.gives(by(26, "TrainingRuntime/train"), on(runtime))
	sources := []string{"policy", "runtime", "spec", "annotation"}
	expirations := func() (counts []float64) {
		for _, source := range sources {
			counts = append(counts, s.figure(shared.Reconciler, "signalbox_deadline_expirations_total", "source", source))
		}
		return counts
	}
	before := expirations()
	first, second := s.stamp(s.create("first")), s.stamp(s.create("second", on(runtime)))
	s.running("first")
	s.running("second")
	s.trainerAway()
	s.holds("first", first.Add(25*time.Second))
	late := s.failsAt("first", first.Add(25*time.Second))
	if late > 2*time.Second {
		t.Errorf("failed %s after its deadline, want at most 2 s", late)
	}
	s.failsAt("second", second.Add(26*time.Second))
	s.exceededBy("first", first, 25, s.byPolicyNamed("p"))
	s.exceededBy("second", second, 26, "TrainingRuntime/train")
	for i, count := range expirations() {
		want := before[i]
		if i < 2 {
			want++
		}
		if count != want {
			t.Errorf("expirations by %s went from %v to %v, want %v", sources[i], before[i], count, want)
		}
	}
}

// A suspended TrainJob gets its deadline when it is created, and no clock runs until it starts.
func TestPolicyOfASuspendedTrainJob(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sets("p", `{"activeDeadline":{"default":"5s"}}`)
	s.gives(by(5, s.byPolicyNamed("p")))
	job := s.create("job", suspended())
	if given(job) != by(5, s.byPolicyNamed("p")) || job.Annotations[v1alpha1.AnnotationResumedAt] != "" {
		t.Fatalf("created with %q and annotations %v", given(job), job.Annotations)
	}
	s.holds("job", job.CreationTimestamp.Add(7*time.Second))
	start := s.stamp(s.resume("job"))
	s.failsAt("job", start.Add(5*time.Second-truncation))
	if got := given(s.get("job")); got != by(5, s.byPolicyNamed("p")) {
		t.Errorf("ended with %q", got)
	}
}

// Queued by Kueue, a TrainJob gets the same. Its time in the queue costs nothing, and Kueue admits
// it, preempts it and admits it again as any other.
func TestPolicyInAQueue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.create("first", queued(), oneCPU())
	s.running("first")
	s.sets("p", `{"activeDeadline":{"default":"6s"}}`)
	s.gives(by(6, s.byPolicyNamed("p")))
	job := s.create("job", queued(), oneCPU())
	if given(job) != by(6, s.byPolicyNamed("p")) || job.Active() {
		t.Fatalf("queued with %q and suspend %v", given(job), job.Spec.Suspend)
	}
	s.holds("job", job.CreationTimestamp.Add(8*time.Second))
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("first")))
	start := s.stamp(s.admission("job"))
	if patches := s.patchesOfKueue("job"); patches != 1 {
		t.Errorf("Kueue's runtimePatches came %d times, want once", patches)
	}
	s.failsAt("job", start.Add(6*time.Second-truncation))
	if got := given(s.get("job")); got != by(6, s.byPolicyNamed("p")) {
		t.Errorf("ended with %q", got)
	}
}

// While LifecyclePolicies are not installed, all else goes on, also after a restart; once they are,
// they count.
func TestPolicyNotInstalled(t *testing.T) {
	s := newScene(t)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lifecyclepolicies." + v1alpha1.Group}}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(crd), crd))
	stopped := []func(){s.away(shared.Webhook), s.away(shared.Reconciler)}
	s.must(s.cluster.Client.Delete(s.ctx, crd.DeepCopy()))
	install := sync.OnceFunc(func() {
		s := s.afterwards()
		crd.ResourceVersion, crd.UID, crd.Status = "", "", apiextensionsv1.CustomResourceDefinitionStatus{}
		s.eventually("the creation of the CRD", func() (bool, string) {
			err := s.cluster.Client.Create(s.ctx, crd.DeepCopy())
			return err == nil, fmt.Sprint(err)
		})
	})
	s.Cleanup(install)
	for _, back := range stopped {
		back()
	}
	s.failsAt("job", s.stamp(s.create("job", deadlineAnnotation(5))).Add(5*time.Second))
	// A controller that watches what is not there says so again and again, and ends the process
	// after two minutes: none may.
	if lines := s.logged(shared.Reconciler, "a kind of Signalbox's own is not installed; what needs it waits", `"kind":"LifecyclePolicy"`); len(lines) == 0 {
		t.Error("the reconciler does not say that it waits")
	}
	if lines := s.logged(shared.Reconciler, "if kind is a CRD, it should be installed before calling Start", "LifecyclePolicy"); len(lines) > 0 {
		t.Errorf("something watches what is not there: %s", lines[0])
	}

	install()
	s.eventually("a policy", func() (bool, string) {
		err := s.cluster.Client.Create(s.ctx, s.lifecyclePolicy("p", `{"activeDeadline":{"default":"1h"},"ttlAfterFinished":{"failed":"1s"}}`))
		return err == nil, fmt.Sprint(err)
	})
	s.gives(by(3600, s.byPolicyNamed("p")))
	s.policyIs(s.lifecyclePolicy("p", "{}"), "True/InForce", 1)
	s.deleted("job")
}

// A webhook that has just started decides by all policies from its first answer, also by those
// that were written while it was away.
func TestPolicyFromTheFirstAnswerOfAWebhook(t *testing.T) {
	s := newScene(t)
	policy := s.sets("p", `{"activeDeadline":{"default":"1h"}}`)
	s.gives(by(3600, s.byPolicyNamed("p")))
	for i := range 2 {
		back := s.away(shared.Webhook)
		s.resets(policy, fmt.Sprintf(`{"activeDeadline":{"default":"%dh"}}`, i+2))
		back()
		if got, want := given(s.create(fmt.Sprint("job-", i))), by(int64(3600*(i+2)), s.byPolicyNamed("p")); got != want {
			t.Errorf("the first after a restart has %q, want %q", got, want)
		}
	}
	back := s.away(shared.Webhook)
	if err := s.cluster.Client.Create(s.ctx, s.trainJob("away")); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("created without the webhook, which gives deadlines: %v", err)
	}
	s.must(s.cluster.Client.Delete(s.ctx, bare(policy)))
	back()
	if got := given(s.create("last")); got != "" {
		t.Errorf("with the policy gone: %q", got)
	}
}
