package kubectl

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestStateOf(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job").Created(at).Deadline(60) }
	done := func(kind, reason string) *builder.TrainJobBuilder {
		return job().Condition(kind, metav1.ConditionTrue, reason, at.Add(time.Minute))
	}
	jobSet := func(owner *trainer.TrainJob, condition string) *trainer.JobSet {
		set := builder.JobSet(owner).Obj()
		set.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
		return set
	}
	for name, tc := range map[string]struct {
		job    *builder.TrainJobBuilder
		queued bool
		jobSet *trainer.JobSet
		after  time.Duration
		want   State
	}{
		"active":                     {job: job(), want: Running},
		"suspended":                  {job: job().Suspended(), want: Suspended},
		"suspended by Kueue":         {job: job().Suspended(), queued: true, want: Queued},
		"admitted by Kueue":          {job: job(), queued: true, want: Running},
		"at its deadline":            {job: job(), after: time.Minute, want: Finishing},
		"suspended for longer":       {job: job().Suspended(), after: time.Hour, want: Suspended},
		"being deleted":              {job: job().Deleting(at), want: Finishing},
		"suspended, being deleted":   {job: job().Suspended().Deleting(at), queued: true, want: Finishing},
		"its JobSet has completed":   {job: job(), jobSet: jobSet(job().Obj(), "Completed"), want: Finishing},
		"its JobSet has failed":      {job: job(), jobSet: jobSet(job().Obj(), "Failed"), want: Finishing},
		"its JobSet runs":            {job: job(), jobSet: jobSet(job().Obj(), "Other"), want: Running},
		"the JobSet of a namesake":   {job: job(), jobSet: jobSet(job().UID("earlier").Obj(), "Completed"), want: Running},
		"complete":                   {job: done(trainer.ConditionComplete, "JobsCompleted"), want: Succeeded},
		"complete after it was due":  {job: done(trainer.ConditionComplete, "JobsCompleted"), after: time.Hour, want: Succeeded},
		"complete, being deleted":    {job: done(trainer.ConditionComplete, "JobsCompleted").Deleting(at), want: Succeeded},
		"failed":                     {job: done(trainer.ConditionFailed, "JobsFailed"), want: Failed},
		"failed by its deadline":     {job: done(trainer.ConditionFailed, trainer.ReasonDeadlineExceeded), want: DeadlineExceeded},
		"complete, then failed, too": {job: done(trainer.ConditionComplete, "JobsCompleted").Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, at.Add(time.Hour)), want: Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			job := tc.job.Obj()
			got := StateOf(job, tc.queued, tc.jobSet, deadline.Evaluate(job, at.Add(tc.after)))
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if finished := got == Succeeded || got == Failed || got == DeadlineExceeded; got.Finished() != finished {
				t.Errorf("%s.Finished() is %t", got, got.Finished())
			}
		})
	}
}

func TestInQueue(t *testing.T) {
	plain := builder.TrainJob("ns", "job").Suspended().Obj()
	labelled := builder.TrainJob("ns", "job").Suspended().Label(kueue.LabelQueue, "team").Obj()
	deactivated := builder.Workload(labelled).Obj()
	if err := unstructured.SetNestedField(deactivated.Object, false, "spec", "active"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		job       *trainer.TrainJob
		workload  *unstructured.Unstructured
		installed bool
		want      bool
	}{
		"nobody asks for a queue":             {job: plain, installed: true},
		"its Workload waits":                  {job: plain, workload: builder.Workload(plain).Obj(), installed: true, want: true},
		"its Workload is deactivated":         {job: labelled, workload: deactivated, installed: true},
		"it asks for a queue, and none shows": {job: labelled, installed: true, want: true},
		"it asks for a queue without Kueue":   {job: labelled},
	} {
		t.Run(name, func(t *testing.T) {
			if got := InQueue(tc.job, tc.workload, tc.installed); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
