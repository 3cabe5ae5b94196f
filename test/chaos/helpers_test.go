package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// patience is how long a step may take that is not about time. It is long because the machine
// may be busy, and since every watch of Kubernetes's own parts waits up to a minute before it
// asks anew for what an API server that was away has; a test that passes never waits for it.
const patience = 3 * time.Minute

// newNamespace creates a namespace of its own for a test and returns its name.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-"}}
	if err := shared.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// eventually waits until check is true; it returns what there is, for the failure's text.
func eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	var seen string
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, seen = check(); ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s did not come within %s; instead: %s", what, patience, seen)
		}
	}
}

// pause waits, and returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// manifest makes a TrainJob with one node on a built-in runtime. Its limit is in the spec,
// or in the annotation that stock Trainer does not know: whatever ends it then is Signalbox.
func manifest(namespace, name string, seconds int, bySpec, suspend bool) *unstructured.Unstructured {
	spec := map[string]any{
		"suspend":    suspend,
		"runtimeRef": map[string]any{"name": "torch-distributed"},
		"trainer":    map[string]any{"numNodes": int64(1)},
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(namespace)
	job.SetName(name)
	if bySpec {
		spec["activeDeadlineSeconds"] = int64(seconds)
	} else {
		job.SetAnnotations(map[string]string{v1alpha1.AnnotationActiveDeadlineSeconds: fmt.Sprint(seconds)})
	}
	return job
}

// reference names a stored TrainJob for a read or a patch.
func reference(namespace, name string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(namespace)
	job.SetName(name)
	return job
}

// view is the part of a TrainJob that the rules read.
func view(job *unstructured.Unstructured) (*trainer.TrainJob, error) {
	view := &trainer.TrainJob{}
	return view, runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, view)
}

// read reads a TrainJob.
func read(ctx context.Context, namespace, name string) (*trainer.TrainJob, error) {
	job := reference(namespace, name)
	if err := shared.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		return nil, err
	}
	return view(job)
}

// setSuspend suspends or resumes a TrainJob and returns it as stored then.
func setSuspend(ctx context.Context, namespace, name string, suspend bool) (*trainer.TrainJob, error) {
	job := reference(namespace, name)
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	if err := shared.Client.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, err
	}
	return view(job)
}

// stampOf returns the start of the TrainJob's active period.
func stampOf(job *trainer.TrainJob) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
}

// children lists what is there of the TrainJobs of a namespace, JobSets, Jobs and pods, by
// the name of the TrainJob.
func children(ctx context.Context, namespace string) (map[string][]client.Object, error) {
	found := map[string][]client.Object{}
	jobSets := &metav1.PartialObjectMetadataList{}
	jobSets.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	var jobs batchv1.JobList
	var pods corev1.PodList
	// In the order of ownership: what is made between two lists is seen in the second.
	for _, list := range []client.ObjectList{jobSets, &jobs, &pods} {
		if err := shared.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	for i := range jobSets.Items {
		found[jobSets.Items[i].Name] = append(found[jobSets.Items[i].Name], &jobSets.Items[i])
	}
	for i := range jobs.Items {
		owner := jobs.Items[i].Labels[trainer.LabelJobSetName]
		found[owner] = append(found[owner], &jobs.Items[i])
	}
	for i := range pods.Items {
		owner := pods.Items[i].Labels[trainer.LabelJobSetName]
		found[owner] = append(found[owner], &pods.Items[i])
	}
	return found, nil
}

// describe names objects for a failure's text.
func describe(objects []client.Object) string {
	var names []string
	for _, object := range objects {
		name := "JobSet " + object.GetName()
		switch o := object.(type) {
		case *corev1.Pod:
			name = fmt.Sprintf("Pod %s %s", o.Name, o.Status.Phase)
		case *batchv1.Job:
			name = "Job " + o.Name
		}
		if at := object.GetDeletionTimestamp(); at != nil {
			name += fmt.Sprintf(" (deleted at %s, finalizers %v)", at.UTC().Format(time.TimeOnly), object.GetFinalizers())
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
