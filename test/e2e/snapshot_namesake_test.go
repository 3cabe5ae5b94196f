package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// A TrainJob that takes the name of one that was just deleted has a snapshot of its own.
func TestSnapshotOfANamesake(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	first := s.create("job", onRuntime("train"))
	s.runs("job", oldImage)
	s.inOrder(first, s.sealed(first))
	for _, image := range []string{newImage, oldImage} {
		s.edit("train", image)
		s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
		job := s.create("job", onRuntime("train"))
		if job.UID == first.UID {
			t.Fatal("it is still the first one")
		}
		if got := s.imageIn(s.sealed(job)); got != image {
			t.Errorf("sealed on %s, want %s", got, image)
		}
		s.comesToRun("job", image)
		s.inOrder(job, s.sealed(job))
		s.settled("job")
	}
}

// After a deletion that orphans, ConfigMap and snapshot of the first TrainJob stay without an
// owner. Stock Trainer cannot run another one of that name; Signalbox clears them away.
func TestSnapshotOfANamesakeOfAnOrphan(t *testing.T) {
	t.Parallel()
	orphan := func(s *scene) *trainer.TrainJob {
		s.runtime("train", jobSetOf(oldImage))
		s.known("train")
		first := s.create("job", onRuntime("train"))
		s.runs("job", oldImage)
		if s.cluster == shared {
			s.inOrder(first, s.sealed(first))
		}
		s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job"), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		s.deleted("job")
		// The JobSet runs on, and has to be deleted by hand, on stock as well: Trainer takes
		// one of that name for its own, whoever made it, and makes no other while it runs.
		s.runs("job", oldImage)
		if owners := s.jobSet().GetOwnerReferences(); len(owners) > 0 {
			s.Fatalf("the JobSet has the owners %v", owners)
		}
		s.must(s.cluster.Client.Delete(s.ctx, s.jobSet(), client.PropagationPolicy(metav1.DeletePropagationForeground)))
		s.gone("job")
		s.edit("train", newImage)
		return first
	}
	t.Run("stock does not run it", func(t *testing.T) {
		t.Parallel()
		s := newSceneOn(t, stock)
		orphan(s)
		s.create("job", onRuntime("train"))
		s.eventually("an error of Trainer", func() (bool, string) {
			events := s.warnings("job")
			return strings.Contains(events, "a snapshot configmap exists but is owned by another object"), events
		})
		s.must(s.cluster.Client.Delete(s.ctx, s.configMap("job")))
		s.comesToRun("job", newImage)
	})
	t.Run("signalbox runs it", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		first := orphan(s)
		for what, left := range map[string]metav1.Object{"ConfigMap": s.configMap("job"), "TrainingRuntimeSnapshot": s.filed("job")} {
			if owners := left.GetOwnerReferences(); len(owners) > 0 {
				t.Errorf("the %s has the owners %v: it shows nothing", what, owners)
			}
		}
		config, filed := s.configMap("job"), s.filed("job")
		second := s.create("job", onRuntime("train"))
		if got := s.imageIn(s.sealed(second)); got != newImage || second.UID == first.UID {
			t.Errorf("sealed on %s, want %s", got, newImage)
		}
		s.comesToRun("job", newImage)
		s.inOrder(second, s.sealed(second))
		if s.configMap("job").UID == config.UID || s.filed("job").UID == filed.UID {
			t.Error("what was left is still there")
		}
		s.settled("job")
	})
}

// Runtimes of both kinds may have the same name. Without a kind, the one of the cluster is
// meant.
func TestSnapshotOfRuntimesOfOneName(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	name := s.namespace // no other test has it
	s.clusterRuntime(name, jobSetOf("example.com/train:cluster"))
	s.runtime(name, jobSetOf("example.com/train:namespaced"))
	s.known(name)
	kind := func(kind string) change {
		return func(job *unstructured.Unstructured) {
			set(name, "spec", "runtimeRef", "name")(job)
			if kind != "" {
				set(kind, "spec", "runtimeRef", "kind")(job)
			}
		}
	}
	s.eventually("the runtime of the cluster in Trainer's cache", func() (bool, string) {
		err := s.cluster.Client.Create(s.ctx, s.trainJob("probe", suspended(), kind("")), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	for _, waits := range []bool{false, true} {
		for job, tc := range map[string]struct{ kind, source, image string }{
			"namespaced": {trainer.TrainingRuntimeKind, "TrainingRuntime/" + name, "example.com/train:namespaced"},
			"cluster":    {trainer.ClusterTrainingRuntimeKind, "ClusterTrainingRuntime/" + name, "example.com/train:cluster"},
			"default":    {"", "ClusterTrainingRuntime/" + name, "example.com/train:cluster"},
		} {
			var created *trainer.TrainJob
			if waits {
				job += "-queued"
				s.create(job, kind(tc.kind), suspended())
				created = s.resume(job)
			} else {
				created = s.create(job, kind(tc.kind))
			}
			sealed := s.sealed(created)
			if got := s.imageIn(sealed); got != tc.image || snapshot.Name(sealed.Source) != tc.source {
				t.Errorf("TrainJob %s is sealed on %s with %s, want %s with %s", job, snapshot.Name(sealed.Source), got, tc.source, tc.image)
			}
			s.runs(job, tc.image)
			s.inOrder(created, sealed)
			s.settled(job)
		}
	}
}

// clusterRuntime creates a ClusterTrainingRuntime with this JobSet spec (JSON). It is deleted
// when the test ends.
func (s *scene) clusterRuntime(name, jobSetSpec string) {
	s.Helper()
	runtime := s.runtimeOf(jobSetSpec)
	runtime.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind))
	runtime.SetName(name)
	s.must(s.cluster.Client.Create(s.ctx, runtime))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), runtime) })
}
