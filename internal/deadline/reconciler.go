package deadline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
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
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Between failed tries of a step: first and longest. What stands in the way may be gone at
// any moment, and pods run until it is.
const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// Reconciler enforces deadlines: at its time it sets Failed with reason DeadlineExceeded on
// the TrainJob, then deletes its JobSet, from which garbage collection takes the Jobs and
// pods. It keeps nothing in memory that it could not compute anew from what is stored, and
// writes nothing but the status.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server: what a cache says may be old, and a job is failed
	// only once.
	Live    client.Reader
	Clock   clock.PassiveClock
	Metrics *Metrics
	// WarnBefore is how long before its deadline, at most, a TrainJob gets an event that
	// announces it; zero for none.
	WarnBefore time.Duration

	// told holds by UID who has had the event of the deadline that they were given, to spare
	// the request; nil before SetupWithManager.
	told *lru.Cache
}

// lately bounds how many TrainJobs told holds; those it forgets cost a request more.
const lately = 4096

// SetupWithManager adds the reconciler to the manager, with this many workers.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	r.told = lru.New(lately)
	return ctrl.NewControllerManagedBy(mgr).
		Named("deadline").
		// A periodic resync changes nothing stored: timers do the waiting.
		For(&trainer.TrainJob{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		// A JobSet matters when it appears: after an expiry it has no business to.
		Watches(&trainer.JobSet{},
			handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &trainer.TrainJob{}, handler.OnlyControllerOwner()),
			builder.WithPredicates(predicate.Funcs{
				// Another one of the same name, its creation missed between two lists.
				UpdateFunc:  func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() },
				DeleteFunc:  func(event.DeleteEvent) bool { return false },
				GenericFunc: func(event.GenericEvent) bool { return false },
			})).
		// A replica that waits for its turn keeps its cache warm, so that it acts at once.
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			EnableWarmup:            ptr.To(true),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		}).
		Complete(r)
}

// Reconcile looks at one TrainJob and does what its deadline asks for now. Every error is
// returned, so that the step is tried again.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	job := &trainer.TrainJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.tellGiven(ctx, job, r.Clock.Now())
	now := r.Clock.Now()
	decision := Evaluate(job, now)
	if decision.State == Expired {
		var err error
		job, decision, err = r.expire(ctx, req.NamespacedName, now)
		if err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if job.DeadlineExceeded() && job.ManagedByTrainer() {
			// The news of what was written brings the TrainJob back, and then there is an event: after
			// the others that are due by now, of which none shall wait for it.
			return reconcile.Result{}, r.deleteJobSet(ctx, job)
		}
	}
	if job.DeadlineExceeded() && job.ManagedByTrainer() {
		return reconcile.Result{}, r.finish(ctx, job, now)
	}
	// What was found at the start has less priority than what comes; its deadline has not, nor the
	// announcement, after which the deadline is timed.
	if warnAt := decision.WarnAt(r.WarnBefore); !warnAt.IsZero() {
		if rest := warnAt.Sub(now); rest > 0 {
			return reconcile.Result{RequeueAfter: rest, Priority: ptr.To(0)}, nil
		}
		r.tell(ctx, job, reasonApproaching, approaching(decision, now), decision.Start, now)
		// That took its time.
		decision = Evaluate(job, r.Clock.Now())
	}
	if decision.RequeueAfter == 0 {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: decision.RequeueAfter, Priority: ptr.To(0)}, nil
}

// conflictTries is how often an expiry is tried at once when others write the TrainJob in
// between, each time from a fresh read.
const conflictTries = 5

// expire sets Failed on the TrainJob if its deadline, read live, is reached at now. It
// returns the TrainJob and the decision as they are after that; a NotFound error when the
// TrainJob is gone. When others keep writing the TrainJob in between, the decision is still
// Expired, with the time after which to try again.
func (r *Reconciler) expire(ctx context.Context, key types.NamespacedName, now time.Time) (*trainer.TrainJob, Decision, error) {
	var job *trainer.TrainJob
	var decision Decision
	var err error
	// client-go's retry.RetryOnConflict is no help here: it returns nil when the request
	// timed out.
	for range conflictTries {
		job, decision, err = r.readAndFail(ctx, key, now)
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).Info("TrainJob changed while its deadline was being enforced; looking again", "after", decision.RequeueAfter)
		return job, decision, nil
	}
	if err != nil || decision.State != Expired {
		return job, decision, err
	}
	r.Metrics.expired(decision, r.Clock.Now())
	log.FromContext(ctx).Info("deadline exceeded",
		"activeSince", decision.Start, "limit", decision.Limit.String(), "source", decision.Source)
	return job, Decision{}, nil
}

// lookForTrainer is how often a TrainJob is looked at whose JobSet has finished and that
// Trainer, which is away, has not finished yet.
const lookForTrainer = 10 * time.Second

// jobSetOf returns the JobSet of the TrainJob, read live; nil where there is none.
func (r *Reconciler) jobSetOf(ctx context.Context, job *trainer.TrainJob) (*trainer.JobSet, error) {
	jobSet := &trainer.JobSet{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(job), jobSet)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read JobSet: %w", err)
	}
	if err != nil || !metav1.IsControlledBy(jobSet, job) {
		return nil, nil
	}
	return jobSet, nil
}

// readAndFail reads the TrainJob live and, if it is expired at now, sets Failed on it.
func (r *Reconciler) readAndFail(ctx context.Context, key types.NamespacedName, now time.Time) (*trainer.TrainJob, Decision, error) {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	if err := r.Live.Get(ctx, key, stored); err != nil {
		return nil, Decision{}, fmt.Errorf("read TrainJob: %w", err)
	}
	job := &trainer.TrainJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, job); err != nil {
		return nil, Decision{}, fmt.Errorf("read TrainJob: %w", err)
	}
	decision := Evaluate(job, now)
	if decision.State != Expired {
		return job, decision, nil
	}
	jobSet, err := r.jobSetOf(ctx, job)
	// What ended by itself before the deadline was enforced runs no more, and how it ended is
	// Trainer's to say.
	if err != nil || jobSet != nil && jobSet.Finished() {
		return job, Decision{RequeueAfter: lookForTrainer}, err
	}
	text := exceeded(decision, r.neverReady(ctx, job, jobSet))
	return job, decision, r.fail(ctx, stored, job, text, now)
}

// fail sets Failed on the TrainJob, which is as read live, in one status patch that goes
// through only if nobody wrote the TrainJob since: one that completed meanwhile stays
// Complete. The other conditions are patched as they are stored, with fields that the view
// may not know.
func (r *Reconciler) fail(ctx context.Context, stored *unstructured.Unstructured, job *trainer.TrainJob, text string, now time.Time) error {
	failed := map[string]any{
		"type":               trainer.ConditionFailed,
		"status":             string(metav1.ConditionTrue),
		"reason":             trainer.ReasonDeadlineExceeded,
		"message":            text,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
	conditions, _, err := unstructured.NestedSlice(stored.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read the conditions: %w", err)
	}
	// One that is not True may be there.
	conditions = slices.DeleteFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && fields["type"] == trainer.ConditionFailed
	})
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": job.ResourceVersion},
		"status":   map[string]any{"conditions": append(conditions, failed)},
	})
	if err != nil {
		return fmt.Errorf("encode status patch: %w", err)
	}
	err = r.Client.Status().Patch(ctx, job, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return fmt.Errorf("set Failed: %w", err)
	}
	return nil
}

// finish ends what is left of a TrainJob that has failed by its deadline, whoever found that:
// it deletes the JobSet, if it is still there, and writes the event.
func (r *Reconciler) finish(ctx context.Context, job *trainer.TrainJob, now time.Time) error {
	if err := r.deleteJobSet(ctx, job); err != nil {
		return err
	}
	r.tellOf(ctx, job, now)
	return nil
}

// deleteJobSet deletes the JobSet of the TrainJob, if it is still there. The deletion is in the
// background: the TrainJob is finished, its pods go as fast as garbage collection can. The
// cache is enough to find the JobSet: one that the cache does not have yet brings its own
// event when it arrives.
func (r *Reconciler) deleteJobSet(ctx context.Context, job *trainer.TrainJob) error {
	jobSet := &trainer.JobSet{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), jobSet)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read JobSet: %w", err)
	}
	if err == nil && metav1.IsControlledBy(jobSet, job) && jobSet.DeletionTimestamp.IsZero() {
		err = r.Client.Delete(ctx, jobSet,
			client.Preconditions{UID: &jobSet.UID},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete JobSet: %w", err)
		}
		if err == nil {
			log.FromContext(ctx).Info("deleted the JobSet of an expired TrainJob")
		}
	}
	return nil
}

// Finish ends what is left of the TrainJob if it has failed by its deadline: for whoever is about
// to delete it.
func (r *Reconciler) Finish(ctx context.Context, job *trainer.TrainJob) error {
	if !job.DeadlineExceeded() || !job.ManagedByTrainer() {
		return nil
	}
	return r.finish(ctx, job, r.Clock.Now())
}

var _ reconcile.Reconciler = (*Reconciler)(nil)
