package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/shared"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Cached is what the cache of the reconcilers must hold of each TrainJob and what belongs to it: no
// more than they read, and once what many of them have in common. Of the ConfigMaps it holds those
// that the reconciler looks after, with a summary for the content. The objects are for reading:
// they share memory.
func Cached() map[client.Object]cache.ByObject {
	pool := shared.NewPool()
	labelled, err := labels.NewRequirement(v1alpha1.LabelRuntimeRevision, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return map[client.Object]cache.ByObject{
		&trainer.TrainJob{}: {Transform: transform(func(job *trainer.TrainJob) {
			trainer.Trim(job, pool)
			split(job.Annotations, pool)
		})},
		&trainer.JobSet{}: {Transform: transform(func(jobSet *trainer.JobSet) { trainer.TrimJobSet(jobSet, pool) })},
		&corev1.ConfigMap{}: {
			Label:     labels.NewSelector().Add(*labelled),
			Transform: transform(func(config *corev1.ConfigMap) { trimConfigMap(config, pool) }),
		},
		&v1alpha1.TrainingRuntimeSnapshot{}: {Transform: transform(func(filed *v1alpha1.TrainingRuntimeSnapshot) { trimFiled(filed, pool) })},
	}
}

// transform makes a transform of a function that changes objects of one type. An informer may
// transform what it has transformed before, and hands over other things than objects.
func transform[T client.Object](trim func(T)) func(any) (any, error) {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			trim(typed)
		}
		return object, nil
	}
}

// headSize is how much of a seal is written anew by each: the base64 of its first bytes.
const headSize = sealStart / 3 * 4

// restKey is the key of the rest of the seal in the annotations of a TrainJob of the cache: it is
// the same for all TrainJobs on one state of a runtime. No TrainJob that is stored can have it: a
// space is not allowed.
const restKey = v1alpha1.AnnotationRuntimeSnapshot + " rest"

// split divides the seal in the annotations into what is the TrainJob's own and what is not.
func split(annotations map[string]string, pool *shared.Pool) {
	seal, sealed := annotations[v1alpha1.AnnotationRuntimeSnapshot]
	if _, done := annotations[restKey]; done || !sealed || len(seal) <= headSize {
		return
	}
	annotations[v1alpha1.AnnotationRuntimeSnapshot] = string([]byte(seal[:headSize]))
	annotations[restKey] = pool.String(seal[headSize:])
}

// summaryKey is the key of the summary in the ConfigMaps of the cache. No ConfigMap that is
// stored can have it, for the space.
const summaryKey = "runtime summary"

// trimConfigMap puts a summary in the place of the content.
func trimConfigMap(config *corev1.ConfigMap, pool *shared.Pool) {
	summary, done := config.Data[summaryKey]
	if !done {
		summary = summarize(config.Data[trainer.SnapshotKey])
	}
	trainer.TrimMeta(&config.ObjectMeta, pool)
	config.Labels, config.Annotations = pool.Map(config.Labels), pool.Map(config.Annotations)
	config.Data = pool.Map(map[string]string{summaryKey: summary})
	config.BinaryData = nil
}

// trimFiled has a TrainingRuntimeSnapshot share its content.
func trimFiled(filed *v1alpha1.TrainingRuntimeSnapshot, pool *shared.Pool) {
	trainer.TrimMeta(&filed.ObjectMeta, pool)
	filed.APIVersion, filed.Kind = pool.String(filed.APIVersion), pool.String(filed.Kind)
	filed.Labels, filed.Annotations = pool.Map(filed.Labels), pool.Map(filed.Annotations)
	source := &filed.Spec.Source
	source.APIVersion, source.Kind, source.Name = pool.String(source.APIVersion), pool.String(source.Kind), pool.String(source.Name)
	source.UID, filed.Spec.Revision = types.UID(pool.String(string(source.UID))), pool.String(filed.Spec.Revision)
	filed.Spec.RuntimeSpec.Raw = pool.Bytes(filed.Spec.RuntimeSpec.Raw)
}
