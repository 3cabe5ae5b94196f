package e2e_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// Nothing special happens: the first attempt of Trainer passes, and what it wrote is kept.
func TestSnapshotOfAnActiveTrainJob(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	stored := s.runtimeNamed("train")
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(stored), stored))
	job := s.create("job", onRuntime("train"))
	sealed := s.sealed(job)
	if sealed.Source.UID != stored.GetUID() || sealed.Source.Generation != stored.GetGeneration() || snapshot.Name(sealed.Source) != "TrainingRuntime/train" ||
		job.Annotations[v1alpha1.AnnotationRuntimeSource] != "TrainingRuntime/train" {
		t.Errorf("sealed %+v into %v, of runtime %s generation %d", sealed.Source, job.Annotations, stored.GetUID(), stored.GetGeneration())
	}
	if got := snapshot.Stamp(stored.Object["spec"].(map[string]any)); got != sealed.Revision {
		t.Errorf("the runtime carries revision %q, sealed is %s", got, sealed.Revision)
	}
	s.runs("job", oldImage)
	s.inOrder(job, sealed)
	if got := s.jobSet().GetAnnotations()[v1alpha1.AnnotationRuntimeRevision]; got != sealed.Revision {
		t.Errorf("the JobSet carries revision %q, want %s", got, sealed.Revision)
	}
	filed := s.filed("job")
	if filed.Spec.Source != sealed.Source || !filed.Spec.SealedAt.Equal(&metav1.Time{Time: sealed.SealedAt}) {
		t.Errorf("filed %+v, sealed %+v at %s", filed.Spec, sealed.Source, sealed.SealedAt)
	}
	if events := s.warnings("job"); events != "" {
		t.Errorf("events: %s", events)
	}
}

// What counts is the runtime at CREATE, not when Trainer first looks.
func TestSnapshotOfTheRuntimeAtCreate(t *testing.T) {
	scenario := func(s *scene) *scene {
		s.runtime("train", jobSetOf(oldImage))
		back := s.trainerAway()
		s.create("job", onRuntime("train"))
		s.edit("train", newImage)
		back()
		return s
	}
	t.Run("stock runs the edited one", func(t *testing.T) {
		scenario(newSceneOn(t, stock)).runs("job", newImage)
	})
	t.Run("signalbox runs the one at CREATE", func(t *testing.T) {
		s := scenario(newScene(t))
		s.runs("job", oldImage)
		job := s.get("job")
		s.inOrder(job, s.sealed(job))
	})
}

// Until it is resumed a TrainJob follows its runtime.
func TestSnapshotOfTheRuntimeAtTheFirstResume(t *testing.T) {
	t.Parallel()
	scenario := func(s *scene) *scene {
		s.runtime("train", jobSetOf(oldImage))
		s.create("job", suspended(), onRuntime("train"))
		s.eventually("a suspended JobSet", func() (bool, string) { return s.jobSet() != nil, s.children("job") })
		s.edit("train", newImage)
		return s
	}
	t.Run("stock runs the one at its first look", func(t *testing.T) {
		t.Parallel()
		s := scenario(newSceneOn(t, stock))
		s.resume("job")
		s.runs("job", oldImage)
	})
	t.Run("signalbox runs the edited one", func(t *testing.T) {
		t.Parallel()
		s := scenario(newScene(t))
		before := s.jobSet()
		if job := s.get("job"); job.Annotations[v1alpha1.AnnotationRuntimeSource] != "TrainingRuntime/train" || job.Annotations[v1alpha1.AnnotationRuntimeSnapshot] != "" {
			t.Errorf("annotations while it waits: %v", job.Annotations)
		}
		if s.filed("job") != nil {
			t.Error("filed while it waits")
		}
		job := s.resume("job")
		s.runs("job", newImage)
		s.inOrder(job, s.sealed(job))
		if s.jobSet().GetUID() == before.GetUID() {
			t.Error("the suspended JobSet is still there")
		}
	})
}

// A seal is for life.
func TestSnapshotNeverChanges(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	first := s.sealed(s.create("job", onRuntime("train")))
	s.runs("job", oldImage)
	for range 2 {
		s.suspend("job")
		s.edit("train", newImage)
		s.eventually("no pods", func() (bool, string) { return len(s.pods("job")) == 0, s.children("job") })
		job := s.resume("job")
		if again := s.sealed(job); again.Revision != first.Revision || !again.SealedAt.Equal(first.SealedAt) {
			t.Errorf("sealed %s at %s, then %s at %s", first.Revision, first.SealedAt, again.Revision, again.SealedAt)
		}
		s.runs("job", oldImage)
		s.inOrder(job, first)
	}
}
