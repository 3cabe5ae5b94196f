package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Reader finds the policies that select a TrainJob. A nil one finds none.
type Reader struct {
	// Cache holds the policies, and of the namespaces the metadata.
	Cache client.Reader
	// Live reads a namespace that the cache does not have yet.
	Live client.Reader
}

// cacheTurn is how long a cache that is still being filled may take for an answer.
const cacheTurn = 2 * time.Second

// Namespace returns an empty namespace of which the metadata is to be read.
func Namespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// Rules returns the rules for TrainJobs in this namespace, on a runtime, which is asked for only
// where a policy selects by it. There are none while LifecyclePolicies are not installed.
func (r *Reader) Rules(ctx context.Context, namespace string, runtime func() (trainer.RuntimeSettings, error)) (Rules, error) {
	if r == nil {
		return Rules{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTurn)
	defer cancel()
	var policies v1alpha1.LifecyclePolicyList
	err := r.Cache.List(ctx, &policies, client.UnsafeDisableDeepCopy)
	if meta.IsNoMatchError(err) || err == nil && len(policies.Items) == 0 {
		return Rules{}, nil
	}
	if err != nil {
		return Rules{}, fmt.Errorf("list LifecyclePolicies: %w", err)
	}
	found, key := Namespace(), client.ObjectKey{Name: namespace}
	err = r.Cache.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		// As new as the TrainJob.
		err = r.Live.Get(ctx, key, found)
	}
	if err != nil {
		return Rules{}, fmt.Errorf("read namespace: %w", err)
	}
	return Strictest(policies.Items, found.Labels, runtime)
}

// Warm fills a cache with what a Reader reads, and tells when it is there: a webhook that cannot
// read policies could not answer for any TrainJob.
type Warm struct {
	Cache cache.Cache

	done atomic.Bool
}

// betweenTries is how long after a failed try the cache is asked again.
const betweenTries = 5 * time.Second

// Start asks for the objects, side by side, until all are there. LifecyclePolicies need not be
// installed.
func (w *Warm) Start(ctx context.Context) error {
	var group errgroup.Group
	for _, object := range []client.Object{&v1alpha1.LifecyclePolicy{}, Namespace()} {
		group.Go(func() error {
			return wait.PollUntilContextCancel(ctx, betweenTries, true, func(ctx context.Context) (bool, error) {
				_, err := w.Cache.GetInformer(ctx, object)
				if err != nil && !meta.IsNoMatchError(err) && ctx.Err() == nil {
					log.FromContext(ctx).Error(err, "could not watch what policies are made of")
				}
				return err == nil || meta.IsNoMatchError(err), nil
			})
		})
	}
	if group.Wait() == nil {
		w.done.Store(true)
	}
	return nil
}

// Check tells whether the cache is filled.
func (w *Warm) Check(*http.Request) error {
	if !w.done.Load() {
		return errors.New("the policies are not read yet")
	}
	return nil
}

// NeedLeaderElection is false: every replica answers for its policies.
func (w *Warm) NeedLeaderElection() bool { return false }
