package multikueue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// Kueue compares TrainJobs and Workloads with what they were, and MultiKueue those of two
// clusters. Signalbox changes nothing of a TrainJob but its own annotations: its webhooks give
// what the API server gives without them.
func TestKueueMultiTrainJobsStayComparable(t *testing.T) {
	t.Parallel()
	with, without := newScene(t), newSceneIn(t, onNeither)
	userPatch := set([]any{map[string]any{
		"manager": "example.com/user",
		"trainingRuntimeSpec": map[string]any{"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{map[string]any{
			"name": "node", "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"nodeSelector": map[string]any{"pool": "x"},
			}}}},
		}}}}},
	}}, "spec", "runtimePatches")
	shapes := map[string][]change{
		"of the queue":                {deadline(3600)},
		"of the queue, of MultiKueue": {managed(), deadlineAnnotation(3600)},
		"of the queue, with patches":  {userPatch, annotated("example.com/team", "x")},
		"active":                      {unqueued(), deadlineAnnotation(3600)},
		"active, with patches":        {unqueued(), userPatch, deadline(3600)},
		"active, of MultiKueue":       {unqueued(), managed(), deadline(3600)},
		"suspended, of MultiKueue":    {unqueued(), managed(), set(true, "spec", "suspend")},
		"suspended":                   {unqueued(), set(true, "spec", "suspend"), userPatch},
		"a copy, as MultiKueue sends it": {
			set(true, "spec", "suspend"),
			set("multikueue", "metadata", "labels", "kueue.x-k8s.io/multikueue-origin"),
			annotated("kueue.x-k8s.io/prebuilt-workload-name", "none"),
		},
	}
	for name, pair := range map[string][2]*side{"manager": {without.manager, with.manager}, "worker": {without.worker, with.worker}} {
		t.Run(name, func(t *testing.T) {
			for name, changes := range shapes {
				t.Run(name, func(t *testing.T) {
					var got [2]*unstructured.Unstructured
					for i, side := range pair {
						got[i] = side.trainJob("job", changes...)
						side.must(side.cluster.Client.Create(side.ctx, got[i], client.DryRunAll))
					}
					sameButOurs(t, got[0], got[1])
				})
			}
			t.Run("a resume", func(t *testing.T) {
				var got [2]*unstructured.Unstructured
				for i, side := range pair {
					side.create("job", unqueued(), set(true, "spec", "suspend"), deadline(3600), userPatch)
					got[i] = side.trainJob("job")
					side.must(side.mergePatch(got[i], `{"spec":{"suspend":false}}`, client.DryRunAll))
				}
				sameButOurs(t, got[0], got[1])
				if stamp := got[1].GetAnnotations()[v1alpha1.AnnotationResumedAt]; stamp == "" {
					t.Error("Signalbox was not asked")
				}
			})
		})
	}
}

// sameButOurs checks that two TrainJobs, the second with Signalbox, are the same but for where
// and when they are and for the annotations of Signalbox.
func sameButOurs(t *testing.T, without, with *unstructured.Unstructured) {
	t.Helper()
	type content struct {
		Spec, Status        any
		Labels, Annotations map[string]string
		Finalizers          []string
	}
	view := func(job *unstructured.Unstructured) content {
		spec, _, err := unstructured.NestedMap(job.Object, "spec")
		if err != nil {
			t.Fatal(err)
		}
		patches, _ := spec["runtimePatches"].([]any)
		for _, patch := range patches {
			delete(patch.(map[string]any), "time") // Trainer's, when it saw the patch
		}
		annotations := map[string]string{}
		maps.Copy(annotations, job.GetAnnotations())
		maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(v1alpha1.ProtectedAnnotations(), key) })
		return content{spec, job.Object["status"], job.GetLabels(), annotations, job.GetFinalizers()}
	}
	if diff := cmp.Diff(view(without), view(with)); diff != "" {
		t.Errorf("without and with Signalbox:\n%s", diff)
	}
	if len(protected(without.GetAnnotations())) > 0 {
		t.Errorf("Signalbox is where it should not be: %v", without.GetAnnotations())
	}
}

// The Workloads of the manager and of the worker stay the same to the end, and nobody but Kueue
// writes them.
func TestKueueMultiWorkloadsStayComparable(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m, w := s.manager, s.worker
	m.create("job", deadline(3600))
	w.running("job")
	w.edit(newImage)
	w.knows("job", newImage)
	w.looksAgain("job")
	m.looksAgain("job")
	onManager, onWorker := m.workload("job"), w.workload("job")
	if onManager == nil || onWorker == nil {
		t.Fatalf("Workloads: %v, %v", onManager, onWorker)
	}
	if diff := cmp.Diff(onManager.Object["spec"], onWorker.Object["spec"]); diff != "" || len(podSets(onManager)) != 1 {
		t.Errorf("the manager's Workload and the worker's:\n%s", diff)
	}
	for _, workload := range []*unstructured.Unstructured{onManager, onWorker} {
		if conditionOf(workload, "Admitted").Status != metav1.ConditionTrue || conditionOf(workload, "Finished").Status != "" {
			t.Errorf("a Workload is not admitted, or finished: %v", workload.Object["status"])
		}
		for _, manager := range managers(workload) {
			if strings.Contains(manager, v1alpha1.FieldManager) {
				t.Errorf("Signalbox has written a Workload: %v", managers(workload))
			}
		}
		for key := range workload.GetAnnotations() {
			if strings.HasPrefix(key, v1alpha1.Group) {
				t.Errorf("a Workload has annotation %s", key)
			}
		}
	}
	if before, is := specOf(m, "job"), specOf(w, "job"); !cmp.Equal(before, is) {
		t.Errorf("the TrainJob and its copy:\n%s", cmp.Diff(before, is))
	}
}

// specOf returns the spec of a TrainJob without what Kueue itself has as another on each
// cluster.
func specOf(s *side, name string) map[string]any {
	s.Helper()
	spec, _, err := unstructured.NestedMap(s.stored(name).Object, "spec")
	s.must(err)
	delete(spec, "managedBy")
	delete(spec, "runtimePatches")
	return spec
}
