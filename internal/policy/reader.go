package policy

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// Reader finds the policies that select a TrainJob.
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

// Rules returns the rules for TrainJobs in this namespace, on a runtime with these labels. There
// are none while LifecyclePolicies are not installed.
func (r *Reader) Rules(ctx context.Context, namespace string, runtime labels.Set) (Rules, error) {
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
	return Strictest(policies.Items, found.Labels, runtime), nil
}

// Warm fills a cache with what a Reader reads, so that the first TrainJob need not wait for it.
type Warm struct{ Cache cache.Cache }

// Start asks for the objects once.
func (w Warm) Start(ctx context.Context) error {
	for _, object := range []client.Object{&v1alpha1.LifecyclePolicy{}, Namespace()} {
		if _, err := w.Cache.GetInformer(ctx, object); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "could not watch what policies are made of; it is tried again for each TrainJob")
		}
	}
	return nil
}

// NeedLeaderElection is false: every replica answers for its policies.
func (Warm) NeedLeaderElection() bool { return false }
