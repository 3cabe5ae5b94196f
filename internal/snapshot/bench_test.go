package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// bench is a reconciler on a fake API server that keeps to the rules that the reconciler
// relies on, with a cache as it is in production.
type bench struct {
	*Reconciler
	// store holds what is stored, and never fails.
	store client.WithWatch
	clock *clocktesting.FakePassiveClock
	// writes are those that came, as VERB KIND.
	writes []string
	// fault answers a write in place of the server; nil lets it through.
	fault func(write string) error
	// lost answers a write that the server has done.
	lost func(write string) error
	// cachedJob is what the cache has of the TrainJob; nil for what is stored.
	cachedJob *trainer.TrainJob
}

// newBench stands 60 s after the sealing, under Trainer 2.3.
func newBench(t testing.TB, objects ...client.Object) *bench {
	t.Helper()
	store := newStore(objects...)
	b := &bench{store: store, clock: clocktesting.NewFakePassiveClock(sealTime.Truncate(time.Second).Add(time.Minute))}
	b.setTrainer(t, true)
	figures, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	b.Reconciler = &Reconciler{
		Client:  interceptor.NewClient(store, interceptor.Funcs{Get: b.cached, Create: b.create, Patch: b.patched(t), Delete: b.delete(t)}),
		Live:    store,
		Clock:   b.clock,
		Trainer: &trainer.Detector{CRDs: store},
		Metrics: figures,
	}
	b.setLedgers(store)
	for _, l := range []*ledger{b.configMaps, b.Reconciler.filed} {
		l.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(l.queue.ShutDown)
	}
	return b
}

// setTrainer installs the CRD of a Trainer that keeps snapshots, or of one that does not.
func (b *bench) setTrainer(t testing.TB, keeps bool) {
	t.Helper()
	patches := apiextensionsv1.JSONSchemaProps{Type: "array"}
	if keeps {
		patches.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"terminationGracePeriodSeconds": {Type: "integer"}},
		}}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = trainer.CRDName
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: trainer.GroupVersion.Version,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"runtimePatches": patches}}},
		}},
	}}
	err := b.store.Create(t.Context(), crd)
	if apierrors.IsAlreadyExists(err) {
		stored := &apiextensionsv1.CustomResourceDefinition{}
		err = b.store.Get(t.Context(), client.ObjectKeyFromObject(crd), stored)
		crd.ResourceVersion = stored.ResourceVersion
		err = errors.Join(err, b.store.Update(t.Context(), crd))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cached reads as the cache of the command does: it holds what Cached selects, as that transforms
// it.
func (b *bench) cached(ctx context.Context, store client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if job, ok := object.(*trainer.TrainJob); ok && b.cachedJob != nil {
		*job = *b.cachedJob.DeepCopy()
		return nil
	}
	if err := store.Get(ctx, key, object, options...); err != nil {
		return err
	}
	holds, found := heldOf(object)
	if !found {
		return nil
	}
	_, err := holds.Transform(object)
	return err
}

// heldOf returns what the cache of the command holds of objects of this type.
func heldOf(object client.Object) (cache.ByObject, bool) {
	for kind, holds := range Cached() {
		if reflect.TypeOf(kind) == reflect.TypeOf(object) {
			return holds, true
		}
	}
	return cache.ByObject{}, false
}

// write does one write, or answers with the fault that is set for it.
func (b *bench) write(write string, do func() error) error {
	if b.fault != nil {
		if err := b.fault(write); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	b.writes = append(b.writes, write)
	if b.lost != nil {
		return b.lost(write)
	}
	return nil
}

// kindOf names the kind of an object.
func (b *bench) kindOf(object client.Object) string {
	gvk, err := b.store.GroupVersionKindFor(object)
	if err != nil {
		panic(err)
	}
	return gvk.Kind
}

func (b *bench) create(ctx context.Context, store client.WithWatch, object client.Object, options ...client.CreateOption) error {
	return b.write("create "+b.kindOf(object), func() error { return store.Create(ctx, object, options...) })
}

// patched sends a patch, and refuses to change the content of an immutable ConfigMap and the
// spec of a TrainingRuntimeSnapshot.
func (b *bench) patched(t testing.TB) func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
	return func(ctx context.Context, store client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		var set client.PatchOptions
		set.ApplyOptions(options)
		if set.FieldManager != v1alpha1.FieldManager || patch.Type() != types.MergePatchType {
			t.Errorf("patch of type %s by %q", patch.Type(), set.FieldManager)
		}
		return b.write("patch "+b.kindOf(object), func() error {
			raw, err := patch.Data(object)
			if err != nil {
				return err
			}
			var changes map[string]any
			if err := json.Unmarshal(raw, &changes); err != nil {
				return err
			}
			stored := object.DeepCopyObject().(client.Object)
			if err := store.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
				return err
			}
			config, ok := stored.(*corev1.ConfigMap)
			_, data := changes["data"]
			_, spec := changes["spec"]
			if ok && data && ptr.Deref(config.Immutable, false) || !ok && spec {
				return apierrors.NewInvalid(schema.GroupKind{Kind: b.kindOf(object)}, object.GetName(), nil)
			}
			return store.Patch(ctx, object, patch, options...)
		})
	}
}

// delete deletes only with preconditions, and in the background.
func (b *bench) delete(t testing.TB) func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
	return func(ctx context.Context, store client.WithWatch, object client.Object, options ...client.DeleteOption) error {
		var set client.DeleteOptions
		set.ApplyOptions(options)
		if set.Preconditions == nil || set.Preconditions.UID == nil || set.Preconditions.ResourceVersion == nil ||
			ptr.Deref(set.PropagationPolicy, "") != metav1.DeletePropagationBackground {
			t.Errorf("delete of a %s with %+v, want preconditions, in the background", b.kindOf(object), set)
			return errors.New("refused by the test")
		}
		return b.write("delete "+b.kindOf(object), func() error {
			stored := object.DeepCopyObject().(client.Object)
			if err := store.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
				return err
			}
			if stored.GetUID() != *set.Preconditions.UID {
				return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), fmt.Errorf("another UID"))
			}
			return store.Delete(ctx, object, options...)
		})
	}
}

// catchUp has the ledgers know of what is stored, as they do a moment later.
func (b *bench) catchUp(t testing.TB) {
	t.Helper()
	for _, l := range []*ledger{b.configMaps, b.Reconciler.filed} {
		list := l.list()
		if err := b.store.List(t.Context(), list, l.options...); err != nil {
			t.Fatal(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		var read []any
		for _, object := range objects {
			read = append(read, object)
		}
		if err := l.Replace(read, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) reconcile(t testing.TB) (reconcile.Result, error) {
	t.Helper()
	b.catchUp(t)
	return b.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "job"}})
}

// get reads what is stored; nil when there is none.
func get[T client.Object](t testing.TB, b *bench, object T, name string) T {
	t.Helper()
	err := b.store.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		var none T
		return none
	}
	return object
}

func (b *bench) configMap(t testing.TB) *corev1.ConfigMap {
	return get(t, b, &corev1.ConfigMap{}, "job-runtime-snapshot")
}

func (b *bench) filed(t testing.TB) *v1alpha1.TrainingRuntimeSnapshot {
	return get(t, b, &v1alpha1.TrainingRuntimeSnapshot{}, "job")
}

func (b *bench) jobSetThere(t testing.TB) *trainer.JobSet {
	return get(t, b, &trainer.JobSet{}, "job")
}

// state says what is there for the TrainJob: each as "none", "right" or what is wrong.
type state struct{ ConfigMap, Snapshot, JobSet string }

func (b *bench) state(t testing.TB, job *trainer.TrainJob, s *Snapshot) state {
	t.Helper()
	got := state{ConfigMap: "none", Snapshot: "none", JobSet: "none"}
	if config := b.configMap(t); config != nil {
		got.ConfigMap = judge(
			metav1.IsControlledBy(config, job), "owner",
			config.Labels[v1alpha1.LabelRuntimeRevision] == s.Revision, "label",
			ptr.Deref(config.Immutable, false), "immutable",
			config.Annotations[v1alpha1.AnnotationSnapshotSource] == Name(s.Source), "source",
			s.Holds(config.Data[trainer.SnapshotKey]), "content",
		)
	}
	if object := b.filed(t); object != nil {
		is, err := FromObject(object)
		got.Snapshot = judge(
			metav1.IsControlledBy(object, job), "owner",
			err == nil && is.Revision == s.Revision && text(is) == text(s), "content",
			object.Annotations[v1alpha1.AnnotationSnapshotSource] == Name(s.Source) && object.Annotations[v1alpha1.AnnotationRuntimeSource] == Name(s.Source), "source",
			object.Spec.SealedAt.Time.Equal(s.SealedAt), "time",
		)
	}
	if b.jobSetThere(t) != nil {
		got.JobSet = "there"
	}
	return got
}

// judge says "right", or which of the pairs of what is and its name are not.
func judge(pairs ...any) string {
	var wrong []string
	for pair := range slices.Chunk(pairs, 2) {
		if !pair[0].(bool) {
			wrong = append(wrong, pair[1].(string))
		}
	}
	if len(wrong) == 0 {
		return "right"
	}
	return fmt.Sprint("wrong ", wrong)
}

// wantWrites compares the writes since the last call.
func (b *bench) wantWrites(t testing.TB, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	b.writes = nil
}
