package chaos_test

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// watcher records every version of the TrainJobs of a namespace, as far as the API server is
// there to tell.
type watcher struct {
	client    client.WithWatch
	namespace string
	records   map[string]*record
}

func newWatcher(namespace string, records map[string]*record) (*watcher, error) {
	scheme := runtime.NewScheme()
	if err := trainer.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(shared.Config, client.Options{Scheme: scheme})
	return &watcher{client: c, namespace: namespace, records: records}, err
}

// run records until ctx ends.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.follow(ctx)
		pause(ctx, 100*time.Millisecond)
	}
}

// follow lists the TrainJobs and watches them until the connection ends.
func (w *watcher) follow(ctx context.Context) {
	var list trainer.TrainJobList
	if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		return
	}
	for i := range list.Items {
		w.take(&list.Items[i], false)
	}
	events, err := w.client.Watch(ctx, &list, client.InNamespace(w.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return
		}
		if job, ok := event.Object.(*trainer.TrainJob); ok {
			w.take(job, true)
		}
	}
}

func (w *watcher) take(job *trainer.TrainJob, next bool) {
	if r := w.records[job.Name]; r != nil {
		r.stored(job, next, time.Now())
	}
}
