package main

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// The kinds that are watched.
const (
	kindTrainJob = trainer.TrainJobKind
	kindJobSet   = "JobSet"
	kindJob      = "Job"
	kindPod      = "Pod"
	kindEvent    = "Event"
)

// kindOf returns the kind of a watched object: typed ones arrive without it.
func kindOf(object client.Object) string {
	switch o := object.(type) {
	case *trainer.TrainJob:
		return kindTrainJob
	case *batchv1.Job:
		return kindJob
	case *corev1.Pod:
		return kindPod
	case *corev1.Event:
		return kindEvent
	case *unstructured.Unstructured:
		return o.GetKind()
	}
	return ""
}

// key names an object in the demo's namespace.
type key struct{ kind, name string }

// world is what the watches have shown so far: all objects that are there.
type world map[key]client.Object

// take brings the world up to date and returns what was known of the object before, nil if
// it is new.
func (w world) take(o observation) client.Object {
	k := key{kindOf(o.object), o.object.GetName()}
	before := w[k]
	if o.deleted {
		delete(w, k)
	} else {
		w[k] = o.object
	}
	return before
}

// trainJob returns the TrainJob of the story, an empty one if it is not there.
func (w world) trainJob() *trainer.TrainJob {
	if job, ok := w[key{kindTrainJob, jobName}].(*trainer.TrainJob); ok {
		return job
	}
	return &trainer.TrainJob{}
}

// count returns how many objects of that kind are there.
func (w world) count(kind string) int {
	n := 0
	for k := range w {
		if k.kind == kind {
			n++
		}
	}
	return n
}

// running returns how many pods run.
func (w world) running() int {
	n := 0
	for _, object := range w {
		if pod, ok := object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n
}

// reported tells whether an event with this reason is there for the TrainJob.
func (w world) reported(reason string) bool {
	for _, object := range w {
		if event, ok := object.(*corev1.Event); ok && event.InvolvedObject.Kind == kindTrainJob && event.Reason == reason {
			return true
		}
	}
	return false
}

func stampOf(job *trainer.TrainJob) string { return job.Annotations[v1alpha1.AnnotationResumedAt] }
