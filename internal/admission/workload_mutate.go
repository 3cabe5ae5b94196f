package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// WorkloadMutatePath is where the mutating webhook of Workloads is served.
const WorkloadMutatePath = "/mutate-workload"

// WorkloadMutator is the mutating webhook of the Workloads that Kueue creates as a dry run, to
// find out which pods a TrainJob is of: it computes them from the live runtime, and uses what
// comes back. Where the TrainJob lives on other content than the runtime has, they are replaced
// by those that run. A TrainJob that MultiKueue runs on another cluster has its snapshot there:
// here it stays what it was admitted for. A Workload that is stored is never changed.
//
// While it does not answer, Kueue behaves as on stock. Where it cannot tell, it refuses, so that
// Kueue does nothing with the TrainJob until it can.
type WorkloadMutator struct {
	// Live reads TrainJobs, JobSets and Workloads from the API server.
	Live     client.Reader
	Runtimes *snapshot.Resolver
	Clock    clock.PassiveClock
	// KeepsSnapshots tells whether the installed Trainer builds from a snapshot also after a
	// suspension.
	KeepsSnapshots func(ctx context.Context) bool
	// KueueUser is the user name of Kueue's controller; nobody else gets another answer.
	KueueUser string
	Metrics   *kueue.Metrics
}

// Handle answers one admission request: 400 for what it cannot decode, 500 when something
// cannot be read, 403 for the moments in which nothing tells what will run. Kueue then does
// nothing with the TrainJob and asks again.
func (m *WorkloadMutator) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || !ptr.Deref(req.DryRun, false) || m.KueueUser == "" || req.UserInfo.Username != m.KueueUser {
		return admission.Allowed("")
	}
	asked := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.Object.Raw, &asked.Object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode Workload: %w", err))
	}
	// Kueue gives what it asks with the name of the TrainJob.
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	if err := m.get(ctx, types.NamespacedName{Namespace: req.Namespace, Name: asked.GetName()}, stored); err != nil || stored.GetUID() == "" {
		return answered(err)
	}
	job := &trainer.TrainJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, job); err != nil {
		return answered(fmt.Errorf("read TrainJob: %w", err))
	}
	if ptr.Deref(job.Spec.ManagedBy, "") == kueue.MultiKueue {
		return m.elsewhere(ctx, req, job, asked)
	}
	if !job.ManagedByTrainer() || !job.Active() && !job.Terminal() && !m.KeepsSnapshots(ctx) {
		return admission.Allowed("")
	}
	lives, drifted, err := m.drift(ctx, job)
	if err != nil || lives == nil {
		return answered(err)
	}
	pods := kueue.Pods{Template: lives.JobSetSpec(), Drifted: drifted, TrainJob: stored.Object}
	if err := m.look(ctx, req, job, lives, &pods); err != nil {
		return answered(err)
	}
	have := kueue.PodSets(asked.Object)
	want, source, err := kueue.Show(have, pods)
	switch {
	case err != nil:
		return answered(err)
	case source == "" && (!drifted || job.Terminal()):
		// Kueue stops nothing that is finished.
		return admission.Allowed("")
	case source == "":
		m.Metrics.Show(kueue.Refused)
		return admission.Denied(fmt.Sprintf("TrainJob %s runs on revision %s of %s, of which there is no JobSet yet", job.Name, lives.Revision, snapshot.Name(lives.Source)))
	}
	return m.show(have, want, source)
}

// drift returns the snapshot that the TrainJob lives on when Kueue may compute something else
// from its runtime, and whether the runtime is other than that now; nil when Kueue's own view
// is right.
func (m *WorkloadMutator) drift(ctx context.Context, job *trainer.TrainJob) (lives *snapshot.Snapshot, drifted bool, err error) {
	revision := job.Annotations[v1alpha1.AnnotationRuntimeRevision]
	if revision == "" {
		if lives, err = m.Runtimes.Filed(ctx, job); err != nil || lives == nil {
			return nil, false, err
		}
		revision = lives.Revision
	}
	now, written, err := m.Runtimes.Revision(ctx, job.Namespace, job.Spec.RuntimeRef)
	if err != nil {
		// Without the runtime, Kueue does not come this far.
		return nil, false, client.IgnoreNotFound(err)
	}
	drifted = now != revision
	if !drifted && m.Clock.Since(written) > kueue.Settle {
		return nil, false, nil
	}
	if lives == nil {
		if lives, err = snapshot.Of(job); err != nil {
			log.FromContext(ctx).Error(err, "the seal of a TrainJob cannot be read; Kueue sees its runtime", "trainJob", client.ObjectKeyFromObject(job))
			return nil, false, nil
		}
	}
	return lives, drifted, nil
}

// look finds the JobSet that was built from what the TrainJob lives on, and the Workload that
// Kueue has for it.
func (m *WorkloadMutator) look(ctx context.Context, req admission.Request, job *trainer.TrainJob, lives *snapshot.Snapshot, pods *kueue.Pods) error {
	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	if err := m.get(ctx, client.ObjectKeyFromObject(job), jobSet); err != nil {
		return err
	}
	content := kueue.ContentOf(jobSet, job, lives.Revision, job.Annotations[v1alpha1.AnnotationRuntimeSnapshot] != "", m.KeepsSnapshots(ctx))
	if content == kueue.Snapshot {
		pods.JobSet = jobSet.Object
	}
	workload, err := m.workload(ctx, req, job)
	if err != nil {
		return err
	}
	// Without a JobSet to compare it with, a Workload may be of other pods than will run: a
	// TrainJob that is held back is not started on it, while its JobSet is built anew. One that
	// is evicted is not started.
	if workload != nil && (content != kueue.Other || job.Active() || job.Terminal() || kueue.Is(workload, kueue.Evicted)) {
		pods.Workload, pods.HasQuota = kueue.PodSets(workload.Object), kueue.Is(workload, kueue.QuotaReserved)
	}
	return nil
}

// elsewhere answers for a TrainJob that runs on another cluster, on a snapshot that is there:
// what it was admitted for stands, whatever becomes of the runtime here.
func (m *WorkloadMutator) elsewhere(ctx context.Context, req admission.Request, job *trainer.TrainJob, asked *unstructured.Unstructured) admission.Response {
	workload, err := m.workload(ctx, req, job)
	if err != nil || workload == nil || !kueue.Is(workload, kueue.Admitted) {
		return answered(err)
	}
	return m.show(kueue.PodSets(asked.Object), kueue.PodSets(workload.Object), kueue.FromWorkload)
}

// show answers with other pod sets than were asked with, and counts that.
func (m *WorkloadMutator) show(have, want []kueue.Object, source string) admission.Response {
	patch := kueue.Patch(have, want)
	if len(patch) > 0 {
		m.Metrics.Show(source)
	}
	return admission.Patched("", patch...)
}

// workload returns the Workload that Kueue has for the TrainJob; nil when there is none.
func (m *WorkloadMutator) workload(ctx context.Context, req admission.Request, job *trainer.TrainJob) (*unstructured.Unstructured, error) {
	workloads := &unstructured.UnstructuredList{}
	workloads.SetGroupVersionKind(schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind + "List"})
	if err := m.Live.List(ctx, workloads, client.InNamespace(job.Namespace), client.MatchingLabels{kueue.LabelJobUID: string(job.UID)}); err != nil {
		return nil, fmt.Errorf("list Workloads: %w", err)
	}
	return kueue.Newest(workloads.Items, job), nil
}

// get reads an object, which stays empty when there is none.
func (m *WorkloadMutator) get(ctx context.Context, key types.NamespacedName, object *unstructured.Unstructured) error {
	kind := object.GetKind()
	if err := m.Live.Get(ctx, key, object); err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return fmt.Errorf("read %s: %w", kind, err)
	}
	return nil
}

// answered lets Kueue's own view pass when there is no error.
func answered(err error) admission.Response {
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Allowed("")
}
