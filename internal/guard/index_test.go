package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const (
	cluster    = trainer.ClusterTrainingRuntimeKind
	namespaced = trainer.TrainingRuntimeKind
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(trainer.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	// Runtimes have no type here: they are JSON.
	for _, kind := range []string{cluster, namespaced} {
		scheme.AddKnownTypeWithName(trainer.GroupVersion.WithKind(kind), &unstructured.Unstructured{})
	}
	return scheme
}

// indexed is a cache that holds these objects, with the indexes that it was told to keep.
type indexed struct {
	cache.Cache
	t       testing.TB
	objects []client.Object
	// fault answers IndexField in place of the cache; nil lets it through.
	fault func() error
	// lists counts what is asked for, failure is the answer if it is set.
	lists   int
	failure error

	store client.WithWatch
}

func (c *indexed) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	if c.fault != nil {
		if err := c.fault(); err != nil {
			return err
		}
	}
	c.store = fake.NewClientBuilder().WithScheme(newScheme(c.t)).WithObjects(builder.Copies(c.objects)...).WithIndex(object, field, extract).Build()
	return nil
}

func (c *indexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	if c.failure != nil {
		return c.failure
	}
	return c.store.List(ctx, list, options...)
}

// newIndex makes an index on a cache with these objects; it has started.
func newIndex(t testing.TB, objects ...client.Object) (*Index, *indexed) {
	t.Helper()
	cache := &indexed{t: t, objects: objects}
	index := &Index{Cache: cache, Clock: clock.RealClock{}}
	if err := index.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return index, cache
}

func job(namespace, name, kind, runtime string) *builder.TrainJobBuilder {
	return builder.TrainJob(namespace, name).Runtime(kind, runtime)
}

func ended(b *builder.TrainJobBuilder, condition string, status metav1.ConditionStatus) *trainer.TrainJob {
	return b.Condition(condition, status, "Reason", time.Now()).Obj()
}

// queued has Kueue look after the TrainJob.
func queued(job *trainer.TrainJob) *trainer.TrainJob {
	job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "queue"}
	return job
}

func names(jobs []*trainer.TrainJob) []string {
	var names []string
	for i := range jobs {
		names = append(names, jobs[i].Namespace+"/"+jobs[i].Name)
	}
	return names
}

func TestRuntimeString(t *testing.T) {
	if got := (Runtime{Kind: cluster, Name: "torch"}).String(); got != "ClusterTrainingRuntime torch" {
		t.Errorf("of the cluster: %s", got)
	}
	if got := (Runtime{Kind: namespaced, Namespace: "ns", Name: "torch"}).String(); got != "TrainingRuntime ns/torch" {
		t.Errorf("of a namespace: %s", got)
	}
}

func TestIndexUsers(t *testing.T) {
	bare := builder.TrainJob("a", "bare").Obj()
	bare.Spec.RuntimeRef = trainer.RuntimeRef{Name: "torch"}
	foreign := job("a", "foreign", namespaced, "torch").Obj()
	foreign.Spec.RuntimeRef.APIGroup = ptr.To("example.com")
	unknown := job("a", "unknown", "OtherRuntime", "torch").Obj()
	index, cache := newIndex(t,
		job("b", "active", cluster, "torch").Obj(),
		job("a", "suspended", cluster, "torch").Suspended().Obj(),
		job("a", "elsewhere", cluster, "torch").ManagedBy("kueue.x-k8s.io/multikueue").Obj(),
		job("a", "deleting", cluster, "torch").Deleting(time.Now()).Obj(),
		bare,
		ended(job("a", "not-suspended", cluster, "torch"), trainer.ConditionSuspended, metav1.ConditionFalse),
		ended(job("a", "not-failed", cluster, "torch"), trainer.ConditionFailed, metav1.ConditionFalse),
		ended(job("a", "complete", cluster, "torch"), trainer.ConditionComplete, metav1.ConditionTrue),
		ended(job("a", "failed", cluster, "torch"), trainer.ConditionFailed, metav1.ConditionTrue),
		ended(job("a", "complete-deleting", cluster, "torch").Deleting(time.Now()), trainer.ConditionComplete, metav1.ConditionTrue),
		queued(ended(job("a", "queue-complete", cluster, "torch"), trainer.ConditionComplete, metav1.ConditionTrue)),
		queued(job("a", "queue-long-complete", cluster, "torch").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", time.Now().Add(-time.Minute)).Obj()),
		job("a", "other", cluster, "torch2").Obj(),
		job("a", "own", namespaced, "torch").Obj(),
		job("b", "own", namespaced, "torch").Obj(),
		foreign, unknown,
	)
	for runtime, want := range map[Runtime][]string{
		{Kind: cluster, Name: "torch"}:                      {"a/bare", "a/complete-deleting", "a/deleting", "a/elsewhere", "a/not-failed", "a/not-suspended", "a/queue-complete", "a/suspended", "b/active"},
		{Kind: cluster, Name: "torch2"}:                     {"a/other"},
		{Kind: namespaced, Namespace: "a", Name: "torch"}:   {"a/own"},
		{Kind: namespaced, Namespace: "b", Name: "torch"}:   {"b/own"},
		{Kind: namespaced, Namespace: "c", Name: "torch"}:   nil,
		{Kind: namespaced, Name: "torch"}:                   nil,
		{Kind: cluster, Namespace: "a", Name: "torch"}:      nil,
		{Kind: cluster, Name: "tor"}:                        nil,
		{Kind: "OtherRuntime", Namespace: "a", Name: "any"}: nil,
	} {
		jobs, err := index.Users(t.Context(), runtime)
		if diff := cmp.Diff(want, names(jobs)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", runtime, err, diff)
		}
	}

	// The index follows what is stored.
	now := job("a", "other", cluster, "torch2").Obj()
	if err := cache.store.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		t.Fatal(err)
	}
	now.Status.Conditions = []metav1.Condition{{Type: trainer.ConditionComplete, Status: metav1.ConditionTrue}}
	if err := cache.store.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if jobs, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch2"}); len(jobs) != 0 || err != nil {
		t.Errorf("after its end: %v, %v", names(jobs), err)
	}

	cache.failure = errors.New("no cache")
	if jobs, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch"}); len(jobs) != 0 || err == nil ||
		err.Error() != "list TrainJobs of ClusterTrainingRuntime torch: no cache" || !errors.Is(err, cache.failure) {
		t.Errorf("without the cache: %v, %v", names(jobs), err)
	}
}

// Before TrainJobs are installed there are none, and the cache is not asked, which would wait
// for them. The index looks again until they are.
func TestIndexWaitsForTrainJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var installed atomic.Bool
		var tries atomic.Int32
		cache := &indexed{t: t, objects: []client.Object{job("a", "job", cluster, "torch").Obj()}, fault: func() error {
			if tries.Add(1); !installed.Load() {
				return &meta.NoKindMatchError{GroupKind: trainer.GroupVersion.WithKind(trainer.TrainJobKind).GroupKind()}
			}
			return nil
		}}
		index := &Index{Cache: cache, Clock: clock.RealClock{}}
		if index.NeedLeaderElection() {
			t.Error("only the leader would have an index")
		}
		started := make(chan error, 1)
		go func() { started <- index.Start(t.Context()) }()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if jobs, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch"}); len(jobs) != 0 || err != nil || cache.lists != 0 {
			t.Errorf("too early: %v, %v, %d lists", names(jobs), err, cache.lists)
		}
		if tries.Load() != 3 {
			t.Errorf("%d tries in 12 s, want 3", tries.Load())
		}
		installed.Store(true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		select {
		case err := <-started:
			if err != nil {
				t.Errorf("Start = %v", err)
			}
		default:
			t.Fatal("still waiting")
		}
		if jobs, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch"}); len(jobs) != 1 || err != nil {
			t.Errorf("afterwards: %v, %v", names(jobs), err)
		}
	})
}

// Where it is not known what uses a runtime, that is an error and not nothing.
func TestIndexThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index := &Index{Cache: &indexed{t: t, fault: func() error { return errors.New("no API server") }}, Clock: clock.RealClock{}}
		asked := time.Now()
		if _, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch"}); err == nil {
			t.Error("no error before the first try")
		}
		if took := time.Since(asked); took != cacheTurn {
			t.Errorf("it waited %s, want %s", took, cacheTurn)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := index.Start(ctx); err != nil {
			t.Errorf("Start = %v", err)
		}
		_, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch"})
		if want := "the TrainJobs are not indexed: no API server"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

// The webhook serves a little before its cache starts: who asks then waits for the first try.
func TestIndexThatIsAskedBeforeItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index := &Index{Cache: &indexed{t: t, objects: []client.Object{job("a", "job", cluster, "torch").Obj()}}, Clock: clock.RealClock{}}
		go func() {
			time.Sleep(3 * time.Second)
			if err := index.Start(t.Context()); err != nil {
				t.Errorf("Start = %v", err)
			}
		}()
		asked := time.Now()
		if jobs, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch"}); len(jobs) != 1 || err != nil {
			t.Errorf("%v, %v", names(jobs), err)
		}
		if took := time.Since(asked); took < 3*time.Second || took > 3*time.Second+betweenLooks {
			t.Errorf("answered after %s", took)
		}
	})
}

func TestIndexStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index := &Index{Cache: &indexed{t: t, fault: func() error { return errors.New("no TrainJobs") }}}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := index.Start(ctx); err != nil {
			t.Errorf("Start = %v", err)
		}
	})
}

// The cache keeps of a TrainJob what the index reads, and no more.
func TestCacheTrainJobs(t *testing.T) {
	transform := CacheTrainJobs().Transform
	full := job("a", "job", cluster, "torch").Annotation("lifecycle.trainer.kubeflow.org/runtime-snapshot", strings.Repeat("x", 1000)).
		Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", time.Now()).Obj()
	full.Spec.Initializer = &trainer.Initializer{Model: &trainer.Fetched{}}
	full.Labels = map[string]string{"a": "b"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	full.OwnerReferences = []metav1.OwnerReference{{Name: "owner"}}
	want := full.DeepCopy()
	want.Annotations, want.Labels, want.ManagedFields, want.OwnerReferences = nil, nil, nil, nil
	want.Status.Conditions[0].Message = ""
	got, err := transform(full)
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	gone := toolscache.DeletedFinalStateUnknown{Key: "a/job"}
	if got, err := transform(gone); err != nil || got != any(gone) {
		t.Errorf("a tombstone: %v, %v", got, err)
	}
}

func TestConfirm(t *testing.T) {
	reads := 0
	live := func(objects ...client.Object) client.Reader {
		return interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(builder.Copies(objects)...).Build(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				reads++
				return c.Get(ctx, key, object, options...)
			},
		})
	}
	of := func(name string) *builder.TrainJobBuilder { return job("a", name, cluster, "torch") }
	seen := []*trainer.TrainJob{of("a").Obj(), of("b").Obj(), of("c").Obj(), of("d").Obj()}
	for name, tc := range map[string]struct {
		jobs  []*trainer.TrainJob
		live  []client.Object
		most  int
		want  []string
		rest  int
		reads int
	}{
		"none":                    {},
		"all there":               {jobs: seen, live: []client.Object{of("a").Obj(), of("b").Obj(), of("c").Obj(), of("d").Obj()}, most: 10, want: []string{"a/a", "a/b", "a/c", "a/d"}, reads: 4},
		"as many as asked for":    {jobs: seen, live: []client.Object{of("a").Obj(), of("b").Obj(), of("c").Obj(), of("d").Obj()}, most: 4, want: []string{"a/a", "a/b", "a/c", "a/d"}, reads: 4},
		"more than asked for":     {jobs: seen, live: []client.Object{of("a").Obj(), of("b").Obj(), of("c").Obj(), of("d").Obj()}, most: 2, want: []string{"a/a", "a/b"}, rest: 2, reads: 2},
		"all gone":                {jobs: seen, most: 10, reads: 4},
		"one gone":                {jobs: seen, live: []client.Object{of("b").Obj(), of("c").Obj(), of("d").Obj()}, most: 2, want: []string{"a/b", "a/c"}, rest: 1, reads: 3},
		"one complete":            {jobs: seen[:2], live: []client.Object{ended(of("a"), trainer.ConditionComplete, metav1.ConditionTrue), of("b").Obj()}, most: 10, want: []string{"a/b"}, reads: 2},
		"one failed":              {jobs: seen[:2], live: []client.Object{ended(of("a"), trainer.ConditionFailed, metav1.ConditionTrue), of("b").Obj()}, most: 10, want: []string{"a/b"}, reads: 2},
		"one that fails no more":  {jobs: seen[:2], live: []client.Object{ended(of("a"), trainer.ConditionFailed, metav1.ConditionFalse), of("b").Obj()}, most: 10, want: []string{"a/a", "a/b"}, reads: 2},
		"one on another runtime":  {jobs: seen[:2], live: []client.Object{job("a", "a", cluster, "jax").Obj(), of("b").Obj()}, most: 10, want: []string{"a/b"}, reads: 2},
		"one on another kind":     {jobs: seen[:2], live: []client.Object{job("a", "a", namespaced, "torch").Obj(), of("b").Obj()}, most: 10, want: []string{"a/b"}, reads: 2},
		"the same in a namespace": {jobs: []*trainer.TrainJob{job("a", "a", namespaced, "torch").Obj()}, live: []client.Object{job("a", "a", namespaced, "torch").Obj()}, most: 10, want: []string{"a/a"}, reads: 1},
		"being deleted":           {jobs: seen[:1], live: []client.Object{of("a").Deleting(time.Now()).Obj()}, most: 10, want: []string{"a/a"}, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads = 0
			confirmed, rest, err := (&Index{Live: live(tc.live...), Clock: clock.RealClock{}}).Confirm(t.Context(), tc.jobs, tc.most)
			if diff := cmp.Diff(tc.want, names(confirmed)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if rest != tc.rest || reads != tc.reads {
				t.Errorf("%d not looked at and %d reads, want %d and %d", rest, reads, tc.rest, tc.reads)
			}
		})
	}

	t.Run("one that cannot be read, after one that is confirmed", func(t *testing.T) {
		reads := 0
		flaky := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(of("a").Obj(), of("b").Obj()).Build(), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if reads++; reads > 1 {
					return errors.New("no API server")
				}
				return c.Get(ctx, key, object, options...)
			},
		})
		confirmed, rest, err := (&Index{Live: flaky, Clock: clock.RealClock{}}).Confirm(t.Context(), seen, 10)
		if len(confirmed) != 1 || rest != 3 || err != nil {
			t.Errorf("%v, %d, %v", names(confirmed), rest, err)
		}
	})

	failure := errors.New("no API server")
	broken := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return failure
		},
	})
	confirmed, rest, err := (&Index{Live: broken, Clock: clock.RealClock{}}).Confirm(t.Context(), seen, 10)
	if len(confirmed) != 0 || rest != 0 || !errors.Is(err, failure) || err.Error() != "read TrainJob: no API server" {
		t.Errorf("without the API server: %v, %d, %v", names(confirmed), rest, err)
	}
}

// What was read live counts, not what the index knew.
func TestConfirmReturnsWhatIsLive(t *testing.T) {
	live := job("a", "a", cluster, "torch").Obj()
	live.Spec.Initializer = &trainer.Initializer{Dataset: &trainer.Fetched{}}
	index := &Index{Clock: clock.RealClock{}, Live: fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(live).Build()}
	confirmed, _, err := index.Confirm(t.Context(), []*trainer.TrainJob{job("a", "a", cluster, "torch").Obj()}, 1)
	if err != nil || len(confirmed) != 1 || confirmed[0].Spec.Initializer == nil {
		t.Errorf("%+v, %v", confirmed, err)
	}
}

func TestNeedsOf(t *testing.T) {
	with := func(initializer *trainer.Initializer) *trainer.TrainJob {
		j := job("a", "a", cluster, "torch").Obj()
		j.Spec.Initializer = initializer
		return j
	}
	none, empty := with(nil), with(&trainer.Initializer{})
	dataset, model := with(&trainer.Initializer{Dataset: &trainer.Fetched{}}), with(&trainer.Initializer{Model: &trainer.Fetched{}})
	for name, tc := range map[string]struct {
		jobs []*trainer.TrainJob
		want Needs
	}{
		"no TrainJob":       {nil, Needs{}},
		"no initializer":    {[]*trainer.TrainJob{none, empty}, Needs{}},
		"a dataset":         {[]*trainer.TrainJob{none, dataset, none}, Needs{Dataset: true}},
		"a model":           {[]*trainer.TrainJob{model, empty}, Needs{Model: true}},
		"one each":          {[]*trainer.TrainJob{dataset, model}, Needs{Dataset: true, Model: true}},
		"both in a single ": {[]*trainer.TrainJob{with(&trainer.Initializer{Dataset: &trainer.Fetched{}, Model: &trainer.Fetched{}})}, Needs{Dataset: true, Model: true}},
	} {
		if got := NeedsOf(tc.jobs); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// Kueue gets its turn to see that a TrainJob is finished, by its own clock and no longer.
func TestIndexLeavesKueueItsTurn(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		job  *trainer.TrainJob
		now  time.Time
		want bool
	}{
		"just finished":            {queued(job("a", "a", cluster, "torch").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", end).Obj()), end, true},
		"just failed":              {queued(job("a", "a", cluster, "torch").Condition(trainer.ConditionFailed, metav1.ConditionTrue, "Failed", end).Obj()), end.Add(29 * time.Second), true},
		"finished before":          {queued(job("a", "a", cluster, "torch").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", end).Obj()), end.Add(30 * time.Second), false},
		"by a clock that is ahead": {queued(job("a", "a", cluster, "torch").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", end).Obj()), end.Add(-time.Minute), true},
		"suspended just now, finished before": {
			queued(job("a", "a", cluster, "torch").Condition(trainer.ConditionSuspended, metav1.ConditionTrue, "Suspended", end).
				Condition(trainer.ConditionFailed, metav1.ConditionFalse, "No", end).
				Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", end.Add(-time.Hour)).Obj()), end, false,
		},
		"without Kueue":                      {job("a", "a", cluster, "torch").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", end).Obj(), end, false},
		"without Kueue, held by a finalizer": {job("a", "a", cluster, "torch").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", end).Deleting(end).Obj(), end.Add(time.Hour), true},
	} {
		t.Run(name, func(t *testing.T) {
			index, cache := newIndex(t, tc.job)
			index.Clock, index.Live = clocktesting.NewFakePassiveClock(tc.now), cache.store
			users, err := index.Users(t.Context(), Runtime{Kind: cluster, Name: "torch"})
			if err != nil || (len(users) == 1) != tc.want {
				t.Errorf("users %v, %v; want one: %v", names(users), err, tc.want)
			}
			confirmed, _, err := index.Confirm(t.Context(), []*trainer.TrainJob{tc.job}, 10)
			if err != nil || (len(confirmed) == 1) != tc.want {
				t.Errorf("confirmed %v, %v; want one: %v", names(confirmed), err, tc.want)
			}
		})
	}
}

// Where the index is far behind, not all that it has is read once there is an answer.
func TestConfirmReadsNoMoreThanItNeeds(t *testing.T) {
	var seen []*trainer.TrainJob
	for i := range 40 {
		seen = append(seen, job("a", fmt.Sprintf("job-%02d", i), cluster, "torch").Obj())
	}
	for name, tc := range map[string]struct {
		live        string
		rest, reads int
	}{
		"the first is there": {"job-00", 34, 6},
		"the last is there":  {"job-39", 0, 40},
		"none is there":      {"other", 0, 40},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(job("a", tc.live, cluster, "torch").Obj()).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, object, options...)
				},
			})
			_, rest, err := (&Index{Live: live, Clock: clock.RealClock{}}).Confirm(t.Context(), seen, 2)
			if err != nil || rest != tc.rest || reads != tc.reads {
				t.Errorf("%v, %d not looked at after %d reads; want %d after %d", err, rest, reads, tc.rest, tc.reads)
			}
		})
	}
}
