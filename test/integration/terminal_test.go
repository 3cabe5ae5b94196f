package integration_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// A stored end outlives every status write of Trainer's account, whatever its reason, and
// the JobSet is not made again.
func testEndStays(s *scene) {
	for name, end := range map[string]struct{ kind, reason string }{
		"deadline":    {trainer.ConditionFailed, trainer.ReasonDeadlineExceeded},
		"crashed":     {trainer.ConditionFailed, "FailedJobs"},
		"unsupported": {trainer.ConditionFailed, "TrainingRuntimeNotSupported"},
		"complete":    {trainer.ConditionComplete, "AllJobsCompleted"},
	} {
		s.create(name)
		conditions := []metav1.Condition{}
		setCondition(&conditions, end.kind, metav1.ConditionTrue, end.reason)
		s.must(s.report(s.object(name), conditions, s.release.status))
		want := meta.FindStatusCondition(s.get(name).Status.Conditions, end.kind)
		if want == nil {
			s.Fatalf("%s/%s, written by Trainer, was not stored", end.kind, end.reason)
		}
		for how, write := range dropping {
			err := write(s, name)
			if err != nil && !strings.Contains(err.Error(), "TrainJob "+name+" is finished") {
				s.Errorf("%s, %s: %v", end.reason, how, err)
			}
			job := s.get(name)
			if diff := cmp.Diff(want, meta.FindStatusCondition(job.Status.Conditions, end.kind)); diff != "" {
				s.Errorf("%s/%s after %s (-want +got):\n%s", end.kind, end.reason, how, diff)
			}
			if meta.IsStatusConditionTrue(job.Status.Conditions, trainer.ConditionFailed) &&
				meta.IsStatusConditionTrue(job.Status.Conditions, trainer.ConditionComplete) {
				s.Errorf("both ends after %s: %+v", how, job.Status.Conditions)
			}
		}
		if s.jobSet(name) != nil {
			s.Errorf("the JobSet of TrainJob %s was made again", name)
		}
	}
}

// dropping are the ways in which a write of Trainer's account can drop an end.
var dropping = map[string]func(s *scene, name string) error{
	"a look of the release's controller": (*scene).pass,
	"a PUT without conditions": func(s *scene, name string) error {
		job := s.object(name)
		unstructured.RemoveNestedField(job.Object, "status", "conditions")
		return asTrainer.Status().Update(s.ctx, job)
	},
	"a PUT of an empty status": func(s *scene, name string) error {
		job := s.object(name)
		job.Object["status"] = map[string]any{}
		return asTrainer.Status().Update(s.ctx, job)
	},
	"a PUT without a status": func(s *scene, name string) error {
		job := s.object(name)
		delete(job.Object, "status")
		return asTrainer.Status().Update(s.ctx, job)
	},
	"a patch that removes the conditions": patchStatus(`{"status":{"conditions":null}}`),
	"a patch that removes the status":     patchStatus(`{"status":null}`),
	"a patch from before the end": patchStatus(`{"status":{"conditions":[
		{"type":"Suspended","status":"False","reason":"Resumed","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`),
	"a patch that takes it back": patchStatus(`{"status":{"conditions":[
		{"type":"Failed","status":"False","reason":"Restarted","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`),
	"a patch with another end": patchStatus(`{"status":{"conditions":[
		{"type":"Complete","status":"True","reason":"Other","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"},
		{"type":"Failed","status":"True","reason":"Other","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`),
}

// patchStatus returns a write of a merge patch, which knows nothing of other writers.
func patchStatus(patch string) func(*scene, string) error {
	return func(s *scene, name string) error {
		return asTrainer.Status().Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}
