package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// states makes a TrainJob in each state on the runtime "train", which has the old image, and
// returns the pods of the running one.
func (s *scene) states() []corev1.Pod {
	s.Helper()
	s.runtime("train", jobSetOf(oldImage))
	s.create("waiting", suspended(), onRuntime("train"))
	for _, name := range []string{"running", "paused", "finished"} {
		s.create(name, onRuntime("train"))
	}
	pods := s.runs("running", oldImage)
	s.runs("paused", oldImage)
	s.suspend("paused")
	s.eventually("no pods of the paused one", func() (bool, string) { return len(s.pods("paused")) == 0, s.children("paused") })
	s.finish("finished")
	s.becomes("finished", trainer.ConditionComplete, "True/AllJobsCompleted")
	s.becomes("waiting", trainer.ConditionSuspended, "True/Suspended")
	for _, name := range []string{"running", "paused", "finished"} {
		job := s.get(name)
		s.inOrder(job, s.sealed(job))
	}
	return pods
}

// untouched checks that the running TrainJob has the pods that it had, and the finished one is
// finished on what it ran on.
func (s *scene) untouched(pods []corev1.Pod) {
	s.Helper()
	for _, pod := range s.runs("running", oldImage) {
		if pod.UID != pods[0].UID {
			s.Errorf("the running TrainJob has another pod")
		}
	}
	finished := s.get("finished")
	if got := condition(finished, trainer.ConditionComplete); got != "True/AllJobsCompleted" {
		s.Errorf("the finished TrainJob is %q", got)
	}
	for _, pod := range s.pods("finished") {
		if pod.Status.Phase != corev1.PodSucceeded {
			s.Errorf("the finished TrainJob has a pod that is %s", pod.Status.Phase)
		}
	}
	s.inOrder(finished, s.sealed(finished))
}

// Every way to give a runtime other content reaches the TrainJobs that wait, and no other.
func TestSnapshotStatesWhenTheRuntimeChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*scene){
		"edited": func(s *scene) { s.edit("train", newImage) },
		"replaced by a PUT without a revision": func(s *scene) {
			s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				stored := s.runtimeNamed("train")
				s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(stored), stored))
				put := s.runtimeNamed("train")
				put.SetResourceVersion(stored.GetResourceVersion())
				put.Object["spec"] = s.runtimeSpec(jobSetOf(newImage))
				return s.cluster.Client.Update(s.ctx, put)
			}))
		},
		"deleted and created anew": func(s *scene) {
			s.must(s.allowDisruption(s.runtimeNamed("train")))
			s.must(s.cluster.Client.Delete(s.ctx, s.runtimeNamed("train")))
			s.runtime("train", jobSetOf(newImage))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			pods := s.states()
			change(s)
			s.resume("waiting")
			s.runs("waiting", newImage)
			s.resume("paused")
			s.runs("paused", oldImage)
			s.untouched(pods)
		})
	}
}

// Labels and annotations of a runtime are not its content: everything goes on as it was.
func TestSnapshotStatesWhenOnlyLabelsChange(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	pods := s.states()
	jobSet := s.jobSetNamed("waiting").GetUID()
	s.must(s.patchAny(s.runtimeNamed("train"), `{"metadata":{"labels":{"team":"x"},"annotations":{"note":"y"}}}`))
	s.resume("waiting")
	s.runs("waiting", oldImage)
	if s.jobSetNamed("waiting").GetUID() != jobSet {
		t.Error("the suspended JobSet was replaced")
	}
	s.resume("paused")
	s.runs("paused", oldImage)
	s.untouched(pods)
}

// While the runtime is gone, Trainer refuses every update of its TrainJobs. They go on as soon
// as it is back, each on its own content.
func TestSnapshotStatesWhenTheRuntimeIsGone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	pods := s.states()
	s.must(s.allowDisruption(s.runtimeNamed("train")))
	s.must(s.cluster.Client.Delete(s.ctx, s.runtimeNamed("train")))
	for name, patch := range map[string]string{
		"waiting":  `{"spec":{"suspend":false}}`,
		"running":  `{"spec":{"suspend":true}}`,
		"paused":   `{"spec":{"suspend":false}}`,
		"finished": `{"metadata":{"labels":{"team":"x"}}}`,
	} {
		s.eventually("Trainer to see that the runtime is gone", func() (bool, string) {
			err := s.cluster.Client.Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "specified trainingRuntime must be created before the TrainJob is created"), s.text(err)
		})
	}
	s.untouched(pods)
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("finished")))
	s.eventually("the end of the finished TrainJob", func() (bool, string) {
		return s.filed("finished") == nil && s.configMap("finished") == nil, "still there"
	})

	s.runtime("train", jobSetOf(newImage))
	for name, image := range map[string]string{"waiting": newImage, "paused": oldImage} {
		s.eventually("Trainer to see that the runtime is back", func() (bool, string) {
			err := s.cluster.Client.Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)))
			return err == nil, s.text(err)
		})
		s.runs(name, image)
		if sealed := s.sealed(s.get(name)); snapshot.Name(sealed.Source) != "TrainingRuntime/train" {
			t.Errorf("TrainJob %s is sealed on %+v", name, sealed.Source)
		}
	}
}
