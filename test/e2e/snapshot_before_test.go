package e2e_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// TrainJobs that were there before Signalbox live on what Trainer keeps of their runtime,
// whatever state they are in. Nothing happens to one that runs.
func TestSnapshotOfTrainJobsFromBefore(t *testing.T) {
	s := newScene(t)
	installed := s.uninstalled()
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	s.create("running", onRuntime("train"))
	s.create("queued", suspended(), onRuntime("train"))
	s.create("paused", onRuntime("train"))
	pods := s.runs("running", oldImage)
	s.runs("paused", oldImage)
	s.suspend("paused")
	s.noPods("paused")
	names := []string{"running", "queued", "paused"}
	for _, name := range names {
		s.eventually("a ConfigMap of Trainer for "+name, func() (bool, string) { return s.configMap(name) != nil, s.warnings(name) })
		for key := range s.get(name).Annotations {
			t.Errorf("TrainJob %s has the annotation %s: Signalbox was there", name, key)
		}
	}
	runtime := s.runtimeNamed("train")
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), runtime))
	before := runtime.Object["spec"].(map[string]any)
	if got := snapshot.Stamp(before); got != "" {
		t.Fatalf("the runtime has the revision %s: Signalbox was there", got)
	}
	revision := snapshot.Revision(before)

	// What Trainer keeps counts, not the runtime when Signalbox comes.
	s.edit("train", "example.com/train:meanwhile")
	installed()
	filed := map[string]*v1alpha1.TrainingRuntimeSnapshot{}
	for _, name := range names {
		s.eventually("the filed snapshot of "+name, func() (bool, string) { filed[name] = s.filed(name); return filed[name] != nil, "none" })
		taken, err := snapshot.FromObject(filed[name])
		s.must(err)
		s.inOrder(s.get(name), taken)
		source := filed[name].Spec.Source
		if taken.Revision != revision || source.UID != runtime.GetUID() || source.Generation != runtime.GetGeneration() {
			t.Errorf("filed for %s: revision %s of %+v, want %s of %s generation %d", name, taken.Revision, source, revision, runtime.GetUID(), runtime.GetGeneration())
		}
		if kept := s.configMap(name); !filed[name].Spec.SealedAt.Equal(&kept.CreationTimestamp) {
			t.Errorf("filed for %s as of %s, Trainer made it at %s", name, filed[name].Spec.SealedAt, kept.CreationTimestamp)
		}
	}
	s.eventually("the revision of the runtime", func() (bool, string) {
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), runtime))
		spec := runtime.Object["spec"].(map[string]any)
		return snapshot.Stamp(spec) == snapshot.Revision(spec), snapshot.Stamp(spec)
	})

	s.edit("train", newImage)
	for _, name := range []string{"queued", "paused"} {
		if sealed := s.sealed(s.resume(name)); sealed.Revision != revision || !sealed.IsOf(s.get(name)) {
			t.Errorf("TrainJob %s is sealed on %s, want %s", name, sealed.Revision, revision)
		}
		s.runs(name, oldImage)
	}
	if now := s.runs("running", oldImage); len(now) != 1 || now[0].UID != pods[0].UID {
		t.Error("the pod of the running TrainJob was replaced")
	}
	if got := s.get("running").Annotations; got[v1alpha1.AnnotationRuntimeSnapshot] != "" || got[v1alpha1.AnnotationRuntimeSource] != "" {
		t.Errorf("the running TrainJob was changed: annotations %v", got)
	}
	s.suspend("running")
	s.noPods("running")
	s.sealed(s.resume("running"))
	for _, name := range names {
		s.runs(name, oldImage)
		job := s.get(name)
		s.inOrder(job, s.sealed(job))
		if now := s.filed(name); now.UID != filed[name].UID || !metav1.IsControlledBy(now, job) {
			t.Errorf("the snapshot of %s was filed again", name)
		}
	}
	s.settled(names...)
}
