package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// reading reads what the cluster stores about one TrainJob. Only where the TrainJob itself cannot be
// read that is an error; all else is a note.
type reading struct {
	*kubectl.Reader
	notes *kubectl.Notes
	facts Facts
}

// read reads the TrainJob of this name in the namespace of the options, and what there is about it.
func read(ctx context.Context, o *kubectl.Options, reader *kubectl.Reader, name string, notes *kubectl.Notes) (Facts, error) {
	r := &reading{Reader: reader, notes: notes}
	if err := r.job(ctx, types.NamespacedName{Namespace: o.Namespace, Name: name}); err != nil {
		return Facts{}, err
	}
	job := r.facts.Job
	r.facts.Content = reader.Content(ctx, job, notes)
	r.facts.JobSetUnread = r.facts.Content.JobSetUnread
	if known, found := reader.Capabilities(ctx, notes); found {
		r.facts.Trainer = &known
	}
	namespace := r.namespace(ctx)
	r.facts.Signalbox = reader.Installed(ctx, notes)
	if of := r.facts.Signalbox.Mutating; of != nil {
		r.facts.LeavesAlone = leavesAlone(of, namespace)
	}
	r.kueue(ctx)
	r.pods(ctx)
	r.events(ctx)
	r.rules(ctx, namespace)
	// What was interrupted has not been read.
	return r.facts, ctx.Err()
}

// job reads the TrainJob as it is stored, to know its size.
func (r *reading) job(ctx context.Context, key types.NamespacedName) error {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	if err := r.Get(ctx, key, stored); err != nil {
		return kubectl.WithoutTrainer(err)
	}
	raw, err := json.Marshal(stored.Object)
	if err == nil {
		r.facts.Size, r.facts.Job = len(raw), &trainer.TrainJob{}
		err = json.Unmarshal(raw, r.facts.Job)
	}
	if err != nil {
		return fmt.Errorf("read TrainJob %s: %w", key, err)
	}
	return nil
}

// each lists the objects of a kind in the namespace of the TrainJob, each once. It tells whether it
// could.
func (r *reading) each(ctx context.Context, gvk schema.GroupVersionKind, what string, selectors kubectl.Selectors) ([]unstructured.Unstructured, bool) {
	found := map[types.UID]unstructured.Unstructured{}
	read := r.Side(ctx, what, func() error {
		_, err := r.EachOf(ctx, gvk, r.facts.Job.Namespace, selectors, func() { clear(found) }, func(object *unstructured.Unstructured) error {
			found[object.GetUID()] = *object
			return nil
		})
		return err
	}, r.notes)
	return slices.Collect(maps.Values(found)), read
}

// kueue reads the Workload of the TrainJob, and its place where it waits.
func (r *reading) kueue(ctx context.Context) {
	job := r.facts.Job
	gvk, installed := r.Workloads(ctx, r.notes)
	if !installed {
		r.facts.Kueue.Installed = r.without(job)
		return
	}
	r.facts.Kueue.Installed = &installed
	of := kubectl.Selectors{Label: kueue.LabelJobUID + "=" + string(job.UID)}
	workloads, read := r.each(ctx, gvk, "Workloads of Kueue", of)
	r.facts.Kueue.Unread = !read
	workload := kueue.Newest(workloads, job)
	r.facts.Kueue.Workload = workload
	if workload == nil || job.Active() || !kueue.Pending(workload) {
		return
	}
	if all, read := r.each(ctx, gvk, "Workloads of Kueue", kubectl.Selectors{}); read {
		r.facts.Kueue.Position = kueue.Positions(all)[workload.GetUID()]
	}
}

// without tells that Kueue is not installed, where that matters to the TrainJob; nil where it cannot be
// told.
func (r *reading) without(job *trainer.TrainJob) *bool {
	if kueue.QueueOf(nil, job) == "" {
		return nil
	}
	groups, err := r.Discovery.ServerGroups()
	if err != nil || slices.ContainsFunc(groups.Groups, func(group metav1.APIGroup) bool { return group.Name == kueue.Group }) {
		return nil
	}
	return new(bool)
}

// pods reads the pods of the TrainJob, and its Jobs where they alone can tell whether one was ready.
func (r *reading) pods(ctx context.Context) {
	jobSet := r.facts.jobSet()
	if jobSet == nil || jobSet.Suspended() {
		return
	}
	of := kubectl.Selectors{Label: trainer.LabelJobSetName + "=" + r.facts.Job.Name}
	pods, read := r.each(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", of)
	for i := range pods {
		var pod corev1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(pods[i].Object, &pod) == nil {
			r.facts.Pods = append(r.facts.Pods, pod)
		}
	}
	r.facts.PodsUnread = !read
	if !read || r.facts.Job.Terminal() || !deadline.NeverReady(jobSet, r.facts.Pods, nil) {
		return
	}
	jobs, read := r.each(ctx, batchv1.SchemeGroupVersion.WithKind("Job"), "Jobs", of)
	for i := range jobs {
		var job batchv1.Job
		if runtime.DefaultUnstructuredConverter.FromUnstructured(jobs[i].Object, &job) == nil {
			r.facts.Jobs = append(r.facts.Jobs, job)
		}
	}
	r.facts.PodsUnread = !read
}

// events reads the events about the TrainJob and its JobSet.
func (r *reading) events(ctx context.Context) {
	of := kubectl.Selectors{Field: "involvedObject.name=" + r.facts.Job.Name}
	events, _ := r.each(ctx, corev1.SchemeGroupVersion.WithKind("Event"), "events", of)
	uids := []types.UID{r.facts.Job.UID}
	if jobSet := r.facts.jobSet(); jobSet != nil {
		uids = append(uids, jobSet.UID)
	}
	for i := range events {
		var event corev1.Event
		if runtime.DefaultUnstructuredConverter.FromUnstructured(events[i].Object, &event) != nil {
			continue
		}
		if slices.Contains(uids, event.InvolvedObject.UID) {
			r.facts.Events = append(r.facts.Events, event)
		}
	}
}

// namespace reads the labels of the namespace of the TrainJob; nil where it cannot be read.
func (r *reading) namespace(ctx context.Context) *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	read := r.Side(ctx, "namespace "+r.facts.Job.Namespace, func() error {
		return r.Get(ctx, client.ObjectKey{Name: r.facts.Job.Namespace}, namespace)
	}, r.notes)
	if !read {
		return nil
	}
	return namespace
}
