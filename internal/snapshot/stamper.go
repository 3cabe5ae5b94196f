package snapshot

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Stamper writes the revision of a runtime's content into it, where the webhook has not: into
// runtimes that were there before, or came while it was away.
type Stamper struct {
	// Kind is the kind of runtime.
	Kind string
	// Cache reads runtimes as unstructured objects.
	Cache   client.Reader
	Client  client.Client
	Metrics *Metrics
}

// SetupWithManager adds the stamper to the manager.
func (s *Stamper) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("revision-" + s.Kind).
		For(trainer.NewRuntime(s.Kind)).
		WithOptions(controller.Options{
			EnableWarmup: ptr.To(true),
			RateLimiter:  workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		}).
		Complete(s)
}

// Reconcile looks at one runtime.
func (s *Stamper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	runtime := trainer.NewRuntime(s.Kind)
	if err := s.Cache.Get(ctx, req.NamespacedName, runtime); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	spec, _ := runtime.Object["spec"].(map[string]any)
	if _, found := spec["template"].(map[string]any); !found || runtime.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	revision, stamped := Stamped(spec)
	if stamped {
		return reconcile.Result{}, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": runtime.GetResourceVersion()},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{v1alpha1.AnnotationRuntimeRevision: revision, v1alpha1.AnnotationRuntimeSource: nil},
		}}},
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encode patch: %w", err)
	}
	err = s.Client.Patch(ctx, runtime, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		// Its event comes.
		return reconcile.Result{}, nil
	case apierrors.IsInvalid(err):
		// A rule is against this runtime, and stays so until it changes.
		log.FromContext(ctx).Error(err, "could not write the revision of the runtime; its TrainJobs start one try later")
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("write the revision: %w", err)
	}
	s.Metrics.wrote(s.Kind, "stamp")
	log.FromContext(ctx).Info("wrote the revision of the runtime", "revision", revision)
	return reconcile.Result{}, nil
}

var _ reconcile.Reconciler = (*Stamper)(nil)
