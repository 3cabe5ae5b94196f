package ttl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// Only finished TrainJobs that what has changed concerns are looked at.
func TestRequests(t *testing.T) {
	job := func(namespace, name, kind, runtime string, finished bool) client.Object {
		b := builder.TrainJob(namespace, name).Runtime(kind, runtime)
		if finished {
			b.Condition(trainer.ConditionComplete, "True", "Done", finishedAt)
		}
		return b.Obj()
	}
	const cluster, namespaced = trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind
	short := builder.TrainJob("b", "short").Condition(trainer.ConditionFailed, "True", "Crashed", finishedAt).Obj()
	short.Spec.RuntimeRef.Name = "torch"
	b := newBench(t,
		job("a", "cluster", cluster, "torch", true), job("a", "cluster-jax", cluster, "jax", true), job("a", "cluster-running", cluster, "torch", false),
		job("a", "own", namespaced, "torch", true), job("a", "own-running", namespaced, "torch", false), job("a", "odd", "Deployment", "torch", true),
		job("b", "own", namespaced, "torch", true), short,
	)
	for name, tc := range map[string]struct {
		got  []reconcile.Request
		want []string
	}{
		"a policy":                {b.finished("")(t.Context(), builder.LifecyclePolicy("p").Obj()), []string{"a/cluster", "a/cluster-jax", "a/odd", "a/own", "b/own", "b/short"}},
		"a runtime of all":        {b.finished(cluster)(t.Context(), builder.ClusterTrainingRuntime("torch").Obj()), []string{"a/cluster", "b/short"}},
		"a runtime of a":          {b.finished(namespaced)(t.Context(), builder.TrainingRuntime("a", "torch").Obj()), []string{"a/own"}},
		"a runtime of c":          {b.finished(namespaced)(t.Context(), builder.TrainingRuntime("c", "torch").Obj()), nil},
		"a runtime nobody uses":   {b.finished(cluster)(t.Context(), builder.ClusterTrainingRuntime("mpi").Obj()), nil},
		"the namespace b":         {b.in(t.Context(), "b", nil), []string{"b/own", "b/short"}},
		"a namespace that is new": {b.in(t.Context(), "c", nil), nil},
	} {
		var names []string
		for _, request := range tc.got {
			names = append(names, request.String())
		}
		if diff := cmp.Diff(tc.want, names); diff != "" {
			t.Errorf("%s asks for (-want +got):\n%s", name, diff)
		}
	}
}

func TestIsFinished(t *testing.T) {
	for name, tc := range map[string]struct {
		object client.Object
		want   bool
	}{
		"running":  {running().Obj(), false},
		"complete": {complete().Obj(), true},
		"failed":   {failed().Obj(), true},
		"no job":   {&corev1.Pod{}, false},
	} {
		if got := isFinished(tc.object); got != tc.want {
			t.Errorf("%s: finished %v, want %v", name, got, tc.want)
		}
	}
}

// What is listed at the start is of no interest: each TrainJob is looked at then anyway.
func TestChanged(t *testing.T) {
	policy := builder.LifecyclePolicy("p").Obj()
	for _, says := range []bool{true, false} {
		p := changed(func(event.UpdateEvent) bool { return says })
		if !p.Create(event.CreateEvent{Object: policy}) || p.Create(event.CreateEvent{Object: policy, IsInInitialList: true}) {
			t.Error("what appears passes, unless at the start")
		}
		if got := p.Update(event.UpdateEvent{ObjectOld: policy, ObjectNew: policy}); got != says {
			t.Errorf("an update passes %v, want %v", got, says)
		}
		if !p.Delete(event.DeleteEvent{Object: policy}) || p.Generic(event.GenericEvent{Object: policy}) {
			t.Error("what goes passes, and nothing else")
		}
	}
}

func TestSaysOther(t *testing.T) {
	runtime := func() *builder.RuntimeBuilder {
		return builder.ClusterTrainingRuntime("torch").Label("a", "b").Annotation("c", "d")
	}
	for name, tc := range map[string]struct {
		after *builder.RuntimeBuilder
		want  bool
	}{
		"nothing":            {runtime().ResourceVersion("2"), false},
		"status alone":       {runtime().Set("x", "status", "y"), false},
		"a label added":      {runtime().Label("e", "f"), true},
		"a label changed":    {runtime().Label("a", "c"), true},
		"a default":          {runtime().Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "60"), true},
		"annotation changed": {runtime().Annotation("c", "e"), true},
		"its spec":           {runtime().Generation(2), true},
	} {
		if got := saysOther(event.UpdateEvent{ObjectOld: runtime().Obj(), ObjectNew: tc.after.Obj()}); got != tc.want {
			t.Errorf("%s: says other %v, want %v", name, got, tc.want)
		}
	}
}
