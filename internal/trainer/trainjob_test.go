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
