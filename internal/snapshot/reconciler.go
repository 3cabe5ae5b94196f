package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// trainersTurn is how long Trainer has to write its ConfigMap before the reconciler does.
const trainersTurn = 5 * time.Second

// catchUp is how long a ledger has to learn of an object that was created just now.
const catchUp = time.Second

// Between failed tries: first and longest. A job may be waiting.
const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// Reconciler makes what Trainer and people read of the runtimes of TrainJobs say what is
// sealed: the ConfigMap from which Trainer builds, and the TrainingRuntimeSnapshot. It takes
// away the suspended JobSet that was built from other content, and it takes over TrainJobs
// that were there before. It writes nothing of a TrainJob.
type Reconciler struct {
	// Client reads TrainJobs and JobSets from the cache, and writes.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Trainer tells what the installed Trainer knows.
	Trainer *trainer.Detector
	Metrics *Metrics

	// configMaps and filed know of what is kept of the runtimes.
	configMaps, filed *ledger
}

// SetupWithManager adds the reconciler to the manager, with this many workers.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	watching, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	r.setLedgers(watching)
	ofTrainJob := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &trainer.TrainJob{}, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).
		Named("snapshot").
		For(&trainer.TrainJob{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(r.filed).
		WatchesRawSource(r.configMaps).
		// One that runs is not touched.
		Watches(&trainer.JobSet{}, ofTrainJob, builder.WithPredicates(predicate.Funcs{
			CreateFunc:  func(e event.CreateEvent) bool { return e.Object.(*trainer.JobSet).Suspended() },
			UpdateFunc:  func(e event.UpdateEvent) bool { return e.ObjectNew.(*trainer.JobSet).Suspended() },
			DeleteFunc:  func(event.DeleteEvent) bool { return false },
			GenericFunc: func(event.GenericEvent) bool { return false },
		})).
		// Another Trainer may read what the one before did not.
		Watches(&apiextensionsv1.CustomResourceDefinition{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return trainer.Detect(e.ObjectOld.(*apiextensionsv1.CustomResourceDefinition)) != trainer.Detect(e.ObjectNew.(*apiextensionsv1.CustomResourceDefinition))
			},
			DeleteFunc:  func(event.DeleteEvent) bool { return false },
			GenericFunc: func(event.GenericEvent) bool { return false },
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			EnableWarmup:            ptr.To(true),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		}).
		Complete(r)
}

// setLedgers makes the ledgers, which list and watch by this client.
func (r *Reconciler) setLedgers(watching client.WithWatch) {
	r.filed = newLedger(watching, func() client.ObjectList { return &v1alpha1.TrainingRuntimeSnapshotList{} },
		func(name string) (string, bool) { return name, true }, noteFiled)
	r.configMaps = newLedger(watching, func() client.ObjectList { return &corev1.ConfigMapList{} },
		trainer.TrainJobOfSnapshot, noteConfigMap, labelled())
}

// all asks for every TrainJob to be looked at.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var jobs trainer.TrainJobList
	if err := r.Client.List(ctx, &jobs); err != nil {
		log.FromContext(ctx).Error(err, "could not list the TrainJobs")
	}
	var requests []reconcile.Request
	for i := range jobs.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&jobs.Items[i])})
	}
	return requests
}

// Reconcile looks at one TrainJob. Every error is returned, so that the step is tried again.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	// A controller that is added to a running manager may start before what it watches is read.
	for _, ledger := range []*ledger{r.filed, r.configMaps} {
		if err := ledger.WaitForSync(ctx); err != nil {
			log.FromContext(ctx).Info("waiting for the first list", "of", ledger.kind())
			return reconcile.Result{RequeueAfter: catchUp}, nil
		}
	}
	job := &trainer.TrainJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, err := r.Trainer.Capabilities(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	wait, err := r.reconcile(ctx, job, known.RuntimeSnapshot)
	if errors.Is(err, errGone) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The event of the next TrainJob comes, and nothing new into a namespace that goes.
		err = nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// reconcile puts in order what belongs to the TrainJob. It returns after which time to look
// again; 0 for when something changes.
func (r *Reconciler) reconcile(ctx context.Context, job *trainer.TrainJob, keeps bool) (time.Duration, error) {
	if !job.ManagedByTrainer() || !job.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	s, err := Of(job)
	if err != nil {
		log.FromContext(ctx).Error(err, "the seal of the TrainJob cannot be read; it is treated as one without")
	}
	reads := keeps && !job.Terminal()
	switch {
	case s == nil && !decided(job):
		return 0, r.clearLeftover(ctx, job)
	case s == nil && r.adopted(job, reads):
		return 0, nil
	case s != nil && r.settled(job, s, reads):
		if !reads {
			return 0, nil
		}
		return r.jobSet(ctx, job, s)
	}
	filed, err := r.filedOf(ctx, job)
	if err != nil {
		return 0, err
	}
	if s == nil {
		if s, err = r.kept(ctx, job, filed, keeps); err != nil {
			return 0, err
		}
	}
	if s == nil {
		return 0, r.clearLeftover(ctx, job)
	}
	// What Trainer needs comes first: nobody waits for what people read.
	var wait time.Duration
	if reads {
		if wait, err = r.configMap(ctx, job, s); err == nil && wait == 0 {
			wait, err = r.jobSet(ctx, job, s)
		}
		if apierrors.IsAlreadyExists(err) {
			// Trainer was faster.
			wait, err = firstLook, nil
		}
	}
	notFiled := r.file(ctx, job, s, filed)
	if apierrors.IsAlreadyExists(notFiled) {
		// The ledger does not have yet what an earlier look created.
		notFiled = nil
		if wait == 0 {
			wait = catchUp
		}
	}
	return wait, errors.Join(err, notFiled)
}

// decided tells of a TrainJob without a seal whether it is decided what it lives on: one that waits
// follows its runtime.
func decided(job *trainer.TrainJob) bool {
	return job.Active() || job.Annotations[v1alpha1.AnnotationRuntimeSource] == ""
}

// settled tells whether all that is kept of the runtime of the TrainJob is as the snapshot says;
// reads whether Trainer reads its ConfigMap.
func (r *Reconciler) settled(job *trainer.TrainJob, s *Snapshot, reads bool) bool {
	want := settledNote(job, s)
	filed, _ := r.filed.of(job)
	config, _ := r.configMaps.of(job)
	return filed == want && (!reads || config == want)
}

// adopted tells the same of a TrainJob without a seal, which lives on what is filed for it.
func (r *Reconciler) adopted(job *trainer.TrainJob, reads bool) bool {
	filed, _ := r.filed.of(job)
	config, _ := r.configMaps.of(job)
	ref := job.Spec.RuntimeRef
	return filed.settled && filed.owner == hash(string(job.UID)) && filed.source == hash(ref.GroupVersionKind().Kind+"/"+ref.Name) &&
		(!reads || config == filed)
}

// kept returns the snapshot that a TrainJob without a seal lives on, one that was there before, or
// was too large: what was filed when it was taken over, or what Trainer keeps; nil when there is
// none.
func (r *Reconciler) kept(ctx context.Context, job *trainer.TrainJob, filed *v1alpha1.TrainingRuntimeSnapshot, keeps bool) (*Snapshot, error) {
	if filed != nil && metav1.IsControlledBy(filed, job) {
		if s, err := FromObject(filed); err == nil && s.IsOf(job) {
			return s, nil
		}
	}
	if !keeps {
		return nil, nil
	}
	config := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, configMapOf(job), config); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(config, job) {
		return nil, nil
	}
	s, err := FromYAML(config.Data[trainer.SnapshotKey])
	if err != nil || !s.IsOf(job) {
		log.FromContext(ctx).Info("what Trainer keeps of the runtime cannot be read", "configMap", config.Name, "error", err)
		return nil, nil
	}
	s.SealedAt = config.CreationTimestamp.Time
	return s, nil
}

// remove deletes the object as it was read, unless it was written since.
func (r *Reconciler) remove(ctx context.Context, job *trainer.TrainJob, object client.Object, kind string) error {
	if err := r.confirm(ctx, job); err != nil {
		return err
	}
	uid, resourceVersion := object.GetUID(), object.GetResourceVersion()
	err := r.Client.Delete(ctx, object,
		client.Preconditions{UID: &uid, ResourceVersion: &resourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", kind, err)
	}
	r.Metrics.wrote(kind, "delete")
	log.FromContext(ctx).Info("deleted what is not of the runtime that the TrainJob lives on", "kind", kind, "name", object.GetName())
	return nil
}

// errGone says that the TrainJob of the cache is there no more, or goes.
var errGone = errors.New("the TrainJob is gone")

// confirm reads the TrainJob live, before anything is written for it, and returns errGone when
// there is another one of its name, or none, or it is being deleted.
func (r *Reconciler) confirm(ctx context.Context, job *trainer.TrainJob) error {
	stored := &metav1.PartialObjectMetadata{}
	stored.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(job), stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read TrainJob: %w", err)
	}
	if err != nil || stored.UID != job.UID || !stored.DeletionTimestamp.IsZero() {
		return errGone
	}
	return nil
}

// patch sends a JSON merge patch.
func (r *Reconciler) patch(ctx context.Context, object client.Object, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(v1alpha1.FieldManager))
}

var _ reconcile.Reconciler = (*Reconciler)(nil)
