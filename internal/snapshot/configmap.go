package snapshot

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// lookForRoom is how often the reconciler looks whether a ConfigMap that is somebody else's is
// still in the place of Trainer's, of which it gets no events.
const lookForRoom = 15 * time.Second

// firstLook is how soon the reconciler looks again for Trainer's ConfigMap; each further look
// comes after twice the time.
const firstLook = 100 * time.Millisecond

// configMap makes the ConfigMap that Trainer reads hold the snapshot. It returns how long to
// wait for Trainer to write it first; 0 when nothing is left to do.
func (r *Reconciler) configMap(ctx context.Context, job *trainer.TrainJob, s *Snapshot) (time.Duration, error) {
	if is, _ := r.configMaps.of(job); is == settledNote(job, s) {
		return 0, nil
	}
	config := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, configMapOf(job), config)
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
	if is, found := r.configMaps.of(job); !found || is.owner == hash(string(job.UID)) {
		return nil
	}
	config := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, configMapOf(job), config); err != nil {
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
	if err := r.Client.Create(ctx, config, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
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
