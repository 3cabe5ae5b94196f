package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// way is who ends the TrainJobs.
type way string

const (
	// bySignalbox: deadlines that Trainer does not know of.
	bySignalbox way = "Signalbox"
	// byStock: deadlines of Trainer alone, without Signalbox.
	byStock way = "stock"
	// byClient: no deadlines, and a client that does to each TrainJob what must be done, as fast as
	// it can.
	byClient way = "bare limit"
)

// ways are in the order of the tables.
var ways = []way{bySignalbox, byStock, byClient}

// round is so many TrainJobs that end in the same second, a few times over.
type round struct {
	size, times int
	// apart is the time between two of the times.
	apart time.Duration
}

var (
	rounds      = []round{{10, 10, 2 * time.Second}, {100, 3, 5 * time.Second}, {1000, 1, 0}}
	shortRounds = []round{{10, 3, time.Second}, {50, 1, 0}}
	// fullRound takes some 20 minutes in the three ways on two cores.
	fullRound = round{5000, 1, 0}
)

// nodesFor is how many nodes have room for the pods of the largest round.
const nodesFor = 8

// expiry measures how long after their deadlines TrainJobs are Failed and their pods gone.
func expiry(ctx context.Context, o options) (*figures.Report, error) {
	of := rounds
	if o.full {
		of = append(slices.Clone(rounds), fullRound)
	}
	if o.short {
		of = shortRounds
	}
	found := expiryFigures{ends: map[way]map[int][]ends{}, observer: map[way]map[int]float64{}}
	for _, w := range ways {
		if err := found.measure(ctx, w, of); err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
	}
	return found.report(of), nil
}

// expiryFigures is what was measured.
type expiryFigures struct {
	// ends holds by way and size one element for each time.
	ends map[way]map[int][]ends
	// costs is what Signalbox's reconciler took, by size.
	costs map[int]endCost
	// told is the time from the answer to the bare client to the news of it.
	told figures.Samples
	// observer is the share of the machine's processors that this process took while TrainJobs ended,
	// by way and size.
	observer map[way]map[int]float64
}

// measure takes all rounds in one way, in a cluster of its own.
func (f *expiryFigures) measure(ctx context.Context, w way, of []round) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{
		Signalbox: w == bySignalbox, Unthrottled: true, Nodes: nodesFor, Log: os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	e, err := newEnder(ctx, c, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	f.ends[w] = map[int][]ends{}
	if w == bySignalbox {
		f.costs = e.costs
	}
	f.observer[w] = e.observer
	for _, r := range of {
		found, err := e.take(ctx, r)
		if err != nil {
			return fmt.Errorf("%d at once: %w", r.size, err)
		}
		f.ends[w][r.size] = found
		fmt.Fprintf(os.Stderr, "%s: %d at once: Failed %s, pods gone %s\n", w, r.size, found[0].whole(failed), found[0].whole(gone))
	}
	f.told = append(f.told, e.told...)
	return nil
}

// ender has TrainJobs end in one way.
type ender struct {
	*cluster.Cluster
	way     way
	watcher *watcher
	client  *bareClient
	store   *store

	// As in expiryFigures, by size.
	told     figures.Samples
	costs    map[int]endCost
	observer map[int]float64
}

// How long before the first deadline a round begins: for the TrainJob that goes the ordinary way, and
// for each copy, which all controllers look at.
const (
	margin = 30 * time.Second
	each   = 25 * time.Millisecond
)

func newEnder(ctx context.Context, c *cluster.Cluster, w way) (*ender, error) {
	e := &ender{Cluster: c, way: w, costs: map[int]endCost{}, observer: map[int]float64{}}
	probe := trainJob("default", "probe", builtIn, nil)
	err := c.Client.Create(ctx, probe, client.DryRunAll)
	if stamped := probe.GetAnnotations()[v1alpha1.AnnotationResumedAt] != ""; err == nil && stamped != (w == bySignalbox) {
		err = fmt.Errorf("a new TrainJob is stamped: %v", stamped)
	}
	if err == nil && w == byClient {
		e.client, err = newBareClient(ctx, c)
	}
	if err == nil {
		e.store, err = openStore(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if e.watcher, err = watch(ctx, c.Config); err != nil {
		return nil, errors.Join(err, e.store.Close())
	}
	return e, nil
}

// close ends what newEnder has begun.
func (e *ender) close() error {
	e.watcher.stop()
	return e.store.Close()
}

// take has the TrainJobs of the round run, lets them end and tells how they did. One of each time
// goes the ordinary way; the others are copies of it.
func (e *ender) take(ctx context.Context, r round) ([]ends, error) {
	count := r.size * r.times
	// The first deadline is in the second that begins then.
	first := time.Now().Add(margin + time.Duration(count)*each).Truncate(time.Second)
	var namespaces []string
	for i := range r.times {
		namespace := fmt.Sprintf("expiry-%d-%d", r.size, i)
		object := &corev1.Namespace{}
		object.Name = namespace
		if err := e.Client.Create(ctx, object); err != nil {
			return nil, err
		}
		if err := e.create(ctx, namespace, numbered(0), first.Add(time.Duration(i)*r.apart)); err != nil {
			return nil, err
		}
		namespaces = append(namespaces, namespace)
	}
	if err := e.watcher.running(ctx, namespaces, r.times); err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		if err := e.copy(ctx, namespace, r.size); err != nil {
			return nil, err
		}
	}
	if err := e.watcher.running(ctx, namespaces, count); err != nil {
		return nil, err
	}
	rest := time.Until(first)
	fmt.Fprintf(os.Stderr, "%s: %d TrainJobs run, %s before the first deadline\n", e.way, count, rest.Round(time.Second))
	if rest < 0 {
		return nil, fmt.Errorf("the TrainJobs ran %s after the first deadline", -rest)
	}
	return e.measured(ctx, namespaces, r, first)
}

// numbered is the name of the TrainJob of this number.
func numbered(number int) string { return fmt.Sprintf("job-%05d", number) }

// copy adds copies of the first TrainJob of the namespace, once it rests, until there are so many.
func (e *ender) copy(ctx context.Context, namespace string, size int) error {
	template, err := e.resting(ctx, namespace)
	if err != nil {
		return err
	}
	deadline := e.watcher.deadline(namespace, numbered(0))
	next := 1
	return e.store.copyAll(ctx, 1, func() ([]clientv3.Op, error) {
		if next >= size {
			return nil, nil
		}
		name := numbered(next)
		next++
		e.watcher.expect(namespace, name, deadline)
		return template.copy(namespace, name, func(value []byte) []byte { return value })
	})
}

// unchanged is how long nothing of a TrainJob changes before it counts as at rest.
const unchanged = 2 * time.Second

// resting returns what is stored for the first TrainJob of the namespace, once that rests.
func (e *ender) resting(ctx context.Context, namespace string) (*template, error) {
	var last *template
	err := wait.PollUntilContextTimeout(ctx, unchanged, stall, true, func(ctx context.Context) (bool, error) {
		before := last
		var err error
		last, err = newTemplate(ctx, e.Cluster, e.store, namespace, numbered(0))
		return before != nil && reflect.DeepEqual(before, last), err
	})
	if err != nil {
		return nil, fmt.Errorf("the first TrainJob of %s to rest: %w", namespace, err)
	}
	return last, nil
}

// measured waits for the first deadline, and has measured what is taken until all have ended.
func (e *ender) measured(ctx context.Context, namespaces []string, r round, first time.Time) ([]ends, error) {
	// When they were announced there is nothing more to do until then.
	if err := sleepUntil(ctx, first.Add(-time.Second)); err != nil {
		return nil, err
	}
	var before, after endCost
	var err error
	if e.Reconciler != nil {
		before, err = costOf(ctx, e.Reconciler)
	}
	if err == nil {
		err = sleepUntil(ctx, first)
	}
	if err != nil {
		return nil, err
	}
	taken := share()
	found, err := e.end(ctx, namespaces, r, first)
	e.observer[r.size] = taken()
	if err == nil && e.Reconciler != nil {
		after, err = costOf(ctx, e.Reconciler)
		e.costs[r.size] = after.since(before)
	}
	return found, err
}

// end waits until the TrainJobs have ended, and tells how.
func (e *ender) end(ctx context.Context, namespaces []string, r round, first time.Time) ([]ends, error) {
	for i, namespace := range namespaces {
		if e.client == nil {
			break // they end by themselves
		}
		if err := sleepUntil(ctx, first.Add(time.Duration(i)*r.apart)); err != nil {
			return nil, err
		}
		e.watcher.due(namespace, time.Now())
		answered, err := e.client.end(ctx, namespace, r.size)
		if err != nil {
			return nil, err
		}
		if err := e.over(ctx, namespace); err != nil {
			return nil, err
		}
		e.told = append(e.told, e.watcher.since(answered)...)
	}
	if err := e.watcher.over(ctx, namespaces); err != nil {
		return nil, err
	}
	var found []ends
	for _, namespace := range namespaces {
		found = append(found, e.watcher.ends(namespace))
	}
	return found, nil
}

// over waits until the TrainJobs that the bare client ended have ended, and keeps them so.
func (e *ender) over(ctx context.Context, namespace string) error {
	group, ctx := errgroup.WithContext(ctx)
	keeping, stop := context.WithCancel(ctx)
	group.Go(func() error { return e.client.keep(keeping, namespace) })
	group.Go(func() error {
		defer stop()
		return e.watcher.over(ctx, []string{namespace})
	})
	return group.Wait()
}

// sleepUntil waits until that instant; it returns at once when it is past.
func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}

// create creates a TrainJob that is to end in the second that begins at that instant.
func (e *ender) create(ctx context.Context, namespace, name string, at time.Time) error {
	spec := map[string]any{}
	// Trainer counts from the whole second of the creation.
	seconds := int64(at.Sub(time.Now().Truncate(time.Second)) / time.Second)
	if seconds < 1 {
		return errors.New("the deadline comes before all TrainJobs are created")
	}
	if e.way == byStock {
		spec["activeDeadlineSeconds"] = seconds
	}
	job := trainJob(namespace, name, builtIn, spec)
	if e.way == bySignalbox {
		job.SetAnnotations(map[string]string{v1alpha1.AnnotationActiveDeadlineSeconds: fmt.Sprint(seconds)})
	}
	if err := e.Client.Create(ctx, job); err != nil {
		return fmt.Errorf("create TrainJob: %w", err)
	}
	start := job.GetCreationTimestamp().Time
	if e.way == bySignalbox {
		stamp, err := time.Parse(time.RFC3339Nano, job.GetAnnotations()[v1alpha1.AnnotationResumedAt])
		if err != nil {
			return fmt.Errorf("TrainJob %s: %w", name, err)
		}
		if stamp.After(start) {
			start = stamp
		}
	}
	deadline := start.Add(time.Duration(seconds) * time.Second)
	e.watcher.expect(namespace, name, deadline)
	return nil
}
