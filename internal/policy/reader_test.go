package policy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func namespaceOf(name string, set labels.Set) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}
}

// readerBench is a reader on two fakes, a cache and an API server.
type readerBench struct {
	Reader
	// reads are what was asked for, in order.
	reads []string
	// unlisted is what the cache answers to a list, uncached and unreadable what cache and API
	// server answer to a read of a namespace, if they are set.
	unlisted, uncached, unreadable error
}

func newReaderBench(t *testing.T, cached, live []client.Object) *readerBench {
	t.Helper()
	b := &readerBench{}
	store := func(name string, objects []client.Object, fault *error) client.Reader {
		return interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(builder.Copies(objects)...).Build(), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				b.reads = append(b.reads, fmt.Sprintf("%s lists %T", name, list))
				if b.unlisted != nil {
					return b.unlisted
				}
				return c.List(ctx, list, options...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, metadata := object.(*metav1.PartialObjectMetadata); !metadata {
					t.Errorf("%s reads a whole %T", name, object)
				}
				b.reads = append(b.reads, name+" reads "+object.GetObjectKind().GroupVersionKind().Kind+key.String())
				if *fault != nil {
					return *fault
				}
				return c.Get(ctx, key, object, options...)
			},
		})
	}
	b.Reader = Reader{Cache: store("cache", cached, &b.uncached), Live: store("live", live, &b.unreadable)}
	return b
}

const listed = "cache lists *v1alpha1.LifecyclePolicyList"

func TestReader(t *testing.T) {
	selecting := builder.LifecyclePolicy("a").Max(time.Hour).Namespaces("team", "x").Runtimes("gpu", "yes").Obj()
	everywhere := builder.LifecyclePolicy("b").Max(2 * time.Hour).Obj()
	of := func(name string, after time.Duration) Rules { return Rules{Max: Limit{after, name}} }
	x, y := namespaceOf("ns", labels.Set{"team": "x"}), namespaceOf("ns", labels.Set{"team": "y"})
	for name, tc := range map[string]struct {
		cached, live []client.Object
		// runtime are the labels of the runtime, which is only asked for where asks is set.
		runtime   labels.Set
		asks      bool
		want      Rules
		wantReads []string
	}{
		"no policies: the namespace is not asked for": {cached: []client.Object{x}, wantReads: []string{listed}},
		"one that selects": {
			cached: []client.Object{selecting, x}, live: []client.Object{y}, runtime: labels.Set{"gpu": "yes"}, asks: true,
			want: of("a", time.Hour), wantReads: []string{listed, "cache reads Namespace/ns"},
		},
		"one that selects, another runtime": {
			cached: []client.Object{selecting, everywhere, x}, runtime: labels.Set{"gpu": "no"}, asks: true,
			want: of("b", 2*time.Hour), wantReads: []string{listed, "cache reads Namespace/ns"},
		},
		"one that selects, a runtime without labels": {
			cached: []client.Object{selecting, x}, asks: true, wantReads: []string{listed, "cache reads Namespace/ns"},
		},
		"one that selects elsewhere: the runtime is not asked for": {
			cached: []client.Object{selecting, everywhere, y}, runtime: labels.Set{"gpu": "yes"},
			want: of("b", 2*time.Hour), wantReads: []string{listed, "cache reads Namespace/ns"},
		},
		"the namespace is only live": {
			cached: []client.Object{selecting, everywhere}, live: []client.Object{x}, runtime: labels.Set{"gpu": "yes"}, asks: true,
			want: of("a", time.Hour), wantReads: []string{listed, "cache reads Namespace/ns", "live reads Namespace/ns"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newReaderBench(t, tc.cached, tc.live)
			asked := false
			got, err := b.Rules(t.Context(), "ns", func() (trainer.RuntimeSettings, error) {
				asked = true
				return torchWith(tc.runtime)()
			})
			if err != nil || asked != tc.asks {
				t.Fatalf("asked for the runtime %v, want %v; error %v", asked, tc.asks, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantReads, b.reads); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// While the API does not know LifecyclePolicies, there are none.
func TestReaderWithoutTheCRD(t *testing.T) {
	for name, err := range map[string]error{
		"no kind":     &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind("LifecyclePolicy").GroupKind(), SearchedVersions: []string{"v1alpha1"}},
		"no resource": &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: "lifecyclepolicies"}},
		"wrapped":     fmt.Errorf("ask the API: %w", &meta.NoKindMatchError{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newReaderBench(t, nil, nil)
			b.unlisted = err
			if got, err := b.Rules(t.Context(), "ns", neverAsked(t)); err != nil || got != (Rules{}) {
				t.Errorf("Rules = %+v, %v; want none", got, err)
			}
			if diff := cmp.Diff([]string{listed}, b.reads); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be read is never taken for nothing.
func TestReaderFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	policy := builder.LifecyclePolicy("a").Max(time.Hour).Runtimes("gpu", "yes").Obj()
	for name, tc := range map[string]struct {
		unlisted, uncached, unreadable error
		want                           string
		wantReads                      int
	}{
		"the policies":                  {unlisted: broken, want: "list LifecyclePolicies: etcd is away", wantReads: 1},
		"the namespace":                 {uncached: broken, want: "read namespace: etcd is away", wantReads: 2},
		"the namespace, live":           {unreadable: broken, want: "read namespace: etcd is away", wantReads: 3},
		"the namespace is nowhere":      {want: `read namespace: namespaces "ns" not found`, wantReads: 3},
		"the kind of the namespace odd": {uncached: &meta.NoKindMatchError{}, want: `read namespace: no matches for kind "" in group ""`, wantReads: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newReaderBench(t, []client.Object{policy}, nil)
			b.unlisted, b.uncached, b.unreadable = tc.unlisted, tc.uncached, tc.unreadable
			got, err := b.Rules(t.Context(), "ns", neverAsked(t))
			if err == nil || err.Error() != tc.want || got != (Rules{}) {
				t.Errorf("Rules = %+v, %v; want %q", got, err, tc.want)
			}
			for _, cause := range []error{tc.unlisted, tc.uncached, tc.unreadable} {
				if cause != nil && !errors.Is(err, cause) {
					t.Errorf("%v does not wrap %v", err, cause)
				}
			}
			if len(b.reads) != tc.wantReads {
				t.Errorf("reads %q, want %d", b.reads, tc.wantReads)
			}
		})
	}
}

// A runtime that cannot be read is an error of its own, told as it is.
func TestReaderWithoutTheRuntime(t *testing.T) {
	broken := errors.New("read runtime: etcd is away")
	policy := builder.LifecyclePolicy("a").Max(time.Hour).Runtimes("gpu", "yes").Obj()
	b := newReaderBench(t, []client.Object{policy, namespaceOf("ns", nil)}, nil)
	got, err := b.Rules(t.Context(), "ns", func() (trainer.RuntimeSettings, error) { return trainer.RuntimeSettings{}, broken })
	if !errors.Is(err, broken) || got != (Rules{}) {
		t.Errorf("Rules = %+v, %v; want %v", got, err, broken)
	}
}

// neverAsked is the runtime where nobody has to ask for it.
func neverAsked(t *testing.T) func() (trainer.RuntimeSettings, error) {
	return func() (trainer.RuntimeSettings, error) {
		t.Error("the runtime is asked for")
		return trainer.RuntimeSettings{}, nil
	}
}

// A cache that is never filled does not use up the time of the webhook.
func TestReaderDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), interceptor.Funcs{
			List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		start := time.Now()
		_, err := (&Reader{Cache: never, Live: never}).Rules(t.Context(), "ns", neverAsked(t))
		if took := time.Since(start); took != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v, want to give up after 2s", err, took)
		}
	})
}
