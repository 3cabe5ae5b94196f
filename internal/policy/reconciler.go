package policy

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	signalboxevent "github.com/signalbox-dev/signalbox/internal/event"
)

// Reasons of the condition Ready, and of the event about a policy that is not.
const (
	reasonInForce         = "InForce"
	reasonInvalidSelector = "InvalidSelector"
)

// Reconciler tells in the status of each LifecyclePolicy whether it is in force and how many
// namespaces it selects. Nothing depends on that: the webhook and the clean-up read the specs.
type Reconciler struct {
	// Client reads policies, and the metadata of namespaces, from the cache, and writes.
	Client client.Client
	Clock  clock.PassiveClock
}

// SetupWithManager adds the reconciler to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy").
		For(&v1alpha1.LifecyclePolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(Namespace(), handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(predicate.Funcs{
			CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList },
			UpdateFunc:  predicate.LabelChangedPredicate{}.Update,
			GenericFunc: func(event.GenericEvent) bool { return false },
		})).
		WithOptions(controller.Options{EnableWarmup: ptr.To(true)}).
		Complete(r)
}

// all asks for every policy to be looked at.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var policies v1alpha1.LifecyclePolicyList
	if err := r.Client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the policies")
	}
	requests := make([]reconcile.Request, len(policies.Items))
	for i := range policies.Items {
		requests[i].Name = policies.Items[i].Name
	}
	return requests
}

// Reconcile brings the status of one policy up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	policy := &v1alpha1.LifecyclePolicy{}
	if err := r.Client.Get(ctx, req.NamespacedName, policy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !policy.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(Namespace().GroupVersionKind())
	if err := r.Client.List(ctx, namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list namespaces: %w", err)
	}
	matching := int32(0)
	for i := range namespaces.Items {
		if Selects(policy.Spec.NamespaceSelector, labels.Set(namespaces.Items[i].Labels)) {
			matching++
		}
	}
	now := r.Clock.Now()
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reasonInForce,
		Message:            "counts for new TrainJobs, and for how long finished ones stay",
		ObservedGeneration: policy.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	if errs := Validate(policy); len(errs) > 0 {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, reasonInvalidSelector, "selects nothing: "+errs.ToAggregate().Error()
		matching = 0
		signalboxevent.Warn(ctx, r.Client, signalboxevent.About(policy), ready.Reason, ready.Message, ready.Message, now)
	}
	return reconcile.Result{}, r.write(ctx, policy, ready, matching)
}

// write stores what was found of the policy, unless it is stored.
func (r *Reconciler) write(ctx context.Context, policy *v1alpha1.LifecyclePolicy, ready metav1.Condition, matching int32) error {
	status := policy.Status.DeepCopy()
	meta.SetStatusCondition(&status.Conditions, ready)
	status.ObservedGeneration, status.MatchingNamespaces = policy.Generation, &matching
	if equality.Semantic.DeepEqual(*status, policy.Status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": policy.ResourceVersion},
		"status":   status,
	})
	if err != nil {
		return fmt.Errorf("encode status patch: %w", err)
	}
	err = r.Client.Status().Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of a LifecyclePolicy: %w", err)
	}
	return nil
}

var _ reconcile.Reconciler = (*Reconciler)(nil)
