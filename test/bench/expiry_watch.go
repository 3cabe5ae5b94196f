package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

// ends is how the TrainJobs of one second ended.
type ends struct {
	// late holds how long after its deadline each was Failed, and all its pods were gone.
	late map[stage]figures.Samples
	// took is the time from the first deadline until the last was.
	took map[stage]time.Duration
}

// stage is a step of the end of a TrainJob.
type stage int

const (
	failed stage = iota
	gone
)

// fate is what became of a TrainJob, by the time at which this process learned of it.
type fate struct {
	deadline, failed time.Time
	// pods are those that ever ran, with the time at which each was gone.
	pods map[types.UID]time.Time
}

// watcher learns by watches what becomes of TrainJobs.
type watcher struct {
	stop context.CancelFunc

	mu    sync.Mutex
	fates map[client.ObjectKey]*fate
	// broken is why nothing more is learned.
	broken error
}

// watch begins to watch all TrainJobs and all pods that run. It must be stopped.
func watch(ctx context.Context, config *rest.Config) (*watcher, error) {
	scheme := runtime.NewScheme()
	if err := trainer.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	w := &watcher{fates: map[client.ObjectKey]*fate{}}
	ctx, w.stop = context.WithCancel(ctx)
	// The view of a TrainJob leaves out most of it, which makes it cheap to read.
	err = w.follow(ctx, c, &trainer.TrainJobList{}, w.trainJob)
	if err == nil {
		err = w.follow(ctx, c, pods, w.pod, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("status.phase", "Running")})
	}
	if err != nil {
		w.stop()
	}
	return w, err
}

// follow calls handle with all that is news in the list.
func (w *watcher) follow(ctx context.Context, c client.WithWatch, list client.ObjectList, handle func(apiwatch.Event, time.Time), of ...client.ListOption) error {
	if err := c.List(ctx, list, append(of, client.Limit(1))...); err != nil {
		return err
	}
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		return c.Watch(ctx, list, append(of, &client.ListOptions{Raw: &options})...)
	}}
	// The API server ends a watch now and then.
	news, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), source)
	if err != nil {
		return err
	}
	go func() {
		for event := range news.ResultChan() {
			if event.Type == apiwatch.Error {
				w.mu.Lock()
				w.broken = fmt.Errorf("the watch broke: %v", event.Object)
				w.mu.Unlock()
				return
			}
			handle(event, time.Now())
		}
	}()
	return nil
}

func (w *watcher) trainJob(event apiwatch.Event, now time.Time) {
	job, ok := event.Object.(*trainer.TrainJob)
	if !ok || !job.DeadlineExceeded() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if of := w.of(client.ObjectKeyFromObject(job)); of.failed.IsZero() {
		of.failed = now
	}
}

func (w *watcher) pod(event apiwatch.Event, now time.Time) {
	pod, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.of(client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[trainer.LabelJobSetName]})
	if event.Type == apiwatch.Deleted {
		of.pods[pod.UID] = now
	} else if _, known := of.pods[pod.UID]; !known {
		of.pods[pod.UID] = time.Time{}
	}
}

// of returns the fate of the TrainJob, a new one at first. Its pods may be heard of before its
// creation is answered.
func (w *watcher) of(key client.ObjectKey) *fate {
	if w.fates[key] == nil {
		w.fates[key] = &fate{pods: map[types.UID]time.Time{}}
	}
	return w.fates[key]
}

// expect notes the deadline of a TrainJob.
func (w *watcher) expect(namespace, name string, deadline time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(client.ObjectKey{Namespace: namespace, Name: name}).deadline = deadline
}

// deadline returns the deadline of a TrainJob.
func (w *watcher) deadline(namespace, name string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of(client.ObjectKey{Namespace: namespace, Name: name}).deadline
}

// due notes that this instant is the deadline of all TrainJobs of the namespace.
func (w *watcher) due(namespace string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, of := range w.fates {
		if key.Namespace == namespace {
			of.deadline = at
		}
	}
}

// stall is how long nothing may change while a bench waits for TrainJobs.
const stall = 2 * time.Minute

// running waits until that many TrainJobs of these namespaces have a pod that runs.
func (w *watcher) running(ctx context.Context, namespaces []string, count int) error {
	return w.await(ctx, "the pods to run", namespaces, func(fates []*fate) int {
		have := 0
		for _, of := range fates {
			if len(of.pods) > 0 {
				have++
			}
		}
		return count - have
	})
}

// over waits until all TrainJobs of these namespaces are Failed and their pods are gone.
func (w *watcher) over(ctx context.Context, namespaces []string) error {
	return w.await(ctx, "the TrainJobs to end", namespaces, func(fates []*fate) int {
		left := 0
		for _, of := range fates {
			if of.failed.IsZero() || of.gone().IsZero() {
				left++
			}
		}
		return left
	})
}

// gone is when the last of the pods was gone; the zero time while there is one.
func (f *fate) gone() time.Time {
	var last time.Time
	for _, at := range f.pods {
		if at.IsZero() {
			return at
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// await waits until count returns 0, as long as it gets less.
func (w *watcher) await(ctx context.Context, what string, namespaces []string, count func([]*fate) int) error {
	last, since := -1, time.Now()
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := count(w.within(namespaces))
		if left != last {
			last, since = left, time.Now()
		}
		switch {
		case left == 0:
			return true, nil
		case w.broken != nil:
			return false, w.broken
		case time.Since(since) > stall:
			return false, fmt.Errorf("waiting for %s: %d are left, as many as %s ago", what, left, stall)
		}
		return false, nil
	})
}

// within returns the fates of the TrainJobs of these namespaces.
func (w *watcher) within(namespaces []string) []*fate {
	var found []*fate
	for key, of := range w.fates {
		if slices.Contains(namespaces, key.Namespace) {
			found = append(found, of)
		}
	}
	return found
}

// ends tells how the TrainJobs of the namespace ended.
func (w *watcher) ends(namespace string) ends {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := ends{late: map[stage]figures.Samples{}, took: map[stage]time.Duration{}}
	fates := w.within([]string{namespace})
	first := slices.MinFunc(fates, func(a, b *fate) int { return a.deadline.Compare(b.deadline) }).deadline
	for _, of := range fates {
		for stage, at := range map[stage]time.Time{failed: of.failed, gone: of.gone()} {
			found.late[stage] = append(found.late[stage], at.Sub(of.deadline))
			found.took[stage] = max(found.took[stage], at.Sub(first))
		}
	}
	return found
}

// since returns how long after these instants it was learned that each TrainJob was Failed.
func (w *watcher) since(answered map[client.ObjectKey]time.Time) figures.Samples {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found figures.Samples
	for key, at := range answered {
		found = append(found, w.of(key).failed.Sub(at))
	}
	return found
}
