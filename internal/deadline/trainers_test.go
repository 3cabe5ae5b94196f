package deadline

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// Trainer alone counts the field, from the creation or from the resume that it saw.
func TestEvaluateTrainer(t *testing.T) {
	created := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	resumed := created.Add(10 * time.Minute)
	job := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Created(created).Deadline(3600).Stamp(created.Add(time.Minute))
	}
	for name, tc := range map[string]struct {
		job   *builder.TrainJobBuilder
		start time.Time // zero: nothing counts
		after time.Duration
		want  State
	}{
		"never suspended, whatever the stamp": {job: job(), start: created, want: Waiting},
		"at equality":                         {job: job(), start: created, after: time.Hour, want: Expired},
		"resumed":                             {job: job().Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", resumed), start: resumed, after: time.Hour, want: Waiting},
		"resumed, and not seen yet":           {job: job().Condition(trainer.ConditionSuspended, metav1.ConditionTrue, "Suspended", resumed)},
		"suspended":                           {job: job().Suspended()},
		"finished":                            {job: job().Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", resumed)},
		"run by another":                      {job: job().ManagedBy("kueue.x-k8s.io/multikueue")},
		"the annotation alone":                {job: builder.TrainJob("ns", "job").Created(created).DeadlineAnnotation("3600")},
		"no seconds":                          {job: job().Deadline(0)},
	} {
		t.Run(name, func(t *testing.T) {
			got := EvaluateTrainer(tc.job.Obj(), created.Add(tc.after))
			if got.State != tc.want || !got.Start.Equal(tc.start) {
				t.Errorf("state %d since %v, want %d since %v", got.State, got.Start, tc.want, tc.start)
			}
		})
	}
}
