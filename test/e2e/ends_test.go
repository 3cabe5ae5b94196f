package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

const trainerUser = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"

// statusPatch sends a merge patch to the status endpoint.
func (s *scene) statusPatch(c client.Client, name, patch string) {
	s.Helper()
	s.must(c.Status().Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// A stored end stays, whoever writes what: as it was, with its time, and alone.
func TestDeadlineEndIsFinal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	trainers, err := s.cluster.ClientFor(trainerUser)
	s.must(err)
	s.failsAt("job", s.stamp(s.create("job", deadlineAnnotation(5))).Add(5*time.Second))
	first := *meta.FindStatusCondition(s.get("job").Status.Conditions, trainer.ConditionFailed)
	for _, writer := range []client.Client{trainers, s.cluster.Client} {
		for _, patch := range []string{
			`{"status":{"conditions":null}}`,
			`{"status":{"conditions":[{"type":"Complete","status":"True","reason":"Done","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`,
			`{"status":{"conditions":[{"type":"Failed","status":"False","reason":"Fine","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`,
			`{"status":{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded","message":"later","lastTransitionTime":"2036-03-01T12:00:00Z"}]}}`,
		} {
			s.statusPatch(writer, "job", patch)
			job := s.get("job")
			if got := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed); got == nil || *got != first {
				t.Errorf("after %s: Failed = %+v, want %+v", patch, got, first)
			}
			if got := condition(job, trainer.ConditionComplete); got != "" {
				t.Errorf("after %s: Complete = %s", patch, got)
			}
		}
	}
	if left := s.children("job"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// Trainer's account cannot end a job early: not by a condition, not with a forged stamp beside
// it, not by deleting the JobSet.
func TestDeadlineTrainerCannotBeEarly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	trainers, err := s.cluster.ClientFor(trainerUser)
	s.must(err)
	start := s.stamp(s.create("job", deadline(3600)))
	s.running("job")

	s.eventually("a write of the status by Trainer's account", func() (bool, string) {
		// Trainer itself writes there too.
		put := s.trainJob("job")
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(put), put))
		set("2020-01-01T00:00:00Z", "metadata", "annotations", "lifecycle.trainer.kubeflow.org/resumed-at")(put)
		deadline(1)(put)
		set([]any{map[string]any{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z"}}, "status", "conditions")(put)
		err := trainers.Status().Update(s.ctx, put)
		if !apierrors.IsConflict(err) {
			s.must(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	job := s.get("job")
	if job.Terminal() || !s.stamp(job).Equal(start) || *job.Spec.ActiveDeadlineSeconds != 3600 {
		t.Errorf("after a forged status: conditions %+v, annotations %v, deadline %d", job.Status.Conditions, job.Annotations, *job.Spec.ActiveDeadlineSeconds)
	}
	err = trainers.Delete(s.ctx, s.jobSet())
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is not at its deadline yet") {
		t.Errorf("Trainer's deletion of the JobSet: %v, want Forbidden", err)
	}
	s.must(s.cluster.Client.Delete(s.ctx, s.jobSet()))
}

// With Trainer's controller away, what ends a job with the spec field is Signalbox alone.
func TestDeadlineBySpecWithTrainerAway(t *testing.T) {
	s := newScene(t)
	start := s.stamp(s.create("job", deadline(25)))
	s.running("job")
	before := s.figure(shared.Reconciler, "signalbox_deadline_expirations_total", "source", "spec")
	s.trainerAway()
	s.failsAt("job", start.Add(25*time.Second))
	message := meta.FindStatusCondition(s.get("job").Status.Conditions, trainer.ConditionFailed).Message
	if !strings.Contains(message, "longer than the limit of 25 s (spec.activeDeadlineSeconds)") {
		t.Errorf("message = %q", message)
	}
	if got := s.figure(shared.Reconciler, "signalbox_deadline_expirations_total", "source", "spec") - before; got != 1 {
		t.Errorf("expirations by spec = %v, want 1", got)
	}
}

// A job that was completed while Trainer was away has completed, however late Trainer says so.
func TestDeadlineCompletedWhileTrainerIsAway(t *testing.T) {
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(30)))
	s.running("job")
	back := s.trainerAway()
	s.finish("job")
	s.eventually("the end of the JobSet", func() (bool, string) {
		jobSet := s.jobSet()
		if jobSet == nil {
			return false, "none"
		}
		return strings.Contains(s.text(jobSet.Object["status"]), `"Completed"`), s.text(jobSet.Object["status"])
	})
	s.holds("job", start.Add(35*time.Second))
	back()
	s.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
	if got := condition(s.get("job"), trainer.ConditionFailed); got != "" {
		t.Errorf("Failed = %s", got)
	}
}

// A job that completes in the very second of its deadline is one or the other, never both,
// and stays so.
func TestDeadlineCompletedInTheSameSecond(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	end := s.stamp(s.create("job", deadline(25))).Add(25 * time.Second)
	pods := s.running("job")
	s.holds("job", end.Add(-truncation))
	for _, pod := range pods {
		// It may be gone already.
		_ = s.cluster.Client.Status().Patch(s.ctx, &pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))
	}
	var ended *trainer.TrainJob
	s.eventually("an end", func() (bool, string) { ended = s.get("job"); return ended.Terminal(), s.text(ended.Status) })
	for stop := end.Add(8 * time.Second); time.Now().Before(stop); time.Sleep(200 * time.Millisecond) {
		job := s.get("job")
		for _, kind := range []string{trainer.ConditionComplete, trainer.ConditionFailed} {
			if got, want := condition(job, kind), condition(ended, kind); got != want {
				t.Fatalf("%s was %q and became %q", kind, want, got)
			}
		}
	}
	if meta.IsStatusConditionTrue(ended.Status.Conditions, trainer.ConditionComplete) && meta.IsStatusConditionTrue(ended.Status.Conditions, trainer.ConditionFailed) {
		t.Errorf("ended both ways: %+v", ended.Status.Conditions)
	}
}

// A finalizer of one's own buys no time.
func TestDeadlineWhileBeingDeleted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(25), set([]any{"example.com/keep"}, "metadata", "finalizers")))
	s.running("job")
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
	for name, patch := range map[string]string{
		"removed":                            `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":null}}}`,
		"raised":                             `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"99999"}}}`,
		"raised, with the deletion left out": `{"metadata":{"deletionTimestamp":null,"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"99999"}}}`,
		"unstamped":                          `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"2099-01-01T00:00:00Z"}}}`,
	} {
		if job := s.patch("job", patch); job.Annotations["lifecycle.trainer.kubeflow.org/active-deadline-seconds"] != "25" || !s.stamp(job).Equal(start) {
			t.Errorf("%s: annotations %v", name, job.Annotations)
		}
	}
	s.holds("job", start.Add(25*time.Second))
	s.failsAt("job", start.Add(25*time.Second))
	s.patch("job", `{"metadata":{"finalizers":null}}`)
}

// Pods that never came to run do not stop the clock, and the message says it.
func TestDeadlineOfPendingPods(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	impossible := set(map[string]any{"requests": map[string]any{"cpu": "1000"}}, "spec", "trainer", "resourcesPerNode")
	start := s.stamp(s.create("job", deadlineAnnotation(20), impossible))
	s.eventually("a pending pod", func() (bool, string) {
		pods := s.pods("job")
		return len(pods) > 0 && pods[0].Status.Phase == corev1.PodPending, s.children("job")
	})
	s.failsAt("job", start.Add(20*time.Second))
	if message := meta.FindStatusCondition(s.get("job").Status.Conditions, trainer.ConditionFailed).Message; !strings.HasSuffix(message, "; no pod was ever ready") {
		t.Errorf("message = %q", message)
	}
}

// A job that hangs since its pod was evicted, with no room for another one, is still ended; it
// is not said that no pod was ever ready.
func TestDeadlineAfterAnEviction(t *testing.T) {
	s := newScene(t)
	start := s.stamp(s.create("job", deadlineAnnotation(25)))
	pods := s.running("job")
	s.cordon(true)
	t.Cleanup(func() { s.cordon(false) })
	s.must(s.cluster.Client.SubResource("eviction").Create(s.ctx, &pods[0], &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pods[0].Namespace, Name: pods[0].Name},
	}))
	s.eventually("a pending pod in its place", func() (bool, string) {
		now := s.pods("job")
		return len(now) == 1 && now[0].UID != pods[0].UID && now[0].Status.Phase == corev1.PodPending, s.children("job")
	})
	s.holds("job", start.Add(25*time.Second))
	s.failsAt("job", start.Add(25*time.Second))
	if message := meta.FindStatusCondition(s.get("job").Status.Conditions, trainer.ConditionFailed).Message; strings.Contains(message, "ever ready") {
		t.Errorf("message = %q", message)
	}
}

// cordon keeps new pods from all nodes, or lets them come.
func (s *scene) cordon(closed bool) {
	s.Helper()
	var nodes corev1.NodeList
	s.must(s.cluster.Client.List(context.Background(), &nodes))
	for i := range nodes.Items {
		patch := fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, closed)
		s.must(s.cluster.Client.Patch(context.Background(), &nodes.Items[i], client.RawPatch(types.MergePatchType, []byte(patch))))
	}
}

// The clock runs on over the restarts of a JobSet.
func TestDeadlineCountsOverRestarts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("restarts", `{"failurePolicy":{"maxRestarts":3},"replicatedJobs":[{"name":"node","template":{
		"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},
		"spec":{"backoffLimit":0,"template":{"spec":{"containers":[{"name":"node","image":"example.com/train"}]}}}}}]}`)
	start := s.stamp(s.create("job", deadlineAnnotation(40), set("restarts", "spec", "runtimeRef", "name"), set("TrainingRuntime", "spec", "runtimeRef", "kind")))
	pods := s.running("job")
	s.must(s.cluster.Client.Status().Patch(s.ctx, &pods[0], client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))))
	s.eventually("pods of the second attempt", func() (bool, string) {
		again := s.pods("job")
		return len(again) == 1 && again[0].Labels[trainer.LabelRestartAttempt] == "1" && again[0].Status.Phase == corev1.PodRunning, s.children("job")
	})
	if time.Now().After(start.Add(40 * time.Second)) {
		t.Fatal("the restart came after the deadline: it shows nothing")
	}
	s.holds("job", start.Add(40*time.Second))
	s.failsAt("job", start.Add(40*time.Second))
}
