package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// newStore makes an API server with these objects and the namespace ns of the team x.
func newStore(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(trainer.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind} {
		scheme.AddKnownTypeWithName(trainer.GroupVersion.WithKind(kind), &unstructured.Unstructured{})
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "x"}}})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// What the runtime and the policies say of a finished TrainJob, as they are now.
func TestFinishedRules(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	cluster := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Runtime(trainer.ClusterTrainingRuntimeKind, "torch")
	}
	p := builder.LifecyclePolicy
	everywhere := p("all").Succeeded(minute).Failed(2 * minute).MaxTTL(hour).Default(5 * minute).Obj()
	byPolicy := func(after time.Duration, name string) *ttl.Limit {
		return &ttl.Limit{After: after, By: "LifecyclePolicy/" + name}
	}
	ofAll := ttl.Rules{Succeeded: byPolicy(minute, "all"), Failed: byPolicy(2*minute, "all"), Max: byPolicy(hour, "all")}
	with := func(change func(*ttl.Rules)) ttl.Rules {
		rules := ofAll
		change(&rules)
		return rules
	}
	// sealed is a TrainJob with this runtime sealed into it.
	sealed := func(runtime *builder.RuntimeBuilder) *builder.TrainJobBuilder {
		taken, err := snapshot.Take(runtime.Obj().Object)
		if err != nil {
			t.Fatal(err)
		}
		seal := taken.Pack().Seal(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
		return cluster().Annotations(seal)
	}
	notGPU := p("not-gpu").MaxTTL(time.Second).RuntimeSelector(&metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gpu", Operator: metav1.LabelSelectorOpDoesNotExist}},
	}).Obj()
	torch := func() *builder.RuntimeBuilder { return builder.ClusterTrainingRuntime("torch") }
	for name, tc := range map[string]struct {
		job     *builder.TrainJobBuilder
		objects []client.Object
		want    ttl.Rules
	}{
		"nobody says anything": {job: cluster(), objects: []client.Object{torch().Obj()}},
		"policies":             {job: cluster(), objects: []client.Object{torch().Obj(), everywhere}, want: ofAll},
		"policies on deadlines alone": {
			job: cluster(), objects: []client.Object{torch().Obj(), p("a").Default(minute).Max(hour).Required().Obj()},
		},
		"the runtime": {
			job: cluster(), objects: []client.Object{torch().Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "0").Obj(), everywhere},
			want: with(func(r *ttl.Rules) { r.Runtime = &ttl.Limit{By: "ClusterTrainingRuntime/torch"} }),
		},
		"the runtime, garbage": {
			job: cluster(), objects: []client.Object{torch().Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "1h").Obj(), everywhere},
			want: ofAll,
		},
		"the runtime of a namespace": {
			job: builder.TrainJob("ns", "job").Runtime(trainer.TrainingRuntimeKind, "torch"),
			objects: []client.Object{
				torch().Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "1").Obj(),
				builder.TrainingRuntime("other", "torch").Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "2").Obj(),
				builder.TrainingRuntime("ns", "torch").Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "3").Obj(),
			},
			want: ttl.Rules{Runtime: &ttl.Limit{After: 3 * time.Second, By: "TrainingRuntime/torch"}},
		},
		"the runtime has Trainer's own": {
			job: cluster(), objects: []client.Object{torch().Set(int64(5), "spec", "ttlSecondsAfterFinished").Obj(), everywhere},
			want: with(func(r *ttl.Rules) { r.OwnTTL = true }),
		},
		"labels select": {
			job: cluster(), objects: []client.Object{
				torch().Label("gpu", "yes").Obj(), everywhere,
				p("gpu").MaxTTL(30*minute).Runtimes("gpu", "yes").Obj(), p("cpu").MaxTTL(1).Runtimes("gpu", "no").Obj(),
				p("x").Failed(minute).Namespaces("team", "x").Obj(), p("y").Failed(1).Namespaces("team", "y").Obj(),
			},
			want: with(func(r *ttl.Rules) { r.Max, r.Failed = byPolicy(30*minute, "gpu"), byPolicy(minute, "x") }),
		},
		"the runtime is gone: nothing is known of it": {
			job: cluster(), objects: []client.Object{everywhere, p("gpu").MaxTTL(30*minute).Runtimes("gpu", "yes").Obj(), notGPU}, want: ofAll,
		},
		"no labels, but known": {
			job: cluster(), objects: []client.Object{torch().Obj(), everywhere, notGPU},
			want: with(func(r *ttl.Rules) { r.Max = byPolicy(time.Second, "not-gpu") }),
		},
		"the runtime is gone: what is sealed counts": {
			job:     sealed(torch().Label("gpu", "yes").Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "7")),
			objects: []client.Object{everywhere, p("gpu").MaxTTL(30*minute).Runtimes("gpu", "yes").Obj(), notGPU},
			want: with(func(r *ttl.Rules) {
				r.Runtime, r.Max = &ttl.Limit{After: 7 * time.Second, By: "ClusterTrainingRuntime/torch"}, byPolicy(30*minute, "gpu")
			}),
		},
		"the runtime is gone: Trainer's own is sealed": {
			job: sealed(torch().Set(int64(5), "spec", "ttlSecondsAfterFinished")), objects: []client.Object{everywhere},
			want: with(func(r *ttl.Rules) { r.OwnTTL = true }),
		},
		"the runtime is there: what is sealed does not count": {
			job:     sealed(torch().Label("gpu", "yes").Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "7")),
			objects: []client.Object{torch().Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "8").Obj(), everywhere, p("gpu").MaxTTL(30*minute).Runtimes("gpu", "yes").Obj()},
			want:    with(func(r *ttl.Rules) { r.Runtime = &ttl.Limit{After: 8 * time.Second, By: "ClusterTrainingRuntime/torch"} }),
		},
		"the runtime is gone: a seal that cannot be read": {
			job:     sealed(torch().Label("gpu", "yes")).Annotation(v1alpha1.AnnotationRuntimeSnapshot, "garbage"),
			objects: []client.Object{everywhere, p("gpu").MaxTTL(30*minute).Runtimes("gpu", "yes").Obj(), notGPU}, want: ofAll,
		},
		"the runtime is gone: a seal of another": {
			job:     sealed(builder.ClusterTrainingRuntime("other").Label("gpu", "yes")),
			objects: []client.Object{everywhere, p("gpu").MaxTTL(30*minute).Runtimes("gpu", "yes").Obj(), notGPU}, want: ofAll,
		},
		"of a kind that Trainer knows not": {
			job: builder.TrainJob("ns", "job").Runtime("Deployment", "torch"), objects: []client.Object{torch().Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "1").Obj(), everywhere, notGPU},
			want: ofAll,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t, builder.Copies(tc.objects)...)
			f := &finished{cache: store, policies: &policy.Reader{Cache: store, Live: store}}
			got, err := f.rules(t.Context(), tc.job.Obj())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be read is no reason to remove a TrainJob.
func TestFinishedRulesFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	store := newStore(t, builder.ClusterTrainingRuntime("torch").Obj(), builder.LifecyclePolicy("a").MaxTTL(time.Hour).Obj())
	faulty := interceptor.NewClient(store, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
	})
	// What is sealed is no substitute: a runtime that cannot be read may be there.
	taken, err := snapshot.Take(builder.ClusterTrainingRuntime("torch").Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	job := builder.TrainJob("ns", "job").Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Annotations(taken.Pack().Seal(time.Now())).Obj()
	for want, f := range map[string]*finished{
		"read runtime: etcd is away":           {cache: faulty, policies: &policy.Reader{Cache: store, Live: store}},
		"list LifecyclePolicies: etcd is away": {cache: store, policies: &policy.Reader{Cache: faulty, Live: store}},
	} {
		got, err := f.rules(t.Context(), job)
		if !errors.Is(err, broken) || err.Error() != want || got != (ttl.Rules{}) {
			t.Errorf("rules = %+v, %v; want %q", got, err, want)
		}
	}
}
