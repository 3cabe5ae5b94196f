package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// A deadline whose nanoseconds do not fit 64 bits: stock ends the job at its first look.
func TestDeadlineThatOverflows(t *testing.T) {
	t.Parallel()
	const seconds = 9223372037
	t.Run("stock fails it at once", func(t *testing.T) {
		t.Parallel()
		s := newSceneOn(t, stock)
		s.create("job", deadline(seconds))
		s.becomes("job", trainer.ConditionFailed, "True/DeadlineExceeded")
	})
	t.Run("signalbox denies it", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		err := s.cluster.Client.Create(s.ctx, s.trainJob("job", deadline(seconds)))
		want := "spec.activeDeadlineSeconds: Invalid value: 9223372037: must be less than or equal to 4294967295"
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("created with %v, want Invalid: %s", err, want)
		}
	})
}

// A deadline removed and added again: stock checks only what is there before and after.
func TestDeadlineRemovedAndAdded(t *testing.T) {
	t.Parallel()
	const (
		remove = `{"spec":{"activeDeadlineSeconds":null}}`
		add    = `{"spec":{"activeDeadlineSeconds":99999999}}`
	)
	t.Run("stock lets it grow", func(t *testing.T) {
		t.Parallel()
		s := newSceneOn(t, stock)
		s.create("job", suspended(), deadline(3600))
		s.patch("job", remove)
		if got := s.patch("job", add).Spec.ActiveDeadlineSeconds; got == nil || *got != 99999999 {
			t.Errorf("deadline = %v: stock has no such fault any more", got)
		}
	})
	t.Run("signalbox keeps it", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.create("job", suspended(), deadline(3600))
		s.create("without", suspended())
		warned := s.warned(func(c client.Client) {
			for _, patch := range []client.Patch{
				client.RawPatch(types.MergePatchType, []byte(remove)),
				client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/activeDeadlineSeconds"}]`)),
			} {
				s.must(c.Patch(s.ctx, s.trainJob("job"), patch))
			}
			// Trainer may write the status between the read and the PUT.
			s.eventually("a PUT", func() (bool, string) {
				put := s.trainJob("job", suspended(), set("ours", "metadata", "labels", "team"))
				put.SetResourceVersion(s.get("job").ResourceVersion)
				err := c.Update(s.ctx, put)
				if !apierrors.IsConflict(err) {
					s.must(err)
				}
				return err == nil, fmt.Sprint(err)
			})
		})
		want := "spec.activeDeadlineSeconds: field is immutable: the change was undone"
		// One that met a conflict warned, too.
		if len(warned) < 3 || slices.ContainsFunc(warned, func(text string) bool { return text != want }) {
			t.Errorf("warnings = %q, want three times %q", warned, want)
		}
		job := s.get("job")
		if got := job.Spec.ActiveDeadlineSeconds; got == nil || *got != 3600 || job.Labels["team"] != "ours" {
			t.Errorf("after a patch, a JSON patch and a PUT: deadline %v, labels %v; want 3600 and the label", got, job.Labels)
		}
		for name, patch := range map[string]string{"job": add, "without": add} {
			err := s.cluster.Client.Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch)))
			if want := "spec.activeDeadlineSeconds: Invalid value: 99999999: field is immutable"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("changed on TrainJob %s with %v, want Invalid: %s", name, err, want)
			}
		}
		annotation := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"99999999"}}}`))
		if err := s.cluster.Client.Patch(s.ctx, s.trainJob("without"), annotation); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "field is immutable") {
			t.Errorf("annotation added with %v, want Invalid", err)
		}
	})
}

// Suspended while Trainer's controller is away, longer than the deadline, then resumed:
// stock counts from the creation.
func TestDeadlineSuspensionThatTrainerNeverSaw(t *testing.T) {
	// More than the tolerance of 30 s, within which Trainer's own word counts.
	const limit = 36 * time.Second
	// The two clusters go through it at the same time; both are to themselves.
	t.Run("on both", func(t *testing.T) {
		unseen := func(s *scene) time.Time {
			back := s.trainerAway()
			created := s.create("job", suspended(), deadline(int64(limit.Seconds()))).CreationTimestamp.Time
			s.holds("job", created.Add(limit+3*time.Second))
			s.resume("job")
			resumed := time.Now()
			back()
			return resumed
		}
		t.Run("stock fails it at once", func(t *testing.T) {
			t.Parallel()
			s := newSceneOn(t, stock)
			resumed := unseen(s)
			if seen := s.becomes("job", trainer.ConditionFailed, "True/DeadlineExceeded"); seen.Sub(resumed) > limit {
				t.Errorf("failed %s after the resume: stock has no such fault any more", seen.Sub(resumed))
			}
		})
		t.Run("signalbox gives it its whole time", func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			unseen(s)
			s.running("job")
			start := s.stamp(s.get("job"))
			s.holds("job", start.Add(limit))
			s.failsAt("job", start.Add(limit))
		})
	})
}

// A job that failed for another reason than its deadline: when its JobSet goes, stock clears
// Failed and runs the job again.
func TestDeadlineFailedStaysFailed(t *testing.T) {
	t.Parallel()
	crash := func(s *scene) types.UID {
		s.create("job", deadline(3600))
		s.running("job")
		jobSet := s.jobSet()
		s.must(s.cluster.Client.Status().Patch(s.ctx, jobSet, client.RawPatch(types.MergePatchType, []byte(
			`{"status":{"terminalState":"Failed","conditions":[{"type":"Failed","status":"True","reason":"FailedJobs","message":"a job failed","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`))))
		s.becomes("job", trainer.ConditionFailed, "True/FailedJobs")
		uid := jobSet.GetUID()
		s.must(s.cluster.Client.Delete(s.ctx, jobSet))
		return uid
	}
	t.Run("stock runs it again", func(t *testing.T) {
		t.Parallel()
		s := newSceneOn(t, stock)
		first := crash(s)
		s.eventually("another JobSet", func() (bool, string) {
			jobSet := s.jobSet()
			return jobSet != nil && jobSet.GetUID() != first, s.children("job")
		})
	})
	t.Run("signalbox keeps it failed", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		crash(s)
		s.gone("job")
		before := s.get("job").Status
		// Trainer looks again at every change.
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
			s.patch("job", `{"metadata":{"labels":{"at":"`+time.Now().Format("150405.000")+`"}}}`)
			if left := s.children("job"); left != "" {
				t.Fatalf("a failed TrainJob has %s", left)
			}
		}
		job := s.get("job")
		if got := condition(job, trainer.ConditionFailed); got != "True/FailedJobs" {
			t.Errorf("Failed = %s; status was %v, is %v", got, before, job.Status)
		}
	})
}

// warned runs an action with a client that collects the warnings of the API server.
func (s *scene) warned(action func(client.Client)) []string {
	s.Helper()
	var collected warnings
	config := rest.CopyConfig(s.cluster.Config)
	config.WarningHandler = &collected
	c, err := client.New(config, client.Options{Scheme: s.cluster.Client.Scheme()})
	s.must(err)
	action(c)
	return collected.texts
}

// warnings collects the warnings of an API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}
