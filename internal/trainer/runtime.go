package trainer

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Kinds of the runtimes that Trainer knows. A ClusterTrainingRuntime belongs to the cluster, a
// TrainingRuntime to a namespace, where TrainJobs of that namespace alone can refer to it.
const (
	ClusterTrainingRuntimeKind = "ClusterTrainingRuntime"
	TrainingRuntimeKind        = "TrainingRuntime"
)

// SnapshotConfigMap returns the name of the ConfigMap in which Trainer keeps the runtime of a
// TrainJob, as YAML under the key SnapshotKey.
func SnapshotConfigMap(job string) string { return job + snapshotSuffix }

const snapshotSuffix = "-runtime-snapshot"

// TrainJobOfSnapshot returns the name of the TrainJob whose snapshot is kept in the ConfigMap of this
// name; false where it is not the name of such a ConfigMap.
func TrainJobOfSnapshot(configMap string) (string, bool) {
	return strings.CutSuffix(configMap, snapshotSuffix)
}

// SnapshotKey is the key of the runtime in that ConfigMap.
const SnapshotKey = "runtime"

// RuntimeRef names the runtime of a TrainJob.
type RuntimeRef struct {
	Name     string  `json:"name,omitempty"`
	APIGroup *string `json:"apiGroup,omitempty"`
	Kind     *string `json:"kind,omitempty"`
}

// GroupVersionKind returns the kind that is referred to, with the defaults of the API.
func (r RuntimeRef) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{
		Group:   ptr.Deref(r.APIGroup, GroupVersion.Group),
		Version: GroupVersion.Version,
		Kind:    ptr.Deref(r.Kind, ClusterTrainingRuntimeKind),
	}
}

// Key names the runtime that a TrainJob in this namespace refers to; the namespace of one that
// belongs to the cluster is empty.
func (r RuntimeRef) Key(namespace string) types.NamespacedName {
	if r.GroupVersionKind().Kind != TrainingRuntimeKind {
		namespace = ""
	}
	return types.NamespacedName{Namespace: namespace, Name: r.Name}
}

// Known tells whether the runtime is of a kind that Trainer knows.
func (r RuntimeRef) Known() bool {
	gvk := r.GroupVersionKind()
	return gvk.Group == GroupVersion.Group && (gvk.Kind == ClusterTrainingRuntimeKind || gvk.Kind == TrainingRuntimeKind)
}

// Names that Trainer looks for in the runtime of a TrainJob that has a dataset or a model
// fetched: the replicatedJob and its container, which have the same name, and the volume that
// the container must mount.
const (
	DatasetInitializer = "dataset-initializer"
	ModelInitializer   = "model-initializer"
	InitializerVolume  = "initializer"
)

// LabelAncestor is on the Job template of a replicatedJob of a runtime and tells what it is for;
// AncestorTrainer is its value for the one that trains.
const (
	LabelAncestor   = "trainer.kubeflow.org/trainjob-ancestor-step"
	AncestorTrainer = "trainer"
)

// NodeContainer is the container of a runtime that trains, to which a TrainJob's own image,
// command, variables and resources go.
const NodeContainer = "node"

// NewRuntime returns an empty runtime of this kind, to be read: no Go type knows all its fields.
func NewRuntime(kind string) *unstructured.Unstructured {
	runtime := &unstructured.Unstructured{}
	runtime.SetGroupVersionKind(GroupVersion.WithKind(kind))
	return runtime
}

// RuntimeSettings are what a runtime says about the lifecycle of its TrainJobs.
//
// +kubebuilder:object:generate=false
type RuntimeSettings struct {
	// Name is KIND/NAME; "" when there is no runtime.
	Name string
	// Labels and Annotations are those of the runtime itself.
	Labels, Annotations map[string]string
	// OwnDeadline and OwnTTL tell whether the runtime sets the limits of a later Trainer, which
	// that looks after itself.
	OwnDeadline, OwnTTL bool
}

// SettingsOf returns what the runtime, as JSON decodes into a map, says.
func SettingsOf(runtime map[string]any) RuntimeSettings {
	object := unstructured.Unstructured{Object: runtime}
	has := func(path ...string) bool {
		value, found, err := unstructured.NestedFieldNoCopy(runtime, append([]string{"spec"}, path...)...)
		return found && err == nil && value != nil
	}
	return RuntimeSettings{
		Name:        object.GetKind() + "/" + object.GetName(),
		Labels:      object.GetLabels(),
		Annotations: object.GetAnnotations(),
		OwnDeadline: has("activeDeadlineSeconds") || has("runPolicy", "activeDeadlineSeconds"),
		OwnTTL:      has("ttlSecondsAfterFinished") || has("runPolicy", "ttlSecondsAfterFinished"),
	}
}
