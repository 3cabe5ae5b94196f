package deadline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// givenJob is a TrainJob that was given its deadline by a policy, or by whom else is said.
func givenJob(by string) *builder.TrainJobBuilder {
	return builder.TrainJob("ns", "job").Created(created).Stamp(created).Annotation(v1alpha1.AnnotationActiveDeadlineSource, by)
}

// An expiry says who gave the deadline, in the condition, the event and the figures.
func TestReconcileSaysWhoGaveTheDeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		job          *builder.TrainJobBuilder
		want, series string
	}{
		"a policy": {givenJob("LifecyclePolicy/x").Deadline(60), "spec.activeDeadlineSeconds from LifecyclePolicy/x", "policy"},
		"a policy, by annotation": {
			givenJob("LifecyclePolicy/x").DeadlineAnnotation("60"), "annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds from LifecyclePolicy/x", "policy",
		},
		"a runtime":                {givenJob("ClusterTrainingRuntime/torch").Deadline(60), "spec.activeDeadlineSeconds from ClusterTrainingRuntime/torch", "runtime"},
		"a runtime of a namespace": {givenJob("TrainingRuntime/torch").Deadline(60), "spec.activeDeadlineSeconds from TrainingRuntime/torch", "runtime"},
		"a policy, beside a run policy": {
			givenJob("LifecyclePolicy/x").DeadlineAnnotation("60").RunPolicy(&trainer.Setting{}, nil), "annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds from LifecyclePolicy/x", "policy",
		},
		"its author": {dueJob(), "spec.activeDeadlineSeconds", "spec"},
		"its author, by annotation": {
			builder.TrainJob("ns", "job").Created(created).Stamp(created).DeadlineAnnotation("60"), "annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds", "annotation",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, interceptor.Funcs{}, tc.job.Obj())
			if _, err := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			want := "active since 2026-03-01T12:00:00Z, longer than the limit of 60 s (" + tc.want + "); no pod was ever ready"
			conditions := b.job(t).Status.Conditions
			if len(conditions) != 1 || conditions[0].Message != want {
				t.Errorf("conditions %v, want %q", conditions, want)
			}
			if _, err := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			if events := b.events(t); !slices.Contains(events, "Warning DeadlineExceeded "+want) {
				t.Errorf("events %q, want %q", events, want)
			}
			for _, series := range []string{"spec", "annotation", "runtime", "policy"} {
				count := 0.0
				if series == tc.series {
					count = 1
				}
				if got := testutil.ToFloat64(b.Metrics.expirations.WithLabelValues(series)); got != count {
					t.Errorf("expirations by %s = %v, want %v", series, got, count)
				}
			}
		})
	}
}

func TestReconcileAnnouncesWhoGaveTheDeadline(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, givenJob("LifecyclePolicy/x").Deadline(60).Stamp(at(5)).Created(at(-301)).Obj())
	want := []string{"Warning DeadlineApproaching 5s left of the limit of 60 s (spec.activeDeadlineSeconds from LifecyclePolicy/x); active since 2026-03-01T12:00:05Z"}
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.events(t)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Who gets a deadline is told once, while that is news, in whatever state the TrainJob waits.
func TestReconcileTellsOfAGivenDeadline(t *testing.T) {
	const byPolicy = "Normal DeadlineSet spec.activeDeadlineSeconds is 3600 s, from LifecyclePolicy/x"
	job := func() *builder.TrainJobBuilder { return givenJob("LifecyclePolicy/x").Deadline(3600) }
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want []string
	}{
		"active":    {job(), []string{byPolicy}},
		"suspended": {job().Suspended(), []string{byPolicy}},
		"by annotation": {
			givenJob("ClusterTrainingRuntime/torch").DeadlineAnnotation("3600"),
			[]string{"Normal DeadlineSet annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds is 3600 s, from ClusterTrainingRuntime/torch"},
		},
		"created five minutes ago, to the second": {job().Created(at(-239)), []string{byPolicy}},
		"created longer ago":                      {job().Created(at(-240)), nil},
		"its own":                                 {builder.TrainJob("ns", "job").Created(created).Deadline(3600), nil},
		"without one":                             {givenJob("LifecyclePolicy/x"), nil},
		"opted out":                               {givenJob("LifecyclePolicy/x").DeadlineAnnotation("none"), nil},
		"finished":                                {job().Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(10)), nil},
		"managed by MultiKueue":                   {job().ManagedBy("kueue.x-k8s.io/multikueue"), nil},
		"beside a run policy": {
			givenJob("LifecyclePolicy/x").DeadlineAnnotation("3600").RunPolicy(&trainer.Setting{}, nil),
			[]string{"Normal DeadlineSet annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds is 3600 s, from LifecyclePolicy/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, remembers := range []bool{true, false} {
				creates := 0
				b := newBench(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					creates++
					return c.Create(ctx, object, options...)
				}}, tc.job.Obj())
				if remembers {
					b.told = lru.New(lately)
				}
				for range 3 {
					if _, err := b.reconcile(); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(tc.want, b.events(t)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if remembers && creates != len(tc.want) {
					t.Errorf("%d requests for %d events", creates, len(tc.want))
				}
			}
		})
	}
}

// Another TrainJob of the same name has an event of its own.
func TestReconcileTellsOfEachTrainJob(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, givenJob("LifecyclePolicy/x").Deadline(3600).Obj())
	b.told = lru.New(lately)
	for range 2 {
		if _, err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	other := b.job(t)
	if err := b.store.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Create(t.Context(), givenJob("LifecyclePolicy/x").Deadline(3600).UID("uid-of-another").Obj()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if _, found := b.told.Get(other.UID); !found || b.told.Len() != 2 {
		t.Errorf("remembers %d, want both", b.told.Len())
	}
}

// Whoever is about to delete a TrainJob has what its deadline left behind ended first.
func TestFinish(t *testing.T) {
	exceeded := func() *builder.TrainJobBuilder {
		return dueJob().Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, at(60))
	}
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want bool
	}{
		"failed by its deadline":           {exceeded(), true},
		"failed otherwise":                 {dueJob().Condition(trainer.ConditionFailed, metav1.ConditionTrue, "Crashed", at(60)), false},
		"complete":                         {dueJob().Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(60)), false},
		"not finished, though it is time":  {dueJob(), false},
		"failed by its deadline elsewhere": {exceeded().ManagedBy("kueue.x-k8s.io/multikueue"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := tc.job.Obj()
			b := newBench(t, interceptor.Funcs{}, job, jobSetOf(job))
			if err := b.Finish(t.Context(), b.job(t)); err != nil {
				t.Fatal(err)
			}
			var events []string
			if tc.want {
				events = []string{"Warning DeadlineExceeded active since 2026-03-01T12:00:00Z, longer than the limit of 60 s (spec.activeDeadlineSeconds)"}
			}
			if diff := cmp.Diff(events, b.events(t)); diff != "" || b.hasJobSet(t) == tc.want {
				t.Errorf("has a JobSet %v, events (-want +got):\n%s", b.hasJobSet(t), diff)
			}
		})
	}
}

func TestFinishFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	job := dueJob().Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, at(60)).Obj()
	b := newBench(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return broken }}, job, jobSetOf(job))
	if err := b.Finish(t.Context(), job); !errors.Is(err, broken) {
		t.Errorf("Finish = %v, want %v", err, broken)
	}
}

// An event that could not be written is written at the next look, and remembered only then.
func TestReconcileTellsAgainOfAGivenDeadline(t *testing.T) {
	var fault error
	creates := 0
	b := newBench(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		creates++
		if fault != nil {
			return fault
		}
		return c.Create(ctx, object, options...)
	}}, givenJob("LifecyclePolicy/x").Deadline(3600).Obj())
	b.told = lru.New(lately)
	for _, tc := range []struct {
		fault         error
		creates, told int
	}{
		{errors.New("etcd is away"), 1, 0}, {errors.New("etcd is away"), 2, 0}, {nil, 3, 1}, {nil, 3, 1}, {errors.New("etcd is away"), 3, 1},
	} {
		fault = tc.fault
		if _, err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
		if events := b.events(t); creates != tc.creates || b.told.Len() != tc.told || len(events) != tc.told {
			t.Errorf("%d requests, %d remembered, events %q; want %d and %d", creates, b.told.Len(), events, tc.creates, tc.told)
		}
	}
}

// A run policy of a later Trainer is that one's to look after, and costs no look. What the field
// or the annotation says beside it counts as ever.
func TestReconcileBesideARunPolicy(t *testing.T) {
	seconds := int64(5)
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want time.Duration
	}{
		"a run policy alone":             {builder.TrainJob("ns", "job").Created(created).Stamp(created).RunPolicy(&trainer.Setting{Seconds: &seconds}, nil), 0},
		"one that cannot be read":        {builder.TrainJob("ns", "job").Created(created).Stamp(created).RunPolicy(&trainer.Setting{}, nil), 0},
		"beside an opt-out":              {builder.TrainJob("ns", "job").Created(created).Stamp(created).DeadlineAnnotation("none").RunPolicy(&trainer.Setting{}, nil), 0},
		"beside the annotation":          {builder.TrainJob("ns", "job").Created(created).Stamp(created).DeadlineAnnotation("120").RunPolicy(&trainer.Setting{Seconds: &seconds}, nil), 47750 * time.Millisecond},
		"unreadable, and the annotation": {builder.TrainJob("ns", "job").Created(created).Stamp(created).DeadlineAnnotation("120").RunPolicy(&trainer.Setting{}, nil), 47750 * time.Millisecond},
		"beside the field":               {dueJob().Deadline(120).RunPolicy(&trainer.Setting{}, nil), 47750 * time.Millisecond},
		"of the TTL, and the annotation": {builder.TrainJob("ns", "job").Created(created).Stamp(created).DeadlineAnnotation("120").RunPolicy(nil, &trainer.Setting{}), 47750 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, interceptor.Funcs{}, tc.job.Obj())
			if got, err := b.reconcile(); err != nil || got.RequeueAfter != tc.want {
				t.Errorf("Reconcile = %v, %v; want to look again after %v", got, err, tc.want)
			}
			if len(b.job(t).Status.Conditions) != 0 {
				t.Errorf("conditions %v", b.job(t).Status.Conditions)
			}
		})
	}
}
