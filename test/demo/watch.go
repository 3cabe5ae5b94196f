package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// observation is one message of a watch: the object as it is now, or as it was last when it
// is deleted. With err the watch is over.
type observation struct {
	at      time.Time
	object  client.Object
	deleted bool
	err     error
}

// watchAll watches all that the story is about until ctx ends. The instant of an
// observation is that of its arrival.
func watchAll(ctx context.Context, c client.WithWatch) (<-chan observation, error) {
	jobSets := &unstructured.UnstructuredList{}
	gvk := trainer.JobSetGroupVersionKind
	gvk.Kind += "List"
	jobSets.SetGroupVersionKind(gvk)
	seen := make(chan observation)
	for kind, list := range map[string]client.ObjectList{
		kindTrainJob: &trainer.TrainJobList{},
		kindJobSet:   jobSets,
		kindJob:      &batchv1.JobList{},
		kindPod:      &corev1.PodList{},
		kindEvent:    &corev1.EventList{},
	} {
		w, err := c.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("watch %ss: %w", kind, err)
		}
		go forward(ctx, kind, w, seen)
	}
	return seen, nil
}

// forward hands over what the watch reports until it or ctx ends.
func forward(ctx context.Context, kind string, w watch.Interface, seen chan<- observation) {
	defer w.Stop()
	for over := false; !over; {
		message, open := <-w.ResultChan()
		o := observe(kind, message, open, time.Now())
		over = o.err != nil
		select {
		case seen <- o:
		case <-ctx.Done():
			return
		}
	}
}

// observe turns a message of a watch into an observation. The watches ask for no bookmarks,
// so that each other message carries an object.
func observe(kind string, message watch.Event, open bool, at time.Time) observation {
	if !open {
		return observation{err: fmt.Errorf("the API server ended the watch of %ss", kind)}
	}
	object, ok := message.Object.(client.Object)
	if !ok || message.Type == watch.Error {
		return observation{err: fmt.Errorf("the watch of %ss failed: %w", kind, apierrors.FromObject(message.Object))}
	}
	return observation{at: at, object: object, deleted: message.Type == watch.Deleted}
}
