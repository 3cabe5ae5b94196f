package admission

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const (
	defaultDeadline = v1alpha1.AnnotationDefaultActiveDeadlineSeconds
	defaultTTL      = v1alpha1.AnnotationDefaultTTLSecondsAfterFinished
)

// A default that is none is refused where it is added or changed.
func TestRuntimeValidatorOfDefaults(t *testing.T) {
	const (
		deadlinePath = "metadata.annotations[lifecycle.trainer.kubeflow.org/default-active-deadline-seconds]"
		ttlPath      = "metadata.annotations[lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished]"
		invalidMine  = `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: `
		wholeOf1     = ": must be a whole number of seconds from 1 to 4294967295"
	)
	set := func(key, value string) *builder.RuntimeBuilder { return mine().Annotation(key, value) }
	for name, tc := range map[string]struct {
		before, after *builder.RuntimeBuilder
		want          judged
	}{
		"created well": {nil, set(defaultDeadline, "1").Annotation(defaultTTL, "0"), judged{}},
		"created with both wrong": {nil, builder.ClusterTrainingRuntime("torch").Annotation(defaultDeadline, "8h").Annotation(defaultTTL, "-1"), judged{
			Code: 422, Message: `ClusterTrainingRuntime.trainer.kubeflow.org "torch" is invalid: [` + deadlinePath + `: Invalid value: "8h"` + wholeOf1 + ", " + ttlPath + `: Invalid value: "-1": must be greater than or equal to 0]`,
			Causes: []string{deadlinePath, ttlPath},
		}},
		"created with a clock and a wrong default": {nil, deadlineOf(set(defaultDeadline, "0"), 5), judged{
			Code: 422, Message: invalidMine + "[spec.template.spec.activeDeadlineSeconds: Invalid value: 5: " + secondClock + ", " + deadlinePath + `: Invalid value: "0": must be greater than or equal to 1]`,
			Causes: []string{"spec.template.spec.activeDeadlineSeconds", deadlinePath},
		}},
		"created with the opt-out of TrainJobs": {nil, set(defaultDeadline, "none"), judged{Code: 422, Message: invalidMine + deadlinePath + `: Invalid value: "none"` + wholeOf1, Causes: []string{deadlinePath}}},
		"a right one added":                     {mine(), set(defaultDeadline, "60"), judged{}},
		"a wrong one added":                     {mine(), set(defaultDeadline, "1h"), judged{Code: 422, Message: invalidMine + deadlinePath + `: Invalid value: "1h"` + wholeOf1, Causes: []string{deadlinePath}}},
		"one made wrong":                        {set(defaultDeadline, "60"), set(defaultDeadline, "1h"), judged{Code: 422, Message: invalidMine + deadlinePath + `: Invalid value: "1h"` + wholeOf1, Causes: []string{deadlinePath}}},
		"a wrong one, edited otherwise":         {set(defaultDeadline, "1h"), set(defaultDeadline, "1h").Image("image:2").Label("a", "b"), judged{}},
		"a wrong one, mended":                   {set(defaultDeadline, "1h"), set(defaultDeadline, "3600"), judged{}},
		"a wrong one, removed":                  {set(defaultDeadline, "1h"), mine(), judged{}},
		"a wrong one, changed":                  {set(defaultDeadline, "1h"), set(defaultDeadline, "2h"), judged{Code: 422, Message: invalidMine + deadlinePath + `: Invalid value: "2h"` + wholeOf1, Causes: []string{deadlinePath}}},
		"a disruption allowed before":           {mine().Annotation(allow, "true"), set(defaultDeadline, "1h"), judged{Code: 422, Message: invalidMine + deadlinePath + `: Invalid value: "1h"` + wholeOf1, Causes: []string{deadlinePath}}},
		"while it is being deleted":             {mine().Set("2026-03-01T12:00:00Z", "metadata", "deletionTimestamp"), set(defaultDeadline, "1h"), judged{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operation := admissionv1.Create
			if tc.before != nil {
				operation = admissionv1.Update
			}
			if diff := cmp.Diff(tc.want, judge(t, newRuntimeBench(t).Handle(t.Context(), runtimeRequest(t, operation, tc.before, tc.after)))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// A wrong default is refused whatever the mode says of runtimes in use, and holds no deletion up.
func TestRuntimeValidatorOfDefaultsInEveryMode(t *testing.T) {
	wrong := mine().Annotation(defaultTTL, "1h")
	for _, mode := range []guard.Mode{guard.Deny, guard.Warn, guard.Allow} {
		b := newRuntimeBench(t)
		b.InUse = mode
		if got := judge(t, b.Handle(t.Context(), runtimeRequest(t, admissionv1.Update, mine(), wrong))); got.Code != http.StatusUnprocessableEntity {
			t.Errorf("in mode %s: %+v", mode, got)
		}
		if got := judge(t, b.Handle(t.Context(), runtimeRequest(t, admissionv1.Delete, wrong, nil))); got.Code != 0 {
			t.Errorf("deleted in mode %s: %+v", mode, got)
		}
	}
}
