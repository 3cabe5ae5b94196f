package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// informers is a cache that is asked for informers alone.
type informers struct {
	cache.Cache
	// answer answers for what is to be watched; tries are what was asked for.
	answer func(ctx context.Context, what string) error
	tries  chan string
}

const (
	thePolicies   = "LifecyclePolicies"
	theNamespaces = "Namespaces"
)

// GetInformer answers as answer says.
func (i *informers) GetInformer(ctx context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	what := fmt.Sprintf("%T", object)
	switch object := object.(type) {
	case *v1alpha1.LifecyclePolicy:
		what = thePolicies
	case *metav1.PartialObjectMetadata:
		if object.Kind == "Namespace" {
			what = theNamespaces
		}
	}
	i.tries <- what
	return nil, i.answer(ctx, what)
}

// warmed is a Warm that has been started in a bubble of its own.
type warmed struct {
	*Warm
	*informers
	logged []string
	stop   context.CancelFunc
	// ended has what Start returned.
	ended chan error
}

func startWarm(t *testing.T, answer func(ctx context.Context, what string) error) *warmed {
	t.Helper()
	w := &warmed{informers: &informers{answer: answer, tries: make(chan string, 100)}, ended: make(chan error, 1)}
	w.Warm = &Warm{Cache: w.informers}
	if w.Check(nil) == nil {
		t.Error("ready before it is started")
	}
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	t.Cleanup(stop)
	ctx = log.IntoContext(ctx, funcr.New(func(_, args string) { w.logged = append(w.logged, args) }, funcr.Options{}))
	go func() { w.ended <- w.Start(ctx) }()
	synctest.Wait()
	return w
}

// tried counts what was asked for so far.
func (w *warmed) tried() map[string]int {
	counts := map[string]int{}
	for range len(w.tries) {
		what := <-w.tries
		counts[what]++
	}
	return counts
}

// Ready is a webhook whose cache has policies and namespaces, or for which there are no policies
// to be had.
func TestWarm(t *testing.T) {
	for name, policies := range map[string]error{
		"both are there":    nil,
		"no such kind":      &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind("LifecyclePolicy").GroupKind()},
		"no kind, wrapped":  fmt.Errorf("ask the API: %w", &meta.NoKindMatchError{}),
		"no such resource":  &meta.NoResourceMatchError{},
		"resource, wrapped": fmt.Errorf("ask the API: %w", &meta.NoResourceMatchError{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWarm(t, func(_ context.Context, what string) error {
					if what == thePolicies {
						return policies
					}
					return nil
				})
				if err := <-w.ended; err != nil || w.Check(nil) != nil {
					t.Errorf("Start = %v, Check = %v", err, w.Check(nil))
				}
				if diff := cmp.Diff(map[string]int{thePolicies: 1, theNamespaces: 1}, w.tried()); diff != "" {
					t.Errorf("asked for (-want +got):\n%s", diff)
				}
				if len(w.logged) != 0 {
					t.Errorf("log: %q", w.logged)
				}
			})
		})
	}
}

// What could not be watched is tried again, alone and not at once, until it is there.
func TestWarmTriesAgain(t *testing.T) {
	for _, failing := range []string{thePolicies, theNamespaces} {
		other := map[string]string{thePolicies: theNamespaces, theNamespaces: thePolicies}[failing]
		t.Run(failing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var there atomic.Bool
				w := startWarm(t, func(_ context.Context, what string) error {
					if what == failing && !there.Load() {
						return errors.New("etcd is away")
					}
					return nil
				})
				for range 2 {
					if w.Check(nil) == nil {
						t.Error("ready too early")
					}
					time.Sleep(betweenTries)
					synctest.Wait()
				}
				there.Store(true)
				time.Sleep(betweenTries - time.Millisecond)
				synctest.Wait()
				if err := w.Check(nil); err == nil || err.Error() != "the policies are not read yet" {
					t.Errorf("Check = %v before the next try", err)
				}
				time.Sleep(time.Millisecond)
				if err := <-w.ended; err != nil || w.Check(nil) != nil {
					t.Errorf("Start = %v, Check = %v", err, w.Check(nil))
				}
				if diff := cmp.Diff(map[string]int{failing: 4, other: 1}, w.tried()); diff != "" {
					t.Errorf("asked for (-want +got):\n%s", diff)
				}
				if len(w.logged) != 3 || !strings.Contains(w.logged[0], `"error"="etcd is away"`) {
					t.Errorf("log: %q", w.logged)
				}
			})
		})
	}
}

// One that hangs does not keep the other from being asked for, and ends with the process; it is
// never ready then.
func TestWarmGoesSideBySide(t *testing.T) {
	for _, hanging := range []string{thePolicies, theNamespaces} {
		t.Run(hanging, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWarm(t, func(ctx context.Context, what string) error {
					if what == hanging {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})
				time.Sleep(time.Hour)
				if w.Check(nil) == nil {
					t.Error("ready while one hangs")
				}
				if diff := cmp.Diff(map[string]int{thePolicies: 1, theNamespaces: 1}, w.tried()); diff != "" {
					t.Errorf("asked for (-want +got):\n%s", diff)
				}
				w.stop()
				if err := <-w.ended; err != nil || w.Check(nil) == nil || len(w.logged) != 0 {
					t.Errorf("Start = %v, Check = %v, log %q; want no error, not ready, and no log", err, w.Check(nil), w.logged)
				}
			})
		})
	}
}

// Every replica answers, so every replica fills its cache.
func TestWarmNeedsNoLeader(t *testing.T) {
	if (&Warm{}).NeedLeaderElection() {
		t.Error("only the leader fills its cache")
	}
}
