package kubectl

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Content reads what one TrainJob runs on. What cannot be read is a note, and not known.
func (r *Reader) Content(ctx context.Context, job *trainer.TrainJob, notes *Notes) Content {
	var content Content
	if content.Sealed, content.SealErr = snapshot.Of(job); content.SealErr != nil {
		job = WithoutSeal(job)
	}
	facts := Facts{Job: job, Keeps: r.Keeps(ctx, notes)}
	facts.JobSet, facts.JobSetUnread = r.jobSetOf(ctx, job, notes)
	content.JobSet, content.JobSetUnread = facts.JobSet, facts.JobSetUnread
	content.LiveRuntime, content.Live = r.RuntimeOf(ctx, job, notes)
	facts.Live = content.Live
	have := map[From]*snapshot.Snapshot{FromSeal: content.Sealed}
	if content.Sealed == nil && job.ManagedByTrainer() {
		var filedUnread, keptUnread bool
		have[FromSnapshot], filedUnread = r.FiledFor(ctx, job, notes)
		if facts.Keeps == nil || *facts.Keeps {
			have[FromTrainer], keptUnread = r.KeptFor(ctx, job, notes)
		}
		facts.Filed, facts.Kept = revisionOf(have[FromSnapshot]), revisionOf(have[FromTrainer])
		facts.KeptUnread = filedUnread || keptUnread
	}
	content.Built = BuiltFrom(facts)
	content.Snapshot = have[content.From]
	if content.Snapshot == nil && content.LiveRuntime != nil && content.Revision == content.Live.Revision {
		// It was read a moment ago, so that it can be taken.
		content.Snapshot, _ = snapshot.Take(content.LiveRuntime.Object)
	}
	return content
}

// WithoutSeal returns the TrainJob as one that is not sealed, as everybody treats one whose seal
// cannot be read.
func WithoutSeal(job *trainer.TrainJob) *trainer.TrainJob {
	job = job.DeepCopy()
	delete(job.Annotations, v1alpha1.AnnotationRuntimeSnapshot)
	return job
}

func revisionOf(s *snapshot.Snapshot) string {
	if s == nil {
		return ""
	}
	return s.Revision
}

// RuntimeOf reads the runtime that a TrainJob refers to, as it is now; nil where there is none, or
// it could not be read.
func (r *Reader) RuntimeOf(ctx context.Context, job *trainer.TrainJob, notes *Notes) (*unstructured.Unstructured, Live) {
	ref := job.Spec.RuntimeRef
	return r.LiveRuntime(ctx, ref.GroupVersionKind().Kind, ref.Key(job.Namespace), notes)
}

// LiveRuntime reads a runtime as it is now; nil where there is none, or it could not be read.
func (r *Reader) LiveRuntime(ctx context.Context, kind string, key types.NamespacedName, notes *Notes) (*unstructured.Unstructured, Live) {
	runtime := trainer.NewRuntime(kind)
	found, unread := r.one(ctx, kind+" "+key.Name, key, runtime, notes)
	if !found {
		return nil, Live{Gone: !unread}
	}
	spec, _ := runtime.Object["spec"].(map[string]any)
	return runtime, Live{Revision: snapshot.Revision(spec)}
}

// jobSetOf reads the JobSet of the name of a TrainJob; nil where there is none. unread tells whether
// it could not be read.
func (r *Reader) jobSetOf(ctx context.Context, job *trainer.TrainJob, notes *Notes) (jobSet *trainer.JobSet, unread bool) {
	jobSet = &trainer.JobSet{}
	found, unread := r.one(ctx, "JobSet "+job.Name, client.ObjectKeyFromObject(job), jobSet, notes)
	if !found {
		return nil, unread
	}
	return jobSet, false
}

// FiledFor reads what was filed for a TrainJob as a TrainingRuntimeSnapshot; nil where there is none
// that is its own and of its runtime. unread tells whether it could not be read.
func (r *Reader) FiledFor(ctx context.Context, job *trainer.TrainJob, notes *Notes) (filed *snapshot.Snapshot, unread bool) {
	object := &v1alpha1.TrainingRuntimeSnapshot{}
	found, unread := r.one(ctx, v1alpha1.TrainingRuntimeSnapshotKind+" "+job.Name, client.ObjectKeyFromObject(job), object, notes)
	if !found || !metav1.IsControlledBy(object, job) {
		return nil, unread
	}
	if filed, err := snapshot.FromObject(object); err == nil && filed.IsOf(job) {
		return filed, false
	}
	return nil, false
}

// KeptFor reads what Trainer keeps for a TrainJob, as Kept does. unread tells whether it could not be read,
// which is a note.
func (r *Reader) KeptFor(ctx context.Context, job *trainer.TrainJob, notes *Notes) (kept *snapshot.Snapshot, unread bool) {
	read := r.Side(ctx, "ConfigMap "+trainer.SnapshotConfigMap(job.Name), func() (err error) {
		kept, err = r.Kept(ctx, job)
		return err
	}, notes)
	return kept, !read
}

// Kept reads what Trainer keeps for a TrainJob in its ConfigMap; nil where there is none that is its own and
// of its runtime.
func (r *Reader) Kept(ctx context.Context, job *trainer.TrainJob) (*snapshot.Snapshot, error) {
	config := &corev1.ConfigMap{}
	err := r.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: trainer.SnapshotConfigMap(job.Name)}, config)
	switch {
	case NotInstalled(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !metav1.IsControlledBy(config, job):
		return nil, nil
	}
	if kept, err := snapshot.FromYAML(config.Data[trainer.SnapshotKey]); err == nil && kept.IsOf(job) {
		return kept, nil
	}
	return nil, nil
}

// Keeps tells whether the installed Trainer keeps the runtimes of TrainJobs; nil where that is not
// known.
func (r *Reader) Keeps(ctx context.Context, notes *Notes) *bool {
	found, known := r.Capabilities(ctx, notes)
	if !known {
		return nil
	}
	return &found.RuntimeSnapshot
}

// one reads an object that may be missing. unread tells whether that could not be found out.
func (r *Reader) one(ctx context.Context, what string, key types.NamespacedName, object client.Object, notes *Notes) (found, unread bool) {
	missing := false
	read := r.Side(ctx, what, func() error {
		err := r.Get(ctx, key, object)
		if NotInstalled(err) {
			missing = true
			return nil
		}
		return err
	}, notes)
	return read && !missing, !read
}
