package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// step is one part of the story.
type step struct {
	title string
	run   func(context.Context) error
}

func (d *demo) steps() []step {
	return []step{
		{"Created suspended, it waits longer than its deadline: nothing counts", d.waitSuspended},
		{"Resumed, it is stamped and its pods run", d.resume},
		{"Suspended before its deadline, it loses the stamp and its pods", d.suspendAgain},
		{"Resumed, it has its full time again", d.resumeAfresh},
		{"The deadline comes", d.exceed},
		{"What is left", d.end},
	}
}

func (d *demo) waitSuspended(ctx context.Context) error {
	if err := d.create(ctx); err != nil {
		return err
	}
	quiet := expectation{
		wrong: func(w world) string { return firstOf(started(w), finished(w)) },
		missing: func(w world) string {
			return firstOf(suspendedCondition(w), jobSetSuspended(w, true), count(w, kindJob, 1))
		},
		parts: []*cluster.Process{d.cluster.Trainer, d.cluster.JobSet},
	}
	if err := d.until(ctx, patience, quiet); err != nil {
		return err
	}
	wait := d.limit + 2*time.Second
	d.say("let %s pass", wait)
	if err := d.pass(ctx, wait, quiet); err != nil {
		return err
	}
	if missing := quiet.missing(d.world); missing != "" {
		return d.failed(fmt.Errorf("it did not stay as it was: %s", missing), quiet.parts...)
	}
	d.checked("no stamp, Suspended=True, no pods, no deadline")
	return nil
}

func (d *demo) resume(ctx context.Context) error {
	if err := d.suspend(ctx, false); err != nil {
		return err
	}
	if err := d.until(ctx, patience, d.runs()); err != nil {
		return err
	}
	d.firstStamp = stampOf(d.world.trainJob())
	d.checked("stamp there, JobSet resumed, %d pods run", d.world.running())
	return nil
}

func (d *demo) suspendAgain(ctx context.Context) error {
	some := d.limit * 4 / 10
	d.say("let %s pass", some)
	if err := d.pass(ctx, some, expectation{wrong: finished, parts: d.runs().parts}); err != nil {
		return err
	}
	if err := d.suspend(ctx, true); err != nil {
		return err
	}
	err := d.until(ctx, patience, expectation{
		wrong: finished,
		missing: func(w world) string {
			return firstOf(stampGone(w), suspendedCondition(w), jobSetSuspended(w, true), count(w, kindPod, 0))
		},
		parts: []*cluster.Process{d.cluster.Webhook, d.cluster.Trainer, d.cluster.JobSet, d.cluster.ControllerManager},
	})
	if err == nil {
		d.checked("stamp gone, JobSet suspended, pods gone")
	}
	return err
}

func (d *demo) resumeAfresh(ctx context.Context) error {
	if err := d.suspend(ctx, false); err != nil {
		return err
	}
	if err := d.until(ctx, patience, d.runs()); err != nil {
		return err
	}
	job := d.world.trainJob()
	if stampOf(job) <= d.firstStamp { // stamps are UTC of fixed width: they sort as text
		return d.failed(fmt.Errorf("the stamp %s is not later than the first, %s", stampOf(job), d.firstStamp), d.cluster.Webhook)
	}
	decision := deadline.Evaluate(job, time.Now())
	d.checked("fresh stamp, %d pods run, deadline at %s", d.world.running(), decision.Deadline.UTC().Format("15:04:05.000"))
	return nil
}

// exceed waits for the deadline. Trainer, when it acts on a TrainJob as it was a moment ago,
// builds the JobSet once more before it deletes that too: so what is gone must stay gone
// for a while.
func (d *demo) exceed(ctx context.Context) error {
	over := expectation{
		wrong: completed,
		missing: func(w world) string {
			return firstOf(notExceeded(w), count(w, kindJobSet, 0), count(w, kindJob, 0), count(w, kindPod, 0), d.unreported(w))
		},
		parts: []*cluster.Process{d.cluster.Reconciler, d.cluster.Trainer, d.cluster.ControllerManager},
	}
	if err := d.until(ctx, d.limit+patience, over); err != nil {
		return err
	}
	if err := d.pass(ctx, time.Second, over); err != nil {
		return err
	}
	if err := d.until(ctx, patience, over); err != nil {
		return err
	}
	if again := d.jobSets - 1; again > 0 {
		d.say("JobSets that Trainer built once more at the deadline, and that were deleted again: %d", again)
	}
	d.checked("Failed with reason %s; JobSet, Jobs and pods are gone", trainer.ReasonDeadlineExceeded)
	return nil
}

// runs expects the TrainJob to be stamped and at work.
func (d *demo) runs() expectation {
	return expectation{
		wrong: finished,
		missing: func(w world) string {
			return firstOf(stampMissing(w), jobSetSuspended(w, false), podsRunning(w))
		},
		parts: []*cluster.Process{d.cluster.Webhook, d.cluster.Trainer, d.cluster.JobSet, d.cluster.ControllerManager, d.cluster.Kwok},
	}
}

// end waits for the garbage collector to take what the JobSet had besides Jobs, then sums
// up.
func (d *demo) end(ctx context.Context) error {
	left, err := d.awaitLeft(ctx)
	if err != nil {
		return err
	}
	job := &trainer.TrainJob{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: jobName}, job); err != nil {
		return fmt.Errorf("read TrainJob: %w", err)
	}
	for _, k := range left.objects {
		text := "Trainer's copy of the runtime"
		switch k.kind {
		case kindTrainJob:
			text = conditionsText(job)
		case v1alpha1.TrainingRuntimeSnapshotKind:
			text = "what it ran on, for people"
		}
		d.screen.print(time.Now(), line{kind: k.kind, name: k.name, text: text})
	}
	d.screen.print(time.Now(), line{text: left.others(), style: dim})
	if !job.DeadlineExceeded() {
		return d.failed(errors.New("the TrainJob did not stay Failed"), d.cluster.Trainer)
	}
	verdict, err := judge(stampOf(job), d.limit, d.exceededAt, d.exceededBy)
	if err != nil {
		return d.failed(err, d.cluster.Reconciler, d.cluster.Trainer)
	}
	d.checked("%s", verdict)
	return nil
}
