package cli_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// jobSetFor makes the JobSet of a TrainJob as Trainer does, with this revision; "" for none.
func (s *scene) jobSetFor(job *trainer.TrainJob, revision string, held bool) {
	s.Helper()
	jobSet := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"suspend": held,
		"replicatedJobs": []any{map[string]any{"name": "node", "template": map[string]any{"spec": map[string]any{
			"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "node", "image": "any"}}}},
		}}}},
	}}}
	jobSet.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	jobSet.SetNamespace(job.Namespace)
	jobSet.SetName(job.Name)
	jobSet.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, trainer.GroupVersion.WithKind(trainer.TrainJobKind))})
	if revision != "" {
		jobSet.SetAnnotations(map[string]string{v1alpha1.AnnotationRuntimeRevision: revision})
	}
	s.must(s.cluster.Client.Create(s.ctx, jobSet))
}

// taken returns a snapshot of the runtime as it is.
func (s *scene) taken(runtime *unstructured.Unstructured) *snapshot.Snapshot {
	s.Helper()
	taken, err := snapshot.Take(runtime.DeepCopy().Object)
	s.must(err)
	return taken
}

// diffSealed makes a TrainJob that is sealed, as one that ran with Signalbox.
func (s *scene) diffSealed(name string, seal *snapshot.Snapshot, changes ...change) *trainer.TrainJob {
	s.Helper()
	for key, value := range seal.Pack().Seal(time.Now()) {
		changes = append(changes, annotated(key, value))
	}
	return s.create(name, append(changes, onRuntime(trainer.TrainingRuntimeKind, "mine"))...)
}

// Without Signalbox, Trainer 2.3 keeps what a TrainJob was built from.
func TestCLIDiffStock(t *testing.T) {
	s := withoutSignalbox(t)
	mine := s.diffRuntime("mine", "example.com/train:1")
	on := onRuntime(trainer.TrainingRuntimeKind, "mine")
	text, err := s.taken(mine).YAML()
	s.must(err)
	job := s.create("eight-hours", on)
	s.must(s.cluster.Client.Create(s.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: trainer.SnapshotConfigMap(job.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, trainer.GroupVersion.WithKind(trainer.TrainJobKind))},
		},
		Data: map[string]string{trainer.SnapshotKey: text},
	}))
	s.jobSetFor(job, "", false)
	lost := s.create("lost", on)
	s.jobSetFor(lost, "", false)
	s.create("elsewhere", on, set("kueue.x-k8s.io/multikueue", "spec", "managedBy"))
	s.diffEdit(mine, "example.com/train:2")
	s.create("new", on)
	s.says("stock", 1, "eight-hours")
	s.says("stock-lost", 2, "lost")
	s.says("stock-new", 0, "new")
	s.says("stock-elsewhere", 2, "elsewhere")
	s.says("stock-jobs", 2, "mine", "--jobs", "-o", "wide")
}

// Trainer before 2.3 keeps nothing: there the seal is a record, and the JobSet tells what runs.
func TestCLIDiffOldTrainer(t *testing.T) {
	s := withoutSignalbox(t)
	s.oldTrainer()
	mine := s.diffRuntime("mine", "example.com/train:1")
	first := s.taken(mine)
	sealed := func(name string, revision string, held bool, changes ...change) {
		t.Helper()
		s.jobSetFor(s.diffSealed(name, first, changes...), revision, held)
	}
	sealed("first", first.Revision, false)
	sealed("paused", first.Revision, true, suspended())
	sealed("untold", "", false)
	sealed("between", "0123456789abcdef", false)
	s.diffEdit(mine, "example.com/train:2")
	sealed("resumed", s.taken(mine).Revision, false)
	s.says("old-first", 1, "first")
	s.says("old-paused", 0, "paused")
	s.says("old-untold", 2, "untold")
	s.says("old-between", 1, "between")
	s.says("old-resumed", 0, "resumed")
	s.says("old-jobs", 2, "mine", "--jobs", "-o", "wide")
}

// oldTrainer takes out of the CRD of TrainJobs, until the test's end, by what Trainer 2.3 is told from
// those before.
func (s *scene) oldTrainer() {
	s.Helper()
	key := client.ObjectKey{Name: trainer.CRDName}
	write := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		s.must(s.cluster.Client.Get(s.ctx, key, crd))
		change(crd)
		s.must(s.cluster.Client.Update(s.ctx, crd))
	}
	var before apiextensionsv1.CustomResourceDefinitionSpec
	write(func(crd *apiextensionsv1.CustomResourceDefinition) {
		before = *crd.Spec.DeepCopy()
		for i := range crd.Spec.Versions {
			spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
			delete(spec.Properties, "runtimePatches")
			// The rules speak of what is gone.
			spec.XValidations = nil
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		}
	})
	s.Cleanup(func() {
		// The test's own context has ended.
		crd := &apiextensionsv1.CustomResourceDefinition{}
		ctx := started.ctx
		if err := s.cluster.Client.Get(ctx, key, crd); err != nil {
			s.Error(err)
			return
		}
		crd.Spec = before
		if err := s.cluster.Client.Update(ctx, crd); err != nil {
			s.Error(err)
		}
	})
}
