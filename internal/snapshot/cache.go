package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/shared"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Cached is what the cache of the reconcilers must hold of each TrainJob and its JobSet: no more than
// they read, and once what many of them have in common. The objects are for reading: they share
// memory.
func Cached() map[client.Object]cache.ByObject {
	pool := shared.NewPool()
	return map[client.Object]cache.ByObject{
		&trainer.TrainJob{}: {Transform: transform(func(job *trainer.TrainJob) {
			trainer.Trim(job, pool)
			split(job.Annotations, pool)
		})},
		&trainer.JobSet{}: {Transform: transform(func(jobSet *trainer.JobSet) { trainer.TrimJobSet(jobSet, pool) })},
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

// labelled selects the ConfigMaps that the reconciler looks after.
func labelled() client.ListOption {
	requirement, err := labels.NewRequirement(v1alpha1.LabelRuntimeRevision, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*requirement)}
}

// noteConfigMap takes the note of a ConfigMap that Trainer reads: it is settled when it cannot be
// changed any more, and its content carries the revision that it has and that the label says.
func noteConfigMap(object client.Object) note {
	config, ok := object.(*corev1.ConfigMap)
	if !ok {
		return note{}
	}
	s, carried := readText(config.Data[trainer.SnapshotKey])
	return noteOf(config, s, s != nil && carried == s.Revision && inOrder(config, s))
}

// noteFiled takes the note of a TrainingRuntimeSnapshot: it is settled when it is what it says, and
// its annotations say the same.
func noteFiled(object client.Object) note {
	filed, ok := object.(*v1alpha1.TrainingRuntimeSnapshot)
	if !ok {
		return note{}
	}
	s, err := FromObject(filed)
	if err != nil {
		return noteOf(filed, nil, false)
	}
	return noteOf(filed, s, annotated(filed, s))
}
