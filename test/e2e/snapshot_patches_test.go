package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// patchedAnnotation is a runtime patch that gives the JobSet an annotation.
func patchedAnnotation(key, value string) map[string]any {
	return map[string]any{
		"manager": "example.com/test",
		"trainingRuntimeSpec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{key: value}},
		}},
	}
}

// Trainer copies the annotations of runtime patches to the JobSet: those that tell the gate
// what a JobSet was built from cannot come that way.
func TestSnapshotCannotBeForgedByAPatch(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	refusal := func(index int, key string) string {
		return fmt.Sprintf("spec.runtimePatches[%d].trainingRuntimeSpec.template.metadata.annotations[%s]: Forbidden: annotations of lifecycle.trainer.kubeflow.org on a JobSet are Signalbox's own", index, key)
	}
	denied := func(what string, err error, want ...string) {
		t.Helper()
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want Invalid", what, err)
			return
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v\nwant in it: %s", what, err, text)
			}
		}
	}
	const revision, other = v1alpha1.AnnotationRuntimeRevision, v1alpha1.Group + "/anything"
	patches := func(patches ...any) change { return set(patches, "spec", "runtimePatches") }
	ours, foreign := patchedAnnotation(revision, "0123456789abcdef"), patchedAnnotation("example.com/team", "x")

	denied("created", s.cluster.Client.Create(s.ctx, s.trainJob("job", onRuntime("train"), patches(ours))), refusal(0, revision))
	both := patchedAnnotation(other, "x")
	s.must(unstructured.SetNestedField(both, "y", "trainingRuntimeSpec", "template", "metadata", "annotations", revision))
	foreignFirst := patchedAnnotation("example.com/team", "x")
	foreignFirst["manager"] = "example.com/first"
	denied("created with two", s.cluster.Client.Create(s.ctx, s.trainJob("job", onRuntime("train"), patches(foreignFirst, both))), refusal(1, other), refusal(1, revision))

	s.create("job", suspended(), onRuntime("train"), patches(foreign))
	for what, spec := range map[string]map[string]any{
		"updated while suspended": {"runtimePatches": []any{ours}},
		"resumed with it":         {"suspend": false, "runtimePatches": []any{ours}},
	} {
		patch := s.text(map[string]any{"spec": spec})
		denied(what, s.cluster.Client.Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.MergePatchType, []byte(patch))), refusal(0, revision))
	}
	s.resume("job")
	s.runs("job", oldImage)
	job := s.get("job")
	s.inOrder(job, s.sealed(job))
	annotations := s.jobSet().GetAnnotations()
	if annotations["example.com/team"] != "x" || annotations[revision] != job.Annotations[revision] {
		t.Errorf("the JobSet has the annotations %v, want that of the patch and the revision %s", annotations, job.Annotations[revision])
	}
	s.settled("job")
}

// In Kueue's queue a TrainJob follows its runtime. It is sealed when it is admitted, and runs
// on the runtime of then, in whatever order the webhooks are called.
func TestSnapshotInAQueue(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*scene){
		"after Kueue's webhook":             func(*scene) {},
		"before and after Kueue's webhook":  func(s *scene) { s.alsoBefore("kueue-mutating-webhook-configuration") },
		"before Kueue's webhook, reinvoked": func(s *scene) { s.alsoBefore("kueue-mutating-webhook-configuration"); s.notAfter() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.runtime("first", jobSetOf(oldImage))
			s.runtime("train", jobSetOf(oldImage))
			s.stampedRight("first")
			s.stampedRight("train")
			order(s)
			s.known("first")
			s.known("train")
			s.create("first", queued(), oneCPU(), onRuntime("first"))
			s.runs("first", oldImage)

			job := s.create("job", queued(), oneCPU(), onRuntime("train"))
			if job.Active() || job.Annotations[v1alpha1.AnnotationRuntimeSource] != "TrainingRuntime/train" || job.Annotations[v1alpha1.AnnotationRuntimeSnapshot] != "" {
				t.Fatalf("in the queue with suspend %v, annotations %v", job.Spec.Suspend, job.Annotations)
			}
			s.eventually("a suspended JobSet", func() (bool, string) { return s.jobSet() != nil, s.children("job") })
			s.edit("train", newImage)
			if s.filed("job") != nil {
				t.Error("filed in the queue")
			}
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("first")))
			s.comesToRun("job", newImage)
			job = s.get("job")
			sealed := s.sealed(job)
			if got := s.imageIn(sealed); got != newImage {
				t.Errorf("sealed on %s, want %s", got, newImage)
			}
			s.inOrder(job, sealed)
			if patches := s.patchesOfKueue("job"); patches != 1 {
				t.Errorf("Kueue's runtimePatches came %d times, want once", patches)
			}
			s.settled("job")
		})
	}
}
