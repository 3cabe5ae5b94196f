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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

// FieldOwner is the field manager of everything that the reconciler writes.
const FieldOwner = "signalbox"

// trainersTurn is how long Trainer has to write its ConfigMap before the reconciler does.
const trainersTurn = 5 * time.Second

// firstLook is how soon the reconciler looks again for Trainer's ConfigMap; each further look
// comes after twice the time.
const firstLook = 100 * time.Millisecond

// lookForRoom is how often the reconciler looks whether a ConfigMap that is somebody else's is
// still in the place of Trainer's, of which it gets no events.
const lookForRoom = 15 * time.Second

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
	// Client reads from the cache, which holds of the ConfigMaps those of CacheConfigMaps,
	// and writes.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Trainer tells what the installed Trainer knows.
	Trainer *trainer.Detector
	Metrics *Metrics
}

// CacheConfigMaps is what a cache must hold for a Reconciler: the ConfigMaps that it looks
// after, with a summary for the content.
func CacheConfigMaps() cache.ByObject {
	labelled, err := labels.NewRequirement(v1alpha1.LabelRuntimeRevision, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return cache.ByObject{
		Label: labels.NewSelector().Add(*labelled),
		Transform: func(object any) (any, error) {
			config, ok := object.(*corev1.ConfigMap)
			if !ok {
				return object, nil
			}
			// An informer may transform what it has transformed before.
			if _, done := config.Data[summaryKey]; !done {
				config.Data = map[string]string{summaryKey: summarize(config.Data[trainer.SnapshotKey])}
				config.BinaryData, config.ManagedFields = nil, nil
			}
			return object, nil
		},
	}
}

// summaryKey is the key of the summary in the ConfigMaps of the cache. No ConfigMap that is
// stored can have it: a space is not allowed.
const summaryKey = "runtime summary"

// SetupWithManager adds the reconciler to the manager, with this many workers.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	ofTrainJob := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &trainer.TrainJob{}, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).
		Named("snapshot").
		For(&trainer.TrainJob{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.TrainingRuntimeSnapshot{}, ofTrainJob).
		Watches(&corev1.ConfigMap{}, ofTrainJob).
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
	job := &trainer.TrainJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, err := r.Trainer.Capabilities(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	wait, err := r.reconcile(ctx, job, known.RuntimeSnapshot)
	switch {
	case errors.Is(err, errGone), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
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
	filed := &v1alpha1.TrainingRuntimeSnapshot{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), filed)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read TrainingRuntimeSnapshot: %w", err)
	}
	if err != nil {
		filed = nil
	}
	s, err := r.snapshotOf(ctx, job, filed, keeps)
	if err != nil {
		return 0, err
	}
	if s == nil {
		return 0, r.clearLeftover(ctx, job)
	}
	// What Trainer needs comes first: nobody waits for what people read.
	var wait time.Duration
	if keeps && !job.Terminal() {
		if wait, err = r.configMap(ctx, job, s); err == nil && wait == 0 {
			wait, err = r.jobSet(ctx, job, s, filed)
		}
	}
	return wait, errors.Join(err, r.file(ctx, job, s, filed))
}

// snapshotOf returns the snapshot that the TrainJob lives on: what is sealed into it, or for
// one that was there before, or was too large, what was filed when it was taken over, or what
// Trainer keeps. It returns nil when there is none, or when it is not decided yet.
func (r *Reconciler) snapshotOf(ctx context.Context, job *trainer.TrainJob, filed *v1alpha1.TrainingRuntimeSnapshot, keeps bool) (*Snapshot, error) {
	s, err := Of(job)
	if err != nil {
		log.FromContext(ctx).Error(err, "the seal of the TrainJob cannot be read; it is treated as one without")
	}
	if s != nil {
		return s, nil
	}
	if !job.Active() && job.Annotations[v1alpha1.AnnotationRuntimeSource] != "" {
		return nil, nil
	}
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
	s, err = FromYAML(config.Data[trainer.SnapshotKey])
	if err != nil || !s.IsOf(job) {
		log.FromContext(ctx).Info("what Trainer keeps of the runtime cannot be read", "configMap", config.Name, "error", err)
		return nil, nil
	}
	s.SealedAt = config.CreationTimestamp.Time
	return s, nil
}

// file makes the TrainingRuntimeSnapshot of the TrainJob what the snapshot says; filed is the
// one that is there, nil for none.
func (r *Reconciler) file(ctx context.Context, job *trainer.TrainJob, s *Snapshot, filed *v1alpha1.TrainingRuntimeSnapshot) error {
	want := s.Object(job)
	if filed != nil && !filed.DeletionTimestamp.IsZero() {
		// Its end is an event.
		return nil
	}
	if filed != nil {
		is, err := FromObject(filed)
		if err == nil && metav1.IsControlledBy(filed, job) && is.summary() == s.summary() {
			return r.annotate(ctx, job, filed, want.Annotations)
		}
		// Of an earlier TrainJob of that name, or not what it should be: its spec cannot be
		// corrected.
		if err := r.remove(ctx, job, filed, v1alpha1.TrainingRuntimeSnapshotKind); err != nil {
			return err
		}
	} else if err := r.confirm(ctx, job); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, want, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("create TrainingRuntimeSnapshot: %w", err)
	}
	r.Metrics.wrote(v1alpha1.TrainingRuntimeSnapshotKind, "create")
	log.FromContext(ctx).Info("filed the runtime of the TrainJob", "runtime", Name(s.Source), "revision", s.Revision)
	return nil
}

// annotate puts back the annotations that say where a TrainingRuntimeSnapshot came from.
func (r *Reconciler) annotate(ctx context.Context, job *trainer.TrainJob, filed *v1alpha1.TrainingRuntimeSnapshot, want map[string]string) error {
	complete := true
	for key, value := range want {
		complete = complete && filed.Annotations[key] == value
	}
	if complete {
		return nil
	}
	if err := r.confirm(ctx, job); err != nil {
		return err
	}
	err := r.patch(ctx, filed, map[string]any{"metadata": map[string]any{"resourceVersion": filed.ResourceVersion, "annotations": want}})
	if err != nil {
		return fmt.Errorf("annotate TrainingRuntimeSnapshot: %w", err)
	}
	r.Metrics.wrote(v1alpha1.TrainingRuntimeSnapshotKind, "patch")
	return nil
}

// configMap makes the ConfigMap that Trainer reads hold the snapshot. It returns how long to
// wait for Trainer to write it first; 0 when nothing is left to do.
func (r *Reconciler) configMap(ctx context.Context, job *trainer.TrainJob, s *Snapshot) (time.Duration, error) {
	config := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, configMapOf(job), config)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read ConfigMap: %w", err)
	}
	if err == nil && metav1.IsControlledBy(config, job) && inOrder(config, s) && config.Data[summaryKey] == s.summary() {
		return 0, nil
	}
	// The cache has the ConfigMaps with the label only.
	config = &corev1.ConfigMap{}
	err = r.Live.Get(ctx, configMapOf(job), config)
	if apierrors.IsNotFound(err) {
		if rest := r.trainersRest(job, s); rest > 0 {
			return nextLook(rest), nil
		}
		return 0, r.createConfigMap(ctx, job, s)
	}
	if err != nil {
		return 0, fmt.Errorf("read ConfigMap: %w", err)
	}
	holds := s.Holds(config.Data[trainer.SnapshotKey])
	if metav1.IsControlledBy(config, job) && (holds || !ptr.Deref(config.Immutable, false)) {
		return 0, r.correctConfigMap(ctx, job, s, config, holds)
	}
	if !metav1.IsControlledBy(config, job) && !isLeftover(config) {
		log.FromContext(ctx).Info("a ConfigMap that is not the TrainJob's is in the place of the one that Trainer keeps; Trainer cannot run the TrainJob", "configMap", config.Name)
		return lookForRoom, nil
	}
	if err := r.remove(ctx, job, config, "ConfigMap"); err != nil {
		return 0, err
	}
	return 0, r.createConfigMap(ctx, job, s)
}

// nextLook returns how long to wait for Trainer's ConfigMap when so much of Trainer's turn is
// left: as long as it has been waited for, so that one that is there is seen soon. Where the
// clocks differ and the turn has not begun, that is no measure.
func nextLook(rest time.Duration) time.Duration {
	if rest > trainersTurn+time.Second {
		return trainersTurn
	}
	return max(firstLook, min(trainersTurn-rest, rest))
}

// trainersRest returns how much is left of the time in which a write is Trainer's: from the
// last start of the TrainJob, or from the seal.
func (r *Reconciler) trainersRest(job *trainer.TrainJob, s *Snapshot) time.Duration {
	since := s.SealedAt
	if at, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt]); err == nil && at.After(since) {
		since = at
	}
	return since.Add(trainersTurn).Sub(r.Clock.Now())
}

// clearLeftover removes the ConfigMap of an earlier TrainJob of that name, on which Trainer
// fails, where the TrainJob has no snapshot yet.
func (r *Reconciler) clearLeftover(ctx context.Context, job *trainer.TrainJob) error {
	config := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, configMapOf(job), config); err != nil {
		return client.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(config, job) || !isLeftover(config) {
		return nil
	}
	return r.remove(ctx, job, config, "ConfigMap")
}

// inOrder tells whether the ConfigMap is looked after: labelled with its revision, so that it
// is watched, and immutable.
func inOrder(config *corev1.ConfigMap, s *Snapshot) bool {
	return config.Labels[v1alpha1.LabelRuntimeRevision] == s.Revision && ptr.Deref(config.Immutable, false)
}

// isLeftover tells whether the ConfigMap, which is not of the TrainJob of its name, was of an
// earlier one: it still has that for its owner, or lost it to a deletion that orphans.
func isLeftover(config *corev1.ConfigMap) bool {
	if owner := metav1.GetControllerOfNoCopy(config); owner != nil {
		return owner.Kind == trainer.TrainJobKind && trainer.IsGroup(owner.APIVersion)
	}
	_, ours := config.Labels[v1alpha1.LabelRuntimeRevision]
	return ours
}

func (r *Reconciler) createConfigMap(ctx context.Context, job *trainer.TrainJob, s *Snapshot) error {
	text, err := s.YAML()
	if err != nil {
		return fmt.Errorf("encode runtime: %w", err)
	}
	if err := r.confirm(ctx, job); err != nil {
		return err
	}
	key := configMapOf(job)
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       key.Namespace,
			Name:            key.Name,
			Labels:          map[string]string{v1alpha1.LabelRuntimeRevision: s.Revision},
			Annotations:     map[string]string{v1alpha1.AnnotationSnapshotSource: Name(s.Source)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, trainer.GroupVersion.WithKind(trainer.TrainJobKind))},
		},
		Data:      map[string]string{trainer.SnapshotKey: text},
		Immutable: ptr.To(true),
	}
	if err := r.Client.Create(ctx, config, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("create ConfigMap: %w", err)
	}
	r.Metrics.wrote("ConfigMap", "create")
	log.FromContext(ctx).Info("created the ConfigMap that Trainer reads", "configMap", config.Name, "revision", s.Revision)
	return nil
}

// correctConfigMap labels the ConfigMap, makes it immutable and, unless it holds the snapshot,
// gives it the content.
func (r *Reconciler) correctConfigMap(ctx context.Context, job *trainer.TrainJob, s *Snapshot, config *corev1.ConfigMap, holds bool) error {
	patch := map[string]any{
		"metadata": map[string]any{
			"resourceVersion": config.ResourceVersion,
			"labels":          map[string]any{v1alpha1.LabelRuntimeRevision: s.Revision},
			"annotations":     map[string]any{v1alpha1.AnnotationSnapshotSource: Name(s.Source)},
		},
		"immutable": true,
	}
	if !holds {
		text, err := s.YAML()
		if err != nil {
			return fmt.Errorf("encode runtime: %w", err)
		}
		patch["data"] = map[string]any{trainer.SnapshotKey: text}
		// A key may not be in both.
		patch["binaryData"] = map[string]any{trainer.SnapshotKey: nil}
	}
	if err := r.confirm(ctx, job); err != nil {
		return err
	}
	if err := r.patch(ctx, config, patch); err != nil {
		return fmt.Errorf("correct ConfigMap: %w", err)
	}
	if holds {
		r.Metrics.wrote("ConfigMap", "label")
		return nil
	}
	r.Metrics.wrote("ConfigMap", "correct")
	log.FromContext(ctx).Info("corrected the ConfigMap that Trainer reads", "configMap", config.Name, "revision", s.Revision)
	return nil
}

// jobSet deletes the suspended JobSet of a TrainJob that is active, when it was built from
// other content than what is sealed: JobSet does not let it be changed, Trainer builds it
// anew. The preconditions let nothing be deleted that meanwhile runs. The JobSet of a TrainJob
// that may have run before holds what is done already, and most likely lacks nothing but the
// revision: Trainer has its turn to write it, once it has seen that the TrainJob is active. It
// returns how long to wait for that.
func (r *Reconciler) jobSet(ctx context.Context, job *trainer.TrainJob, s *Snapshot, filed *v1alpha1.TrainingRuntimeSnapshot) (time.Duration, error) {
	if _, sealed := job.Annotations[v1alpha1.AnnotationRuntimeSnapshot]; !sealed || !job.Active() {
		return 0, nil
	}
	jobSet := &trainer.JobSet{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), jobSet); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(jobSet, job) || !jobSet.Suspended() || !jobSet.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	right := jobSet.Annotations[v1alpha1.AnnotationRuntimeRevision] == s.Revision
	if !right && firstStart(job, s, filed) {
		return 0, r.remove(ctx, job, jobSet, trainer.JobSetGroupVersionKind.Kind)
	}
	suspended := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionTrue {
		// Trainer has not looked since; when it does, that is an event.
		return 0, nil
	}
	rest := r.trainersRest(job, s)
	if suspended != nil {
		rest = max(rest, suspended.LastTransitionTime.Add(trainersTurn).Sub(r.Clock.Now()))
	}
	switch {
	case rest > 0:
		return min(rest, trainersTurn), nil
	case right:
		// It should have started. It may have been built from content that only claimed to be
		// this.
		return 0, r.judge(ctx, job, s, jobSet)
	}
	return 0, r.remove(ctx, job, jobSet, trainer.JobSetGroupVersionKind.Kind)
}

// judge deletes the suspended JobSet of the right revision when the gate would not let it
// start: when it was not built from what the ConfigMap holds.
func (r *Reconciler) judge(ctx context.Context, job *trainer.TrainJob, s *Snapshot, jobSet *trainer.JobSet) error {
	config := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, configMapOf(job), config); err != nil {
		return client.IgnoreNotFound(err)
	}
	if s.HoldsFor(config.Data[trainer.SnapshotKey], jobSet.Annotations) {
		return nil
	}
	return r.remove(ctx, job, jobSet, trainer.JobSetGroupVersionKind.Kind)
}

// firstStart tells whether the TrainJob was sealed when it last became active, and had no
// snapshot before: it has never run.
func firstStart(job *trainer.TrainJob, s *Snapshot, filed *v1alpha1.TrainingRuntimeSnapshot) bool {
	at, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
	return err == nil && at.Truncate(time.Second).Equal(s.SealedAt) &&
		(filed == nil || !metav1.IsControlledBy(filed, job) || filed.Spec.SealedAt.Time.Equal(s.SealedAt))
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
	return r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(FieldOwner))
}

var _ reconcile.Reconciler = (*Reconciler)(nil)
