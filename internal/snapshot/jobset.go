package snapshot

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// jobSet deletes the suspended JobSet of a sealed TrainJob, when it was built from other content
// than what is sealed: JobSet does not let it be changed, Trainer builds it anew. The
// preconditions let nothing be deleted that meanwhile runs. The JobSet of a TrainJob that may
// have run before holds what is done already, and most likely lacks nothing but the revision:
// Trainer has its turn to write it, once it has seen that the TrainJob is active. It returns how
// long to wait for that.
func (r *Reconciler) jobSet(ctx context.Context, job *trainer.TrainJob, s *Snapshot) (time.Duration, error) {
	if _, sealed := job.Annotations[v1alpha1.AnnotationRuntimeSnapshot]; !sealed {
		return 0, nil
	}
	jobSet := &trainer.JobSet{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(job), jobSet); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(jobSet, job) || !jobSet.Suspended() || !jobSet.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	revision := jobSet.Annotations[v1alpha1.AnnotationRuntimeRevision]
	right := revision == s.Revision
	if !job.Active() {
		// It was sealed, and suspended before Trainer built it anew: Kueue must see what will
		// run. What one of another revision has done all the same, while no gate was there, waits
		// for the next start.
		if right || revision == "" || jobSet.Progressed() {
			return 0, nil
		}
		return 0, r.remove(ctx, job, jobSet, trainer.JobSetGroupVersionKind.Kind)
	}
	if !right {
		first, err := r.firstStart(ctx, job, s)
		if err != nil {
			return 0, err
		}
		if first {
			return 0, r.remove(ctx, job, jobSet, trainer.JobSetGroupVersionKind.Kind)
		}
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
func (r *Reconciler) firstStart(ctx context.Context, job *trainer.TrainJob, s *Snapshot) (bool, error) {
	at, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
	if err != nil || !at.Truncate(time.Second).Equal(s.SealedAt) {
		return false, nil
	}
	filed, err := r.filedOf(ctx, job)
	return err == nil && (filed == nil || !metav1.IsControlledBy(filed, job) || filed.Spec.SealedAt.Time.Equal(s.SealedAt)), err
}
