package diff

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// gathered is what was read for the TrainJobs of one runtime, by the name of the TrainJob.
type gathered struct {
	jobs         map[types.NamespacedName]*trainer.TrainJob
	jobSets      map[types.NamespacedName]*trainer.JobSet
	jobSetUnread bool
	filed        map[types.NamespacedName]string
	filedUnread  bool
	// closed are the namespaces whose ConfigMaps may not be read.
	closed map[string]bool
}

// gather reads the unfinished TrainJobs that refer to the runtime, and what tells what they run on:
// in chunks, one kind after the other, whatever their number. Only what Trainer keeps of those that
// Signalbox knows nothing of is read one by one.
func gather(ctx context.Context, o *kubectl.Options, reader *kubectl.Reader, of target, notes *kubectl.Notes) ([]useReport, error) {
	g := gathered{
		jobs:    map[types.NamespacedName]*trainer.TrainJob{},
		jobSets: map[types.NamespacedName]*trainer.JobSet{},
		filed:   map[types.NamespacedName]string{},
		closed:  map[string]bool{},
	}
	namespace := of.key.Namespace
	if namespace == "" {
		namespace = o.Namespace
	}
	if err := g.readJobs(ctx, o, reader, namespace, of, notes); err != nil || len(g.jobs) == 0 {
		return nil, err
	}
	keeps := reader.Keeps(ctx, notes)
	g.jobSetUnread = !g.readJobSets(ctx, reader, namespace, notes)
	g.filedUnread = g.anyUnsealed() && !g.readFiled(ctx, reader, namespace, notes)
	var uses []useReport
	for key, job := range g.jobs {
		facts := kubectl.Facts{
			Job: job, Keeps: keeps, JobSet: g.jobSets[key], JobSetUnread: g.jobSetUnread,
			Filed: g.filed[key], Live: of.live,
		}
		if kubectl.SealedRevision(job) == "" {
			facts.KeptUnread = g.filedUnread
			if facts.Filed == "" && (keeps == nil || *keeps) && !kubectl.Follows(job) && job.ManagedByTrainer() {
				var unread bool
				facts.Kept, unread = g.readKept(ctx, reader, job, notes)
				facts.KeptUnread = facts.KeptUnread || unread
			}
		}
		uses = append(uses, useOf(job, kubectl.BuiltFrom(facts), of.live))
	}
	return uses, nil
}

// readJobs reads the TrainJobs. What cannot be read of them is the end of the command.
func (g *gathered) readJobs(ctx context.Context, o *kubectl.Options, reader *kubectl.Reader, namespace string, of target, notes *kubectl.Notes) error {
	again := func() { clear(g.jobs) }
	_, err := reader.EachOf(ctx, trainer.GroupVersion.WithKind(trainer.TrainJobKind), namespace, o.Selectors(), again, func(object *unstructured.Unstructured) error {
		job := &trainer.TrainJob{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job); err != nil {
			return fmt.Errorf("read TrainJob %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
		key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
		ref := job.Spec.RuntimeRef
		if job.Terminal() || ref.GroupVersionKind().Group != trainer.GroupVersion.Group || ref.GroupVersionKind().Kind != of.kind || ref.Key(job.Namespace) != of.key {
			return nil
		}
		if _, err := snapshot.Of(job); err != nil {
			notes.Add(fmt.Sprintf("what is sealed into TrainJob %s cannot be read, so that it counts for nothing: %v", key, err))
			job = kubectl.WithoutSeal(job)
		}
		if kubectl.SealedRevision(job) != "" {
			// That it is sealed is all that counts from here on.
			job.Annotations[v1alpha1.AnnotationRuntimeSnapshot] = "sealed"
		}
		job.ManagedFields = nil
		g.jobs[key] = job
		return nil
	})
	return kubectl.WithoutTrainer(err)
}

// readJobSets reads the JobSets of the TrainJobs, and tells whether it could.
func (g *gathered) readJobSets(ctx context.Context, reader *kubectl.Reader, namespace string, notes *kubectl.Notes) bool {
	return reader.Side(ctx, "JobSets", func() error {
		_, err := reader.Each(ctx, trainer.JobSetGroupVersionKind, namespace, kubectl.Selectors{}, func(object *unstructured.Unstructured) error {
			key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
			job := g.jobs[key]
			if job == nil || !metav1.IsControlledBy(object, job) {
				return nil
			}
			jobSet := &trainer.JobSet{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, jobSet); err != nil {
				return err
			}
			jobSet.ManagedFields = nil
			g.jobSets[key] = jobSet
			return nil
		})
		if kubectl.NotInstalled(err) {
			return nil
		}
		return err
	}, notes)
}

// readKept reads the revision of what Trainer keeps for a TrainJob; "" where there is none. Where that may
// not be read, no more is asked for in that namespace.
func (g *gathered) readKept(ctx context.Context, reader *kubectl.Reader, job *trainer.TrainJob, notes *kubectl.Notes) (revision string, unread bool) {
	if g.closed[job.Namespace] {
		return "", true
	}
	kept, err := reader.Kept(ctx, job)
	switch {
	case err != nil:
		g.closed[job.Namespace] = apierrors.IsForbidden(err)
		if ctx.Err() == nil {
			notes.Add(kubectl.Why("the ConfigMaps in which Trainer keeps runtimes", err))
		}
		return "", true
	case kept == nil:
		return "", false
	}
	return kept.Revision, false
}

// anyUnsealed tells whether one of the TrainJobs is not sealed.
func (g *gathered) anyUnsealed() bool {
	for _, job := range g.jobs {
		if kubectl.SealedRevision(job) == "" {
			return true
		}
	}
	return false
}

// readFiled reads what is filed for TrainJobs that are not sealed, and tells whether it could.
func (g *gathered) readFiled(ctx context.Context, reader *kubectl.Reader, namespace string, notes *kubectl.Notes) bool {
	return reader.Side(ctx, "TrainingRuntimeSnapshots", func() error {
		gvk := v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind)
		_, err := reader.Each(ctx, gvk, namespace, kubectl.Selectors{}, func(object *unstructured.Unstructured) error {
			key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
			job := g.jobs[key]
			if job == nil || kubectl.SealedRevision(job) != "" || !metav1.IsControlledBy(object, job) {
				return nil
			}
			filed := &v1alpha1.TrainingRuntimeSnapshot{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, filed); err != nil {
				return err
			}
			if s, err := snapshot.FromObject(filed); err == nil && s.IsOf(job) {
				g.filed[key] = s.Revision
			}
			return nil
		})
		if kubectl.NotInstalled(err) {
			// Without Signalbox nothing is filed.
			return nil
		}
		return err
	}, notes)
}
