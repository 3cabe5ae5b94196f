package snapshot

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// filedOf reads the TrainingRuntimeSnapshot of the name of the TrainJob; nil for none.
func (r *Reconciler) filedOf(ctx context.Context, job *trainer.TrainJob) (*v1alpha1.TrainingRuntimeSnapshot, error) {
	if _, found := r.filed.of(job); !found {
		return nil, nil
	}
	filed := &v1alpha1.TrainingRuntimeSnapshot{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(job), filed)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read TrainingRuntimeSnapshot: %w", err)
	}
	return filed, nil
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
			return r.annotate(ctx, job, filed, s)
		}
		// Of an earlier TrainJob of that name, or not what it should be: its spec cannot be
		// corrected.
		if err := r.remove(ctx, job, filed, v1alpha1.TrainingRuntimeSnapshotKind); err != nil {
			return err
		}
	} else if err := r.confirm(ctx, job); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, want, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("create TrainingRuntimeSnapshot: %w", err)
	}
	r.Metrics.wrote(v1alpha1.TrainingRuntimeSnapshotKind, "create")
	log.FromContext(ctx).Info("filed the runtime of the TrainJob", "runtime", Name(s.Source), "revision", s.Revision)
	return nil
}

// annotate puts back the annotations that say where a TrainingRuntimeSnapshot came from.
func (r *Reconciler) annotate(ctx context.Context, job *trainer.TrainJob, filed *v1alpha1.TrainingRuntimeSnapshot, s *Snapshot) error {
	if annotated(filed, s) {
		return nil
	}
	if err := r.confirm(ctx, job); err != nil {
		return err
	}
	err := r.patch(ctx, filed, map[string]any{"metadata": map[string]any{"resourceVersion": filed.ResourceVersion, "annotations": sourceAnnotations(s)}})
	if err != nil {
		return fmt.Errorf("annotate TrainingRuntimeSnapshot: %w", err)
	}
	r.Metrics.wrote(v1alpha1.TrainingRuntimeSnapshotKind, "patch")
	return nil
}

// annotated tells whether the annotations of the TrainingRuntimeSnapshot say where it came from.
func annotated(filed *v1alpha1.TrainingRuntimeSnapshot, s *Snapshot) bool {
	for key, value := range sourceAnnotations(s) {
		if filed.Annotations[key] != value {
			return false
		}
	}
	return true
}
