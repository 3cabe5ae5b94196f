package trainer_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestTrainJobState(t *testing.T) {
	type state struct{ active, managed, terminal, exceeded bool }
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want state
	}{
		"new":                       {job(), state{active: true, managed: true}},
		"suspend false":             {job().Suspend(false), state{active: true, managed: true}},
		"suspended":                 {job().Suspended(), state{managed: true}},
		"managed by Trainer":        {job().ManagedBy(trainer.ControllerName), state{active: true, managed: true}},
		"managed by MultiKueue":     {job().ManagedBy("kueue.x-k8s.io/multikueue"), state{active: true}},
		"complete":                  {job().Condition("Complete", metav1.ConditionTrue, "Done", at), state{active: true, managed: true, terminal: true}},
		"failed":                    {job().Condition("Failed", metav1.ConditionTrue, "Crashed", at), state{active: true, managed: true, terminal: true}},
		"failed by its deadline":    {job().Condition("Failed", metav1.ConditionTrue, "DeadlineExceeded", at), state{active: true, managed: true, terminal: true, exceeded: true}},
		"not failed":                {job().Condition("Failed", metav1.ConditionFalse, "DeadlineExceeded", at), state{active: true, managed: true}},
		"completion is not certain": {job().Condition("Complete", metav1.ConditionUnknown, "Lost", at), state{active: true, managed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := tc.job.Obj()
			if got := (state{j.Active(), j.ManagedByTrainer(), j.Terminal(), j.DeadlineExceeded()}); got != tc.want {
				t.Errorf("state = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestFinishedAt(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want string
	}{
		"new":                   {job(), ""},
		"suspended":             {job().Condition("Suspended", yes, "Suspended", at), ""},
		"complete":              {job().Condition("Complete", yes, "Done", at), "Complete Done"},
		"failed":                {job().Condition("Failed", yes, "Crashed", at), "Failed Crashed"},
		"not failed":            {job().Condition("Failed", no, "Fine", at), ""},
		"in the end":            {job().Condition("Suspended", no, "Resumed", at).Condition("Failed", no, "Fine", at).Condition("Complete", yes, "Done", at), "Complete Done"},
		"both, failed before":   {job().Condition("Complete", yes, "Done", at.Add(time.Second)).Condition("Failed", yes, "Crashed", at), "Failed Crashed"},
		"both, complete before": {job().Condition("Failed", yes, "Crashed", at.Add(time.Second)).Condition("Complete", yes, "Done", at), "Complete Done"},
		"both at once":          {job().Condition("Failed", yes, "Crashed", at).Condition("Complete", yes, "Done", at), "Complete Done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if condition := tc.job.Obj().FinishedAt(); condition != nil {
				got = condition.Type + " " + condition.Reason
				if !condition.LastTransitionTime.Time.Equal(at) {
					t.Errorf("at %v", condition.LastTransitionTime)
				}
			}
			if got != tc.want {
				t.Errorf("finished by %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCopyOfMultiKueue(t *testing.T) {
	for label, want := range map[string]bool{"kueue.x-k8s.io/multikueue-origin": true, "kueue.x-k8s.io/queue-name": false} {
		if got := builder.TrainJob("ns", "job").Label(label, "").Obj().CopyOfMultiKueue(); got != want {
			t.Errorf("with label %s: a copy %v, want %v", label, got, want)
		}
	}
	if builder.TrainJob("ns", "job").Annotation("kueue.x-k8s.io/multikueue-origin", "x").Obj().CopyOfMultiKueue() {
		t.Error("an annotation makes a copy")
	}
}
