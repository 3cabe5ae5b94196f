package e2e_test

import (
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// Content of runtimes is told apart by the image.
const (
	oldImage = "example.com/train:old"
	newImage = "example.com/train:new"
)

// jobSetOf is the JobSet spec of a runtime with one node of this image.
func jobSetOf(image string) string {
	return fmt.Sprintf(`{"replicatedJobs":[{"name":"node","template":{
		"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},
		"spec":{"template":{"spec":{"containers":[{"name":"node","image":%q}]}}}}}]}`, image)
}

// onRuntime refers to a TrainingRuntime of the scene's namespace.
func onRuntime(name string) change {
	return func(job *unstructured.Unstructured) {
		set(name, "spec", "runtimeRef", "name")(job)
		set(trainer.TrainingRuntimeKind, "spec", "runtimeRef", "kind")(job)
	}
}

// edit gives the only container of the TrainingRuntime of this name another image.
func (s *scene) edit(name, image string) {
	s.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":%q}]`, image)
	s.must(s.cluster.Client.Patch(s.ctx, s.runtimeNamed(name), client.RawPatch(types.JSONPatchType, []byte(patch))))
}

// runtimeNamed is an empty TrainingRuntime, to be read, patched or deleted.
func (s *scene) runtimeNamed(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind))
	object.SetNamespace(s.namespace)
	object.SetName(name)
	return object
}

// runs waits until the pods of a TrainJob run, and checks that they have this image.
func (s *scene) runs(name, image string) []corev1.Pod {
	s.Helper()
	pods := s.running(name)
	for _, pod := range pods {
		if got := pod.Spec.Containers[0].Image; got != image {
			s.Fatalf("pods of TrainJob %s run %s, want %s", name, got, image)
		}
	}
	return pods
}

// sealed returns the snapshot that is sealed into a TrainJob, and fails without one.
func (s *scene) sealed(job *trainer.TrainJob) *snapshot.Snapshot {
	s.Helper()
	sealed, err := snapshot.Of(job)
	if err != nil || sealed == nil {
		s.Fatalf("TrainJob %s is not sealed: %v, %v", job.Name, err, job.Annotations)
	}
	return sealed
}

// configMap reads the ConfigMap from which Trainer builds a TrainJob; nil when there is none.
func (s *scene) configMap(name string) *corev1.ConfigMap {
	s.Helper()
	config := &corev1.ConfigMap{}
	err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: trainer.SnapshotConfigMap(name)}, config)
	s.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return config
}

// filed reads the TrainingRuntimeSnapshot of a TrainJob; nil when there is none.
func (s *scene) filed(name string) *v1alpha1.TrainingRuntimeSnapshot {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind))
	err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, object)
	s.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	filed := &v1alpha1.TrainingRuntimeSnapshot{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, filed))
	return filed
}

// inOrder waits until the ConfigMap and the TrainingRuntimeSnapshot of a TrainJob hold this
// content, are its own and are looked after.
func (s *scene) inOrder(job *trainer.TrainJob, want *snapshot.Snapshot) {
	s.Helper()
	s.eventually("the filed snapshot of TrainJob "+job.Name, func() (bool, string) {
		filed := s.filed(job.Name)
		if filed == nil {
			return false, "none"
		}
		is, err := snapshot.FromObject(filed)
		return err == nil && is.Revision == want.Revision && snapshot.Name(is.Source) == snapshot.Name(want.Source) &&
			metav1.IsControlledBy(filed, job) && filed.Annotations[v1alpha1.AnnotationSnapshotSource] == snapshot.Name(want.Source), s.text(filed)
	})
	s.eventually("the ConfigMap of TrainJob "+job.Name, func() (bool, string) {
		config := s.configMap(job.Name)
		if config == nil {
			return false, "none"
		}
		return metav1.IsControlledBy(config, job) && config.Immutable != nil && *config.Immutable &&
			config.Labels[v1alpha1.LabelRuntimeRevision] == want.Revision && want.Holds(config.Data[trainer.SnapshotKey]), s.text(config)
	})
}

// warnings lists the warning events about a TrainJob.
func (s *scene) warnings(name string) string {
	s.Helper()
	var events corev1.EventList
	s.must(s.cluster.Client.List(s.ctx, &events, client.InNamespace(s.namespace)))
	text := ""
	for _, event := range events.Items {
		if event.InvolvedObject.Name == name && event.Type == corev1.EventTypeWarning {
			text += event.Reason + ": " + event.Message + "\n"
		}
	}
	return text
}

// runtimeOf is a runtime with this JobSet spec (JSON), without a kind and a name.
func (s *scene) runtimeOf(jobSetSpec string) *unstructured.Unstructured {
	s.Helper()
	var spec map[string]any
	s.must(json.Unmarshal([]byte(jobSetSpec), &spec))
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(1)},
		"template": map[string]any{"spec": spec},
	}}}
}

// imageIn reads the image of the only container in a snapshot of a runtime.
func (s *scene) imageIn(taken *snapshot.Snapshot) string {
	s.Helper()
	var spec struct {
		Template struct {
			Spec struct {
				ReplicatedJobs []struct {
					Template batchv1.JobTemplateSpec `json:"template"`
				} `json:"replicatedJobs"`
			} `json:"spec"`
		} `json:"template"`
	}
	s.must(json.Unmarshal(taken.Object(&trainer.TrainJob{}).Spec.RuntimeSpec.Raw, &spec))
	return spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image
}

// both are the clusters, for what must be the same on both.
func both() map[string]*cluster.Cluster {
	return map[string]*cluster.Cluster{"on stock": stock, "with signalbox": shared}
}
