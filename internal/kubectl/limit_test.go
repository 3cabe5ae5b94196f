package kubectl

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestLimitOf(t *testing.T) {
	created := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	resumed := created.Add(10 * time.Minute)
	now := created.Add(15 * time.Minute)
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job").Created(created).Stamp(resumed) }
	counting := func(start time.Time, source deadline.Source, by string) Limit {
		return Limit{
			Decision: deadline.Decision{
				State: deadline.Waiting, Start: start, Limit: time.Hour, Deadline: start.Add(time.Hour),
				Source: source, By: by, RequeueAfter: start.Add(time.Hour).Sub(now),
			},
			After: time.Hour, Source: source, By: by,
		}
	}
	const policy = "LifecyclePolicy/night"
	for name, tc := range map[string]struct {
		job       *builder.TrainJobBuilder
		signalbox bool
		want      Limit
	}{
		"the field":                           {job: job().Deadline(3600), signalbox: true, want: counting(resumed, deadline.SourceSpec, "")},
		"the field, by a policy":              {job: job().Deadline(3600).Annotation(v1alpha1.AnnotationActiveDeadlineSource, policy), signalbox: true, want: counting(resumed, deadline.SourceSpec, policy)},
		"the annotation":                      {job: job().DeadlineAnnotation("3600"), signalbox: true, want: counting(resumed, deadline.SourceAnnotation, "")},
		"none":                                {job: job(), signalbox: true},
		"none, with a giver left over":        {job: job().Annotation(v1alpha1.AnnotationActiveDeadlineSource, policy), signalbox: true},
		"suspended":                           {job: job().Deadline(3600).Suspended(), signalbox: true, want: Limit{After: time.Hour, Source: deadline.SourceSpec}},
		"finished":                            {job: job().Deadline(3600).Condition("Complete", metav1.ConditionTrue, "x", resumed), signalbox: true, want: Limit{After: time.Hour, Source: deadline.SourceSpec}},
		"run by another":                      {job: job().Deadline(3600).ManagedBy("kueue.x-k8s.io/multikueue"), signalbox: true},
		"the field, Trainer alone":            {job: job().Deadline(3600), want: counting(created, deadline.SourceSpec, "")},
		"the annotation, Trainer alone":       {job: job().DeadlineAnnotation("3600")},
		"the field, suspended, Trainer alone": {job: job().Deadline(3600).Suspended(), want: Limit{After: time.Hour, Source: deadline.SourceSpec}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, LimitOf(tc.job.Obj(), tc.signalbox, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
