package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// RuntimeBuilder makes a runtime as it is stored.
type RuntimeBuilder struct {
	runtime unstructured.Unstructured
}

// ClusterTrainingRuntime starts with a runtime of one node that runs one container.
func ClusterTrainingRuntime(name string) *RuntimeBuilder {
	return runtimeOf(trainer.ClusterTrainingRuntimeKind, name)
}

// TrainingRuntime starts with the same in a namespace.
func TrainingRuntime(namespace, name string) *RuntimeBuilder {
	b := runtimeOf(trainer.TrainingRuntimeKind, name)
	b.runtime.SetNamespace(namespace)
	return b
}

func runtimeOf(kind, name string) *RuntimeBuilder {
	b := &RuntimeBuilder{}
	b.runtime.Object = map[string]any{"spec": map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(1)},
		"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{map[string]any{
			"name": "node",
			"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "node", "image": "image:1"}},
			}}}},
		}}}},
	}}
	b.runtime.SetGroupVersionKind(trainer.GroupVersion.WithKind(kind))
	b.runtime.SetName(name)
	b.runtime.SetUID(types.UID("uid-of-" + kind + "-" + name))
	b.runtime.SetGeneration(1)
	return b
}

// Obj returns the runtime.
func (b *RuntimeBuilder) Obj() *unstructured.Unstructured { return b.runtime.DeepCopy() }

// UID sets the UID, where the minimal object has one that follows from its kind and name.
func (b *RuntimeBuilder) UID(uid types.UID) *RuntimeBuilder {
	b.runtime.SetUID(uid)
	return b
}

// Generation sets how often the spec has been written.
func (b *RuntimeBuilder) Generation(generation int64) *RuntimeBuilder {
	b.runtime.SetGeneration(generation)
	return b
}

// ResourceVersion sets which state of the runtime this is.
func (b *RuntimeBuilder) ResourceVersion(version string) *RuntimeBuilder {
	b.runtime.SetResourceVersion(version)
	return b
}

// Created sets the creation time, to whole seconds as the API server does.
func (b *RuntimeBuilder) Created(at time.Time) *RuntimeBuilder {
	b.runtime.SetCreationTimestamp(metav1.NewTime(at.Truncate(time.Second)))
	return b
}

// Label sets a label.
func (b *RuntimeBuilder) Label(key, value string) *RuntimeBuilder {
	labels := b.runtime.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	b.runtime.SetLabels(labels)
	return b
}

// Annotation sets an annotation of the runtime itself.
func (b *RuntimeBuilder) Annotation(key, value string) *RuntimeBuilder {
	annotations := b.runtime.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	b.runtime.SetAnnotations(annotations)
	return b
}

// Image sets the image of the container.
func (b *RuntimeBuilder) Image(image string) *RuntimeBuilder {
	return b.Container("image", image)
}

// Container sets a field of the container.
func (b *RuntimeBuilder) Container(name string, value any) *RuntimeBuilder {
	jobs, _, _ := unstructured.NestedFieldNoCopy(b.runtime.Object, "spec", "template", "spec", "replicatedJobs")
	containers, _, _ := unstructured.NestedFieldNoCopy(jobs.([]any)[0].(map[string]any), "template", "spec", "template", "spec", "containers")
	containers.([]any)[0].(map[string]any)[name] = value
	return b
}

// Revision sets the annotation of the JobSet template that holds the revision.
func (b *RuntimeBuilder) Revision(revision string) *RuntimeBuilder {
	return b.Set(revision, "spec", "template", "metadata", "annotations", v1alpha1.AnnotationRuntimeRevision)
}

// Set sets any field.
func (b *RuntimeBuilder) Set(value any, path ...string) *RuntimeBuilder {
	if err := unstructured.SetNestedField(b.runtime.Object, value, path...); err != nil {
		panic(err)
	}
	return b
}

// Without removes any field.
func (b *RuntimeBuilder) Without(path ...string) *RuntimeBuilder {
	unstructured.RemoveNestedField(b.runtime.Object, path...)
	return b
}
