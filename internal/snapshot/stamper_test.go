package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// stamperBench is a stamper on a fake API server.
type stamperBench struct {
	*Stamper
	store   client.WithWatch
	patches int
	// fault answers a patch in place of the server; nil lets it through.
	fault func() error
}

func newStamperBench(t *testing.T, kind string, runtimes ...*builder.RuntimeBuilder) *stamperBench {
	t.Helper()
	var objects []client.Object
	for _, runtime := range runtimes {
		objects = append(objects, runtime.Obj())
	}
	figures, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	b := &stamperBench{store: newStore(objects...)}
	b.Stamper = &Stamper{Kind: kind, Cache: b.store, Metrics: figures, Client: interceptor.NewClient(b.store, interceptor.Funcs{
		Patch: func(ctx context.Context, store client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			var set client.PatchOptions
			set.ApplyOptions(options)
			if set.FieldManager != v1alpha1.FieldManager {
				t.Errorf("patch by %q", set.FieldManager)
			}
			if b.fault != nil {
				if err := b.fault(); err != nil {
					return err
				}
			}
			b.patches++
			return store.Patch(ctx, object, patch, options...)
		},
	})}
	return b
}

func (b *stamperBench) look(t *testing.T, namespace string) error {
	t.Helper()
	result, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "torch"}})
	if result != (reconcile.Result{}) {
		t.Errorf("Reconcile = %v, want to wait for an event", result)
	}
	return err
}

func (b *stamperBench) stored(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	runtime := trainer.NewRuntime(b.Kind)
	if err := b.store.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "torch"}, runtime); err != nil {
		t.Fatal(err)
	}
	return runtime
}

// The stamp of the runtime becomes right, and nothing else changes.
func TestStamper(t *testing.T) {
	revision := take(t, torch()).Revision
	for name, tc := range map[string]struct {
		runtime *builder.RuntimeBuilder
		want    bool
	}{
		"missing":                        {torch(), true},
		"wrong":                          {torch().Revision("0123456789abcdef"), true},
		"empty":                          {torch().Revision(""), true},
		"right":                          {torch().Revision(revision), false},
		"right, and a source":            {torch().Revision(revision).Set("x", "spec", "template", "metadata", "annotations", v1alpha1.AnnotationRuntimeSource), true},
		"missing beside others":          {torch().Set("b", "spec", "template", "metadata", "annotations", "a"), true},
		"no annotations but null":        {torch().Set(nil, "spec", "template", "metadata", "annotations"), true},
		"no metadata but null":           {torch().Set(nil, "spec", "template", "metadata"), true},
		"of a field that nobody knows":   {torch().Container("future", []any{int64(9007199254740993), nil, map[string]any{}}), true},
		"of a runtime without template":  {torch().Without("spec", "template"), false},
		"of a runtime without spec":      {torch().Without("spec"), false},
		"of a runtime with template nil": {torch().Set(nil, "spec", "template"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStamperBench(t, "ClusterTrainingRuntime", tc.runtime)
			before := b.stored(t, "")
			for range 2 {
				if err := b.look(t, ""); err != nil {
					t.Fatal(err)
				}
			}
			if want := map[bool]int{true: 1}[tc.want]; b.patches != want {
				t.Errorf("%d patches, want %d", b.patches, want)
			}
			got := b.stored(t, "")
			if tc.want {
				spec := before.Object["spec"].(map[string]any)
				want := Revision(spec)
				if got, stamped := Stamped(got.Object["spec"].(map[string]any)); got != want || !stamped {
					t.Errorf("revision %s, stamped %v; want %s", got, stamped, want)
				}
				// All else is as it was.
				unstructured.RemoveNestedField(got.Object, "spec", "template", "metadata")
				unstructured.RemoveNestedField(before.Object, "spec", "template", "metadata")
				got.SetResourceVersion(before.GetResourceVersion())
			}
			if diff := cmp.Diff(before.Object, got.Object); diff != "" {
				t.Errorf("runtime (-before +after):\n%s", diff)
			}
			if got, want := testutil.ToFloat64(b.Metrics.writes.WithLabelValues("ClusterTrainingRuntime", "stamp")), float64(b.patches); got != want {
				t.Errorf("counted %v, want %v", got, want)
			}
		})
	}
}

func TestStamperKeepsOtherAnnotations(t *testing.T) {
	b := newStamperBench(t, "ClusterTrainingRuntime", torch().Set("b", "spec", "template", "metadata", "annotations", "a").Set("c", "spec", "template", "metadata", "labels", "d"))
	if err := b.look(t, ""); err != nil {
		t.Fatal(err)
	}
	stored := b.stored(t, "").Object
	got, _, err := unstructured.NestedMap(stored, "spec", "template", "metadata")
	want := map[string]any{
		"annotations": map[string]any{"a": "b", "lifecycle.trainer.kubeflow.org/runtime-revision": Revision(stored["spec"].(map[string]any))},
		"labels":      map[string]any{"d": "c"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("metadata (-want +got):\n%s%v", diff, err)
	}
}

func TestStamperByKindAndNamespace(t *testing.T) {
	runtimes := []*builder.RuntimeBuilder{torch(), builder.TrainingRuntime("ns", "torch"), builder.TrainingRuntime("other", "torch").UID("other")}
	b := newStamperBench(t, "TrainingRuntime", runtimes...)
	if err := b.look(t, "ns"); err != nil {
		t.Fatal(err)
	}
	for _, runtime := range runtimes {
		stored := runtime.Obj()
		if err := b.store.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
			t.Fatal(err)
		}
		if got, want := Stamp(stored.Object["spec"].(map[string]any)) != "", stored.GetNamespace() == "ns"; got != want {
			t.Errorf("%s in %q has a stamp: %v, want %v", stored.GetKind(), stored.GetNamespace(), got, want)
		}
	}
}

func TestStamperLeavesAlone(t *testing.T) {
	t.Run("what is gone", func(t *testing.T) {
		t.Parallel()
		b := newStamperBench(t, "ClusterTrainingRuntime")
		if err := b.look(t, ""); err != nil || b.patches != 0 {
			t.Errorf("error %v, %d patches", err, b.patches)
		}
	})
	t.Run("what is being deleted", func(t *testing.T) {
		t.Parallel()
		at := metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
		runtime := torch().Obj()
		runtime.SetDeletionTimestamp(&at)
		runtime.SetFinalizers([]string{"example.com/keep"})
		b := newStamperBench(t, "ClusterTrainingRuntime")
		b.Cache = newStore(runtime)
		if err := b.look(t, ""); err != nil || b.patches != 0 {
			t.Errorf("error %v, %d patches", err, b.patches)
		}
	})
}

// A cache that is behind must not stamp new content with the revision of the old.
func TestStamperLosesToAnEdit(t *testing.T) {
	b := newStamperBench(t, "ClusterTrainingRuntime", torch())
	b.fault = func() error {
		b.fault = nil
		edited := torch().Image("image:2").ResourceVersion(b.stored(t, "").GetResourceVersion())
		return b.store.Update(t.Context(), edited.Obj())
	}
	if err := b.look(t, ""); err != nil {
		t.Fatal(err)
	}
	if got := Stamp(b.stored(t, "").Object["spec"].(map[string]any)); got != "" {
		t.Errorf("stamp %s of what was before", got)
	}
	if err := b.look(t, ""); err != nil {
		t.Fatal(err)
	}
	if got, want := Stamp(b.stored(t, "").Object["spec"].(map[string]any)), take(t, torch().Image("image:2")).Revision; got != want {
		t.Errorf("stamp %s, want %s", got, want)
	}
}

func TestStamperFailures(t *testing.T) {
	resource := schema.GroupResource{Resource: "clustertrainingruntimes"}
	for name, tc := range map[string]struct {
		fault error
		want  string
	}{
		"changed":         {fault: apierrors.NewConflict(resource, "torch", errors.New("changed"))},
		"gone":            {fault: apierrors.NewNotFound(resource, "torch")},
		"forbidden":       {fault: apierrors.NewForbidden(resource, "torch", errors.New("a policy")), want: `write the revision: clustertrainingruntimes "torch" is forbidden: a policy`},
		"invalid already": {fault: apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterTrainingRuntime"}, "torch", nil)},
		"500":             {fault: apierrors.NewInternalError(errors.New("etcd is away")), want: "write the revision: Internal error occurred: etcd is away"},
		"timed out":       {fault: context.DeadlineExceeded, want: "write the revision: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStamperBench(t, "ClusterTrainingRuntime", torch())
			b.fault = func() error { return tc.fault }
			message := ""
			if err := b.look(t, ""); err != nil {
				message = err.Error()
			}
			if message != tc.want {
				t.Errorf("error %q, want %q", message, tc.want)
			}
			if got := testutil.ToFloat64(b.Metrics.writes.WithLabelValues("ClusterTrainingRuntime", "stamp")); got != 0 {
				t.Errorf("counted %v", got)
			}
			b.fault = nil
			if err := b.look(t, ""); err != nil || b.patches != 1 {
				t.Errorf("later: error %v, %d patches", err, b.patches)
			}
		})
	}
	t.Run("the cache does not answer", func(t *testing.T) {
		t.Parallel()
		b := newStamperBench(t, "ClusterTrainingRuntime", torch())
		broken := errors.New("not started")
		b.Cache = interceptor.NewClient(b.store, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		}})
		if err := b.look(t, ""); !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
	})
}
