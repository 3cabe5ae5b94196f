package e2e_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// admittedPatch is what Kueue puts in its runtimePatches on admission (JSON).
const admittedPatch = `[{"name":"node","template":{"spec":{"template":{
	"metadata":{"labels":{"kueue.x-k8s.io/podset":"node"}},"spec":{}}}}}]`

// Kueue resumes a TrainJob by two writes: first the patches for the flavor it got, then
// suspend. A write that does not resume is none of our business; the one that does stamps and
// seals, once.
func TestKueueResumesInTwoWrites(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	history := s.follow("job")
	s.create("job", queued(), oneCPU(), deadlineAnnotation(3600))
	s.running("job")
	s.workloadBecomes("job", podsReady, "True/Started")
	history.periods(s.stamp(s.get("job")))
	// The history checked that there is neither stamp nor seal while suspended.
	var writes []string
	patched := false
	for _, version := range history.all() {
		now := len(s.replicatedJobsOfKueue(version)) > 0
		switch active := s.view(version).Active(); {
		case now != patched && active:
			writes = append(writes, "patches and suspend")
		case now != patched:
			writes = append(writes, "patches")
		case active && len(writes) == 1:
			writes = append(writes, "suspend")
		}
		patched = now
	}
	if len(writes) != 2 || writes[0] != "patches" || writes[1] != "suspend" {
		t.Errorf("Kueue wrote %q: it resumes in another way now", writes)
	}
}

// The same by hand, as Kueue does it now and as one that needs but one write would. The stamp
// is of the write that resumes.
func TestKueueResumesByHand(t *testing.T) {
	t.Parallel()
	const (
		patches = `{"op":"replace","path":"/spec/runtimePatches/0/trainingRuntimeSpec/template/spec",
			"value":{"replicatedJobs":` + admittedPatch + `}}`
		suspend = `{"op":"replace","path":"/spec/suspend","value":false}`
	)
	for name, writes := range map[string][]string{
		"in two writes":               {"[" + patches + "]", "[" + suspend + "]"},
		"in one write":                {"[" + patches + "," + suspend + "]"},
		"in one write, suspend first": {"[" + suspend + "," + patches + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			history := s.follow("job")
			// Without a queue Kueue puts its entry in and leaves the rest to us.
			s.create("job", suspended(), deadlineAnnotation(3600))
			s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
			var before, after time.Time
			for _, write := range writes {
				has := s.get("job").Annotations
				if has[v1alpha1.AnnotationResumedAt] != "" || has[v1alpha1.AnnotationRuntimeSnapshot] != "" {
					t.Fatalf("suspended with annotations %v", has)
				}
				before = time.Now()
				s.must(s.cluster.Client.Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.JSONPatchType, []byte(write))))
				after = time.Now()
			}
			pods := s.running("job")
			if got := pods[0].Labels["kueue.x-k8s.io/podset"]; got != "node" {
				t.Errorf("the pod's label is %q: the patch did not arrive", got)
			}
			job := s.get("job")
			start := s.stamp(job)
			if start.Before(before) || start.After(after) {
				t.Errorf("stamped at %s, resumed between %s and %s", start, before, after)
			}
			s.inOrder(job, s.sealed(job))
			history.periods(start)
		})
	}
}

// replicatedJobsOfKueue are the patches of replicatedJobs that Kueue made on admission.
func (s *scene) replicatedJobsOfKueue(job *unstructured.Unstructured) []any {
	s.Helper()
	var all []any
	for _, patch := range s.kueuesPatches(job) {
		jobs, _, err := unstructured.NestedSlice(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
		s.must(err)
		all = append(all, jobs...)
	}
	return all
}
