package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// snapshotTests are run with every release.
var snapshotTests = []struct {
	name string
	test func(*scene)
}{
	{"the filed snapshot and the ConfigMap", testSnapshotFiled},
	{"sealed at CREATE and at the first resume", testSnapshotSealed},
	{"the gate at CREATE", testSnapshotGate},
	{"the gate at a resume", testSnapshotGateAtResume},
	{"what Kueue is shown", testKueueView},
}

// TestSnapshotOnEveryTrainer upgrades Trainer from release to release. Every TrainJob is
// sealed; the ConfigMap and the gate are there from the first release on that reads the
// runtime from a ConfigMap.
func TestSnapshotOnEveryTrainer(t *testing.T) {
	start(t)
	through := snapshotThroughUpgrades()
	for _, r := range releases {
		t.Run(r.version, func(t *testing.T) {
			s := newScene(t, r)
			s.install()
			s.stamped()
			s.detects(r.knows)
			t.Run("a job from before the upgrade", func(t *testing.T) { through(s.within(t)) })
			for _, tc := range snapshotTests {
				t.Run(tc.name, func(t *testing.T) {
					t.Parallel()
					tc.test(newScene(t, r))
				})
			}
		})
	}
}

// snapshotThroughUpgrades returns a test of a TrainJob that is made with the first release and
// lives on through all others, sealed and filed once; it gets its ConfigMap with the first
// release that reads one.
func snapshotThroughUpgrades() func(*scene) {
	var namespace string
	var first *trainer.TrainJob
	var filed *v1alpha1.TrainingRuntimeSnapshot
	return func(s *scene) {
		if first == nil {
			namespace = s.namespace
			s.runtime("train", "image:1")
			first = s.create("job", on("train"))
			filed = s.isFiled(first)
			s.edit("train", "image:2")
		}
		s.namespace = namespace
		s.passes("job")
		job := s.get("job")
		if diff := cmp.Diff(first.Annotations, job.Annotations); diff != "" {
			s.Errorf("with Trainer %s the annotations are others (-first +now):\n%s", s.release.version, diff)
		}
		if now := s.isFiled(job); now.UID != filed.UID {
			s.Errorf("with Trainer %s the snapshot was filed again", s.release.version)
		}
		if s.release.knows.RuntimeSnapshot {
			s.isKept(job)
		} else if config := s.configMap("job"); config != nil {
			s.Errorf("with Trainer %s there is a ConfigMap: %v", s.release.version, config)
		}
	}
}

func testSnapshotFiled(s *scene) {
	s.runtime("train", "image:1")
	before := time.Now()
	job := s.create("job", on("train"))
	s.isFiled(job)
	if !s.release.knows.RuntimeSnapshot {
		// The reconciler waits 5 s for Trainer where it makes one.
		for end := before.Add(8 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if config := s.configMap("job"); config != nil {
				s.Fatalf("there is a ConfigMap, for a Trainer that reads none: %v", config)
			}
		}
		return
	}
	s.isKept(job)
	// The time of the seal is stored to the second.
	if early := time.Since(before); early < 4*time.Second {
		s.Errorf("the ConfigMap came after %s: that is Trainer's turn", early)
	}
	s.passes("job")
	s.isKept(job)
}

func testSnapshotSealed(s *scene) {
	s.runtime("train", "image:1")
	s.isSealed(s.create("active", on("train")), "image:1")
	want := map[string]string{v1alpha1.AnnotationRuntimeSource: "TrainingRuntime/train"}
	if diff := cmp.Diff(want, s.create("waiting", suspended(), on("train")).Annotations); diff != "" {
		s.Errorf("created suspended with other annotations than wanted (-want +got):\n%s", diff)
	}
	s.edit("train", "image:2")
	s.isSealed(s.create("later", on("train")), "image:2")
	s.isSealed(s.resume("waiting"), "image:2")
	s.edit("train", "image:3")
	for name, image := range map[string]string{"active": "image:1", "waiting": "image:2"} {
		before := s.isSealed(s.suspend(name), image)
		if after := s.isSealed(s.resume(name), image); !after.SealedAt.Equal(before.SealedAt) {
			s.Errorf("TrainJob %s was sealed at %s, then at %s", name, before.SealedAt, after.SealedAt)
		}
	}
}

// The JobSet of a sealed TrainJob starts only with its revision, where Trainer builds from
// what is sealed; elsewhere it starts with whatever Trainer makes.
func testSnapshotGate(s *scene) {
	s.runtime("train", "image:1")
	job := s.create("job", on("train"))
	sealed := s.isSealed(job, "image:1")
	for _, revision := range []string{"", "0123456789abcdef"} {
		err := s.applyWith(job, map[string]string{v1alpha1.AnnotationRuntimeRevision: revision})
		want := fmt.Sprintf("TrainJob job runs on revision %s of TrainingRuntime/train, this JobSet is built from revision %q", sealed.Revision, revision)
		switch {
		case !s.release.knows.RuntimeSnapshot:
			s.must(err)
			s.must(client.IgnoreNotFound(shared.Client.Delete(s.ctx, s.jobSet("job"))))
		case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want):
			s.Errorf("built from revision %q with %v, want Forbidden: %s", revision, err, want)
		}
	}
	s.passes("job")
	if got := s.jobSet("job").GetAnnotations()[v1alpha1.AnnotationRuntimeRevision]; got != sealed.Revision {
		s.Errorf("the JobSet has the revision %q, want %s", got, sealed.Revision)
	}
}

// A suspended JobSet from before an edit of the runtime: where Trainer builds from what is
// sealed it starts with that, elsewhere it is left alone.
func testSnapshotGateAtResume(s *scene) {
	s.runtime("train", "image:1")
	s.create("job", suspended(), on("train"))
	s.passes("job")
	before := s.jobSet("job")
	s.edit("train", "image:2")
	job := s.resume("job")
	sealed := s.isSealed(job, "image:2")
	s.isFiled(job)
	if !s.release.knows.RuntimeSnapshot {
		// Trainer's cache may have the runtime of before.
		s.must(s.applyWith(job, before.GetAnnotations()))
		if now := s.jobSet("job"); now == nil || now.GetUID() != before.GetUID() {
			s.Error("the suspended JobSet was deleted")
		}
		return
	}
	s.eventually("the start of the JobSet", func() (bool, string) {
		err := s.pass("job")
		return err == nil, fmt.Sprint(err)
	})
	s.isKept(job)
	jobSet := s.jobSet("job")
	if suspend, _, _ := unstructured.NestedBool(jobSet.Object, "spec", "suspend"); suspend ||
		jobSet.GetAnnotations()[v1alpha1.AnnotationRuntimeRevision] != sealed.Revision {
		s.Errorf("the JobSet is suspended: %v; revision %q, want %s", suspend, jobSet.GetAnnotations()[v1alpha1.AnnotationRuntimeRevision], sealed.Revision)
	}
}

// stamped waits until the built-in runtime, which may have come before the webhook, has its
// revision.
func (s *scene) stamped() {
	s.Helper()
	s.eventually("the revision of the built-in runtime", func() (bool, string) {
		annotations := templateAnnotations(s.runtimeOf(s.view(s.trainJob("probe"))))
		return annotations[v1alpha1.AnnotationRuntimeRevision] != "", fmt.Sprint(annotations)
	})
}

// on refers to a TrainingRuntime of the scene's namespace.
func on(name string) change {
	return set(map[string]any{"apiGroup": trainer.GroupVersion.Group, "kind": trainer.TrainingRuntimeKind, "name": name}, "spec", "runtimeRef")
}

// runtime creates a TrainingRuntime with this image in the scene's namespace.
func (s *scene) runtime(name, image string) {
	s.Helper()
	object := s.runtimeNamed(name)
	object.Object["spec"] = map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(1)},
		"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{map[string]any{
			"name": "node",
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
					"containers": []any{map[string]any{"name": "node", "image": image}},
				}}},
			},
		}}}},
	}
	s.must(shared.Client.Create(s.ctx, object))
}

func (s *scene) runtimeNamed(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind))
	object.SetNamespace(s.namespace)
	object.SetName(name)
	return object
}

// edit gives a TrainingRuntime another image.
func (s *scene) edit(name, image string) {
	s.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":%q}]`, image)
	s.must(shared.Client.Patch(s.ctx, s.runtimeNamed(name), client.RawPatch(types.JSONPatchType, []byte(patch))))
}

// isSealed returns the snapshot that is sealed into a TrainJob, and checks that it has this
// image.
func (s *scene) isSealed(job *trainer.TrainJob, image string) *snapshot.Snapshot {
	s.Helper()
	sealed, err := snapshot.Of(job)
	if err != nil || sealed == nil {
		s.Fatalf("TrainJob %s is not sealed: %v, %v", job.Name, err, job.Annotations)
	}
	raw := string(sealed.Object(job).Spec.RuntimeSpec.Raw)
	if !strings.Contains(raw, fmt.Sprintf(`"image":%q`, image)) || snapshot.Name(sealed.Source) != "TrainingRuntime/train" {
		s.Errorf("TrainJob %s is sealed on %s: %s, want image %s", job.Name, snapshot.Name(sealed.Source), raw, image)
	}
	return sealed
}

// isFiled waits for the TrainingRuntimeSnapshot of a sealed TrainJob and returns it.
func (s *scene) isFiled(job *trainer.TrainJob) *v1alpha1.TrainingRuntimeSnapshot {
	s.Helper()
	sealed, err := snapshot.Of(job)
	s.must(err)
	filed := &v1alpha1.TrainingRuntimeSnapshot{}
	s.eventually("the filed snapshot of TrainJob "+job.Name, func() (bool, string) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind))
		if err := shared.Client.Get(s.ctx, client.ObjectKeyFromObject(job), object); err != nil {
			return false, err.Error()
		}
		s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, filed))
		return metav1.IsControlledBy(filed, job), fmt.Sprint(filed.OwnerReferences)
	})
	if filed.Spec.Revision != sealed.Revision || filed.Spec.Source != sealed.Source {
		s.Errorf("filed revision %s of %+v, sealed is %s of %+v", filed.Spec.Revision, filed.Spec.Source, sealed.Revision, sealed.Source)
	}
	return filed
}

// isKept waits until the ConfigMap that Trainer reads holds what is sealed into a TrainJob and
// is looked after.
func (s *scene) isKept(job *trainer.TrainJob) {
	s.Helper()
	sealed, err := snapshot.Of(job)
	s.must(err)
	s.eventually("the ConfigMap of TrainJob "+job.Name, func() (bool, string) {
		config := s.configMap(job.Name)
		return config != nil && metav1.IsControlledBy(config, job) && config.Immutable != nil && *config.Immutable &&
			config.Labels[v1alpha1.LabelRuntimeRevision] == sealed.Revision && sealed.Holds(config.Data[trainer.SnapshotKey]), fmt.Sprint(config)
	})
}

// configMap reads the ConfigMap in which Trainer keeps the runtime of a TrainJob; nil when
// there is none.
func (s *scene) configMap(job string) *corev1.ConfigMap {
	s.Helper()
	config := &corev1.ConfigMap{}
	err := shared.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: trainer.SnapshotConfigMap(job)}, config)
	s.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return config
}

// template returns the annotations that the release gives to the JobSet of a TrainJob: those
// of the template of its runtime, as the release reads it. One that keeps the runtime in a
// ConfigMap writes that at its first look.
func (s *scene) template(job *trainer.TrainJob) (map[string]string, error) {
	s.Helper()
	if !s.release.knows.RuntimeSnapshot {
		return templateAnnotations(s.runtimeOf(job)), nil
	}
	config := s.configMap(job.Name)
	if config == nil {
		object := s.runtimeOf(job)
		text, err := json.Marshal(object.Object) // YAML takes JSON
		s.must(err)
		kept := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{trainer.SnapshotKey: string(text)}}}
		kept.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		kept.SetNamespace(job.Namespace)
		kept.SetName(trainer.SnapshotConfigMap(job.Name))
		kept.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, trainer.GroupVersion.WithKind(trainer.TrainJobKind))})
		return templateAnnotations(object), asTrainer.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(kept), client.FieldOwner("trainer"), client.ForceOwnership)
	}
	if !metav1.IsControlledBy(config, job) {
		return nil, fmt.Errorf("ConfigMap %s is owned by another object", config.Name)
	}
	object := &unstructured.Unstructured{}
	s.must(yaml.Unmarshal([]byte(config.Data[trainer.SnapshotKey]), &object.Object))
	return templateAnnotations(object), nil
}

// runtimeOf reads the runtime that a TrainJob refers to.
func (s *scene) runtimeOf(job *trainer.TrainJob) *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(job.Spec.RuntimeRef.GroupVersionKind())
	key := client.ObjectKey{Name: job.Spec.RuntimeRef.Name}
	if object.GetKind() == trainer.TrainingRuntimeKind {
		key.Namespace = job.Namespace
	}
	s.must(shared.Client.Get(s.ctx, key, object))
	return object
}

func templateAnnotations(object *unstructured.Unstructured) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "annotations")
	return annotations
}
