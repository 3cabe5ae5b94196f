package ttl

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	signalboxevent "github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// reasonExpired is the reason of the event about a TrainJob that is removed.
const reasonExpired = "TTLExpired"

// workers is how many TrainJobs are removed side by side: few, so that a clean-up of thousands
// leaves room for deadlines.
const workers = 4

// Between failed tries: first and longest. Nothing runs that would have to end.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Minute
)

// Reconciler removes finished TrainJobs when their time is over. What they own goes with them by
// garbage collection. It keeps nothing in memory.
type Reconciler struct {
	// Client reads from the cache, and writes.
	Client client.Client
	// Live reads from the API server: a TrainJob is removed only once.
	Live  client.Reader
	Clock clock.PassiveClock
	// Rules returns what is said about a TrainJob elsewhere than in it, as it is at the moment.
	Rules func(ctx context.Context, job *trainer.TrainJob) (Rules, error)
	// Before does what must be done before a TrainJob is removed.
	Before  func(ctx context.Context, job *trainer.TrainJob) error
	Metrics *Metrics
}

// SetupWithManager adds the reconciler to the manager. namespace is an empty namespace of which
// the metadata is watched; nil where no policies count, which are not watched then either.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, namespace *metav1.PartialObjectMetadata) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("ttl").
		For(&trainer.TrainJob{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}, predicate.NewPredicateFuncs(isFinished)))
	// What was there at the start counts for each TrainJob as that is looked at.
	if namespace != nil {
		b = b.Watches(&v1alpha1.LifecyclePolicy{}, handler.EnqueueRequestsFromMapFunc(r.finished("")),
			builder.WithPredicates(changed(predicate.GenerationChangedPredicate{}.Update))).
			WatchesMetadata(namespace, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
				return r.in(ctx, object.GetName(), nil)
			}), builder.WithPredicates(changed(predicate.LabelChangedPredicate{}.Update)))
	}
	for _, kind := range []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind} {
		b = b.Watches(trainer.NewRuntime(kind), handler.EnqueueRequestsFromMapFunc(r.finished(kind)), builder.WithPredicates(changed(saysOther)))
	}
	return b.WithOptions(controller.Options{
		MaxConcurrentReconciles: workers,
		EnableWarmup:            ptr.To(true),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
	}).Complete(r)
}

// isFinished tells whether the object is a TrainJob that has finished.
func isFinished(object client.Object) bool {
	job, ok := object.(*trainer.TrainJob)
	return ok && job.Terminal()
}

// changed lets pass what appears, goes, or is updated so that it says something else.
func changed(update func(event.UpdateEvent) bool) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc:  update,
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// saysOther tells whether an update of a runtime changes what it says of its finished TrainJobs.
func saysOther(e event.UpdateEvent) bool {
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
		!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
		!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
}

// finished returns a function that asks for the finished TrainJobs of a runtime of this kind to
// be looked at, or for all where kind is "".
func (r *Reconciler) finished(kind string) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		if kind == "" {
			return r.in(ctx, metav1.NamespaceAll, nil)
		}
		return r.in(ctx, object.GetNamespace(), func(job *trainer.TrainJob) bool {
			ref := job.Spec.RuntimeRef
			return ref.Known() && ref.GroupVersionKind().Kind == kind && ref.Name == object.GetName()
		})
	}
}

// in asks for the finished TrainJobs of a namespace that are of interest to be looked at.
func (r *Reconciler) in(ctx context.Context, namespace string, interesting func(*trainer.TrainJob) bool) []reconcile.Request {
	var jobs trainer.TrainJobList
	if err := r.Client.List(ctx, &jobs, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "could not list TrainJobs")
	}
	var requests []reconcile.Request
	for i := range jobs.Items {
		if job := &jobs.Items[i]; job.Terminal() && (interesting == nil || interesting(job)) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}
	return requests
}

// Reconcile looks at one TrainJob, and removes it when its time is over.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	job := &trainer.TrainJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	decision, err := r.evaluate(ctx, job)
	if err != nil || decision.State != Due {
		return reconcile.Result{RequeueAfter: decision.RequeueAfter}, err
	}
	live := &trainer.TrainJob{}
	if err := r.Live.Get(ctx, req.NamespacedName, live); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	decision, err = r.evaluate(ctx, live)
	if err != nil || decision.State != Due {
		return reconcile.Result{RequeueAfter: decision.RequeueAfter}, err
	}
	if err := r.Before(ctx, live); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.remove(ctx, live, decision)
}

// evaluate tells how the TrainJob stands to its end. Where it finished in the future, by the
// clock of whoever wrote that, it says so.
func (r *Reconciler) evaluate(ctx context.Context, job *trainer.TrainJob) (Decision, error) {
	if !mayGo(job) {
		return Decision{}, nil
	}
	rules, err := r.Rules(ctx, job)
	if err != nil {
		return Decision{}, err
	}
	now := r.Clock.Now()
	decision := Evaluate(job, rules, now)
	if decision.State == Waiting && decision.Finished.After(now) {
		log.FromContext(ctx).Info("a TrainJob finished in the future, as its status says; waiting for that",
			"finished", decision.Finished, "now", now)
	}
	return decision, nil
}

// remove deletes the TrainJob, which is as read live, if nobody wrote it since.
func (r *Reconciler) remove(ctx context.Context, job *trainer.TrainJob, decision Decision) error {
	err := r.Client.Delete(ctx, job,
		client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// It is gone, or was written: that has an event of its own.
		return nil
	case err != nil:
		return fmt.Errorf("delete TrainJob: %w", err)
	}
	now := r.Clock.Now()
	r.Metrics.removed(decision, now)
	text := removed(decision)
	log.FromContext(ctx).Info("removed a finished TrainJob", "reason", text)
	signalboxevent.Note(ctx, r.Client, job.Reference(), reasonExpired, text, "", now)
	return nil
}

var _ reconcile.Reconciler = (*Reconciler)(nil)
