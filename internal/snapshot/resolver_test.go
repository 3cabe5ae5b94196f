package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// scheme knows all that is read and written here. Runtimes have no type here: they are JSON.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(trainer.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	for _, kind := range []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind} {
		scheme.AddKnownTypeWithName(trainer.GroupVersion.WithKind(kind), &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(trainer.GroupVersion.WithKind(kind+"List"), &unstructured.UnstructuredList{})
	}
	return scheme
})

// newStore makes an API server with these objects.
func newStore(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(scheme()).WithObjects(builder.Copies(objects)...).Build()
}

// reads is a reader that writes down what it is asked for, and fails where it is told to.
type reads struct {
	client.Reader
	asked []string
	fail  map[string]error
}

func newReads(objects ...client.Object) *reads { return &reads{Reader: newStore(objects...)} }

func (r *reads) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	gvk, err := r.groupVersionKind(object)
	if err != nil {
		return err
	}
	what := gvk.Kind
	if _, metadata := object.(*metav1.PartialObjectMetadata); metadata {
		what = "metadata of " + what
	}
	r.asked = append(r.asked, what+" "+key.String())
	if err := r.fail[what]; err != nil {
		return err
	}
	return r.Reader.Get(ctx, key, object, options...)
}

func (r *reads) groupVersionKind(object client.Object) (schema.GroupVersionKind, error) {
	return r.Reader.(client.Client).GroupVersionKindFor(object)
}

// since returns what was asked for since the last call.
func (r *reads) since() []string {
	asked := r.asked
	r.asked = nil
	return asked
}

func refTo(kind, name string) trainer.RuntimeRef {
	return builder.TrainJob("ns", "job").Runtime(kind, name).Obj().Spec.RuntimeRef
}

const (
	metadataOfTorch = "metadata of ClusterTrainingRuntime /torch"
	torchItself     = "ClusterTrainingRuntime /torch"
)

// A runtime is packed once for each of its states.
func TestRuntimeIsPackedOnce(t *testing.T) {
	stored := torch().Obj()
	live := newReads(stored)
	resolver := NewResolver(live)
	ref := refTo("ClusterTrainingRuntime", "torch")
	resolve := func(wantReads ...string) *Packed {
		t.Helper()
		packed, err := resolver.Runtime(t.Context(), "ns", ref)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantReads, live.since()); diff != "" {
			t.Errorf("live reads (-want +got):\n%s", diff)
		}
		return packed
	}
	first := resolve(metadataOfTorch, torchItself)
	if again := resolve(metadataOfTorch); again != first {
		t.Error("packed twice")
	}

	store := live.Reader.(client.Client)
	update := func(change *builder.RuntimeBuilder) {
		t.Helper()
		if err := store.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
			t.Fatal(err)
		}
		if err := store.Update(t.Context(), change.ResourceVersion(stored.GetResourceVersion()).Obj()); err != nil {
			t.Fatal(err)
		}
	}
	update(torch().Image("image:2"))
	edited := resolve(metadataOfTorch, torchItself)
	if edited == first || edited.revision != take(t, torch().Image("image:2")).Revision {
		t.Errorf("after an edit, revision %s", edited.revision)
	}
	// Back to what it was is a state of its own, with the content of before.
	update(torch())
	if back := resolve(metadataOfTorch, torchItself); back.revision != first.revision {
		t.Errorf("edited back, revision %s, want %s", back.revision, first.revision)
	}

	if err := store.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if _, err := resolver.Runtime(t.Context(), "ns", ref); !apierrors.IsNotFound(err) {
		t.Errorf("deleted: error %v, want NotFound", err)
	}
	live.since()
	if err := store.Create(t.Context(), torch().UID("later").Image("image:3").Obj()); err != nil {
		t.Fatal(err)
	}
	if created := resolve(metadataOfTorch, torchItself); created.revision != take(t, torch().Image("image:3")).Revision {
		t.Errorf("created anew, revision %s", created.revision)
	}
}

// A name in a namespace and the same name in the cluster are two runtimes.
func TestRuntimeByKindAndNamespace(t *testing.T) {
	live := newReads(
		torch().Image("image:cluster").Obj(),
		builder.TrainingRuntime("ns", "torch").Image("image:ns").Obj(),
		builder.TrainingRuntime("other", "torch").UID("other").Image("image:other").Obj(),
	)
	resolver := NewResolver(live)
	byName := trainer.RuntimeRef{Name: "torch"}
	for _, tc := range []struct {
		namespace, want string
		ref             trainer.RuntimeRef
		source          string
	}{
		{"ns", "image:cluster", refTo("ClusterTrainingRuntime", "torch"), "ClusterTrainingRuntime/torch"},
		{"ns", "image:cluster", byName, "ClusterTrainingRuntime/torch"},
		{"ns", "image:ns", refTo("TrainingRuntime", "torch"), "TrainingRuntime/torch"},
		{"other", "image:other", refTo("TrainingRuntime", "torch"), "TrainingRuntime/torch"},
	} {
		packed, err := resolver.Runtime(t.Context(), tc.namespace, tc.ref)
		if err != nil {
			t.Fatal(err)
		}
		if want := take(t, torch().Image(tc.want)).Revision; packed.revision != want || packed.source != tc.source {
			t.Errorf("%s in %s: %s of %s, want %s", Name(v1alpha1.RuntimeSource{Kind: tc.ref.GroupVersionKind().Kind, Name: tc.ref.Name}), tc.namespace, packed.revision, packed.source, want)
		}
	}
	if _, err := resolver.Runtime(t.Context(), "third", refTo("TrainingRuntime", "torch")); !apierrors.IsNotFound(err) {
		t.Errorf("in a namespace without: error %v, want NotFound", err)
	}
}

func TestRuntimeFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "clustertrainingruntimes"}, "torch")
	for name, tc := range map[string]struct {
		stored       *builder.RuntimeBuilder
		fail         map[string]error
		want         string
		wantNotFound bool
	}{
		"not there": {
			want: `read runtime: clustertrainingruntimes.trainer.kubeflow.org "torch" not found`, wantNotFound: true,
		},
		"deleted between two reads": {
			stored: torch(), fail: map[string]error{"ClusterTrainingRuntime": gone},
			want: `read runtime: clustertrainingruntimes "torch" not found`, wantNotFound: true,
		},
		"metadata cannot be read": {
			stored: torch(), fail: map[string]error{"metadata of ClusterTrainingRuntime": broken}, want: "read runtime: etcd is away",
		},
		"content cannot be read": {
			stored: torch(), fail: map[string]error{"ClusterTrainingRuntime": broken}, want: "read runtime: etcd is away",
		},
		"without a spec": {
			stored: torch().Without("spec"), want: "runtime ClusterTrainingRuntime/torch: apiVersion, kind, metadata.name and spec must be set",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := newReads()
			if tc.stored != nil {
				live = newReads(tc.stored.Obj())
			}
			live.fail = tc.fail
			resolver := NewResolver(live)
			_, err := resolver.Runtime(t.Context(), "ns", refTo("ClusterTrainingRuntime", "torch"))
			if err == nil || err.Error() != tc.want || apierrors.IsNotFound(err) != tc.wantNotFound {
				t.Errorf("error %v, want %q, which is NotFound: %v", err, tc.want, tc.wantNotFound)
			}
			// What failed is not kept.
			live.fail = nil
			if tc.stored != nil && tc.stored.Obj().Object["spec"] != nil {
				if _, err := resolver.Runtime(t.Context(), "ns", refTo("ClusterTrainingRuntime", "torch")); err != nil {
					t.Errorf("later: %v", err)
				}
			}
		})
	}
}

// Many TrainJobs start at the same time; run with the race detector.
func TestRuntimeOfManyAtOnce(t *testing.T) {
	store := newStore(torch().Obj())
	resolver := NewResolver(store)
	errs := make(chan error)
	for range 8 {
		go func() {
			packed, err := resolver.Runtime(t.Context(), "ns", refTo("ClusterTrainingRuntime", "torch"))
			if err == nil {
				packed.Seal(sealTime)
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// anotherJob is another TrainJob of the same name.
func anotherJob() *trainer.TrainJob { return builder.TrainJob("ns", "job").UID("another").Obj() }

func TestFiled(t *testing.T) {
	job := builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch").Obj()
	filed, kept := take(t, torch().Image("image:filed")), take(t, torch().Image("image:kept"))
	object := func(s *Snapshot, owner *trainer.TrainJob, change func(*v1alpha1.TrainingRuntimeSnapshot)) *v1alpha1.TrainingRuntimeSnapshot {
		object := s.Object(owner)
		if change != nil {
			change(object)
		}
		return object
	}
	jax := take(t, builder.ClusterTrainingRuntime("jax"))
	config := builder.ConfigMap(job, toYAML(t, kept)).Obj()
	for name, tc := range map[string]struct {
		objects []client.Object
		want    *Snapshot
	}{
		"nothing":                           {},
		"filed":                             {objects: []client.Object{object(filed, job, nil)}, want: filed},
		"filed, and kept by Trainer":        {objects: []client.Object{object(filed, job, nil), config}, want: filed},
		"kept by Trainer":                   {objects: []client.Object{config}, want: kept},
		"kept by Trainer without our stamp": {objects: []client.Object{builder.ConfigMap(job, string(encode(torch().Image("image:kept").Obj().Object))).Obj()}, want: kept},
		"forged":                            {objects: []client.Object{object(filed, job, func(o *v1alpha1.TrainingRuntimeSnapshot) { o.Spec.Revision = kept.Revision })}},
		"forged, and kept by Trainer": {
			objects: []client.Object{object(filed, job, func(o *v1alpha1.TrainingRuntimeSnapshot) { o.Spec.Revision = kept.Revision }), config}, want: kept,
		},
		"filed for another TrainJob":                       {objects: []client.Object{object(filed, anotherJob(), nil)}},
		"filed for another TrainJob, and kept by Trainer":  {objects: []client.Object{object(filed, anotherJob(), nil), config}, want: kept},
		"filed for nobody":                                 {objects: []client.Object{object(filed, job, func(o *v1alpha1.TrainingRuntimeSnapshot) { o.OwnerReferences = nil })}},
		"filed of another runtime":                         {objects: []client.Object{object(jax, job, nil)}},
		"filed of another runtime, and kept by Trainer":    {objects: []client.Object{object(jax, job, nil), config}, want: kept},
		"kept by Trainer for another TrainJob":             {objects: []client.Object{builder.ConfigMap(anotherJob(), toYAML(t, kept)).Obj()}},
		"kept by Trainer for a TrainJob of another name":   {objects: []client.Object{builder.ConfigMap(builder.TrainJob("ns", "other").Obj(), toYAML(t, kept)).Obj()}},
		"a ConfigMap without an owner":                     {objects: []client.Object{builder.ConfigMap(job, toYAML(t, kept)).OwnedBy(metav1.OwnerReference{}).Obj()}},
		"kept by Trainer, emptied":                         {objects: []client.Object{builder.ConfigMap(job, "").Emptied().Obj()}},
		"kept by Trainer, broken":                          {objects: []client.Object{builder.ConfigMap(job, "\t- {").Obj()}},
		"kept by Trainer, of another runtime":              {objects: []client.Object{builder.ConfigMap(job, toYAML(t, jax)).Obj()}},
		"kept by Trainer, of the namespaced one of a name": {objects: []client.Object{builder.ConfigMap(job, toYAML(t, take(t, builder.TrainingRuntime("ns", "torch")))).Obj()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := NewResolver(newReads(tc.objects...)).Kept(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (tc.want == nil) || got != nil && got.Revision != tc.want.Revision {
				t.Errorf("Filed = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestFiledFailures(t *testing.T) {
	job := builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch").Obj()
	kept := take(t, torch())
	config := builder.ConfigMap(job, toYAML(t, kept)).Obj()
	broken := errors.New("etcd is away")
	noMatch := &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind).GroupKind(), SearchedVersions: []string{"v1alpha1"}}
	for name, tc := range map[string]struct {
		fail      map[string]error
		wantError string
		want      bool
	}{
		"the kind is not installed":              {fail: map[string]error{"TrainingRuntimeSnapshot": noMatch}, want: true},
		"the kind is not installed, as wrapped":  {fail: map[string]error{"TrainingRuntimeSnapshot": fmt.Errorf("discover: %w", noMatch)}, want: true},
		"nothing there":                          {fail: map[string]error{"ConfigMap": apierrors.NewNotFound(schema.GroupResource{}, "")}},
		"the snapshot cannot be read":            {fail: map[string]error{"TrainingRuntimeSnapshot": broken}, wantError: "read TrainingRuntimeSnapshot: etcd is away"},
		"the ConfigMap cannot be read":           {fail: map[string]error{"ConfigMap": broken}, wantError: "read ConfigMap: etcd is away"},
		"the right to read a snapshot is absent": {fail: map[string]error{"TrainingRuntimeSnapshot": apierrors.NewForbidden(schema.GroupResource{}, "job", broken)}, wantError: `read TrainingRuntimeSnapshot: forbidden: etcd is away`},
		"time is up":                             {fail: map[string]error{"ConfigMap": context.DeadlineExceeded}, wantError: "read ConfigMap: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := newReads(config.DeepCopy())
			live.fail = tc.fail
			got, err := NewResolver(live).Kept(t.Context(), job)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != tc.wantError || (got != nil) != tc.want {
				t.Errorf("Filed = %+v, error %q; want %v, error %q", got, message, tc.want, tc.wantError)
			}
		})
	}
}

// What is filed of a job of the namespace is of a runtime of the namespace.
func TestFiledOfANamespacedRuntime(t *testing.T) {
	job := builder.TrainJob("ns", "job").Runtime("TrainingRuntime", "torch").Obj()
	want := take(t, builder.TrainingRuntime("ns", "torch").Generation(2))
	want.SealedAt = sealTime.Truncate(time.Second)
	got, err := NewResolver(newReads(want.Object(job))).Kept(t.Context(), job)
	if err != nil || got == nil || text(got) != text(want) {
		t.Errorf("Filed = %+v, %v, want %s", got, err, text(want))
	}
}
