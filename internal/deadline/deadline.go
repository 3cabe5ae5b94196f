// Package deadline decides and enforces how long a TrainJob may be active.
//
// A deadline counts the seconds since the job last became active; suspending stops it and
// forgets it; resuming gives the full time again; restarts inside the job do not reset it.
package deadline

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// MinRequeue is the least time between two looks at a TrainJob whose rest, by the skew of
// clocks or by a conflict at the last moment, is zero or negative: never a tight loop.
const MinRequeue = time.Second

// How much earlier than Evaluate finds it another's enforcement of a deadline may come and
// still count as in time.
const (
	// Tolerance is for clocks that differ between two nodes.
	Tolerance = 30 * time.Second
	// wholeSecond is for Trainer's counting in whole seconds. It is all that is allowed where
	// what is stored says that Trainer counts from another start: it missed a suspension.
	wholeSecond = time.Second
)

// MaxAhead is how far ahead of now a stamp or a condition may lie: clocks differ, but not by
// more. A stamp that lies further ahead came with a manifest while no webhook looked, and
// would put the end off for as long as its writer liked.
const MaxAhead = 5 * time.Minute

// State tells how a TrainJob stands to its deadline.
type State int

const (
	// None: nothing counts. The TrainJob has no deadline, is not active, is finished, or is
	// run by somebody other than Trainer's own controller.
	None State = iota
	// Waiting: the deadline is counting and lies ahead.
	Waiting
	// Expired: the deadline is reached.
	Expired
)

// Source names where a limit comes from.
type Source string

// The places that a limit can come from, in the order of their rank.
const (
	SourceSpec       Source = "spec.activeDeadlineSeconds"
	SourceAnnotation Source = "annotation " + v1alpha1.AnnotationActiveDeadlineSeconds
)

// Decision is what Evaluate finds.
type Decision struct {
	State State
	// Start is when the TrainJob last became active, Limit how long it may be active from
	// then on, and Deadline their sum. All zero when State is None.
	Start    time.Time
	Limit    time.Duration
	Deadline time.Time
	// Source is where Limit stands.
	Source Source
	// By names, as KIND/NAME, the runtime or the LifecyclePolicy that Limit comes from; "" for
	// the TrainJob's own.
	By string
	// RequeueAfter is when to look again: the exact rest while Waiting, MinRequeue when
	// Expired, zero (never) when None.
	RequeueAfter time.Duration
}

// Evaluate tells how the TrainJob stands to its deadline at the instant now. At equality
// the deadline is reached. A finished TrainJob has none, however late it is.
func Evaluate(job *trainer.TrainJob, now time.Time) Decision {
	if !job.Active() || job.Terminal() || !job.ManagedByTrainer() {
		return Decision{}
	}
	limit, source := limitOf(job)
	return decide(job, ActiveSince(job, now), limit, source, now)
}

// EvaluateTrainer tells how the TrainJob stands to the deadline that Trainer, from 2.2 on, looks
// after by itself: the field of the spec alone, from the start that Trainer counts from. That is
// what counts where Signalbox is not installed. While Trainer still reports the TrainJob suspended
// there is none: Trainer sets a new start when it next looks.
func EvaluateTrainer(job *trainer.TrainJob, now time.Time) Decision {
	if !job.Active() || job.Terminal() || !job.ManagedByTrainer() || job.Spec.ActiveDeadlineSeconds == nil ||
		meta.IsStatusConditionTrue(job.Status.Conditions, trainer.ConditionSuspended) {
		return Decision{}
	}
	return decide(job, trainerStart(job), limit(*job.Spec.ActiveDeadlineSeconds), SourceSpec, now)
}

// decide puts together what was found of a TrainJob that is active; limit and start are zero for
// none.
func decide(job *trainer.TrainJob, start time.Time, limit time.Duration, source Source, now time.Time) Decision {
	if limit == 0 || start.IsZero() {
		return Decision{}
	}
	decision := Decision{
		State:    Waiting,
		Start:    start,
		Limit:    limit,
		Deadline: start.Add(limit),
		Source:   source,
		By:       job.Annotations[v1alpha1.AnnotationActiveDeadlineSource],
	}
	decision.RequeueAfter = decision.Deadline.Sub(now)
	if decision.RequeueAfter <= 0 {
		decision.State = Expired
		decision.RequeueAfter = MinRequeue
	}
	return decision
}

// Limit returns how long the TrainJob may be active each time, where that stands, and as KIND/NAME
// who gave it, "" for its author: as Evaluate has it, also while nothing counts. Zero for no limit.
func Limit(job *trainer.TrainJob) (limit time.Duration, source Source, by string) {
	if limit, source = limitOf(job); limit == 0 {
		return 0, "", ""
	}
	return limit, source, job.Annotations[v1alpha1.AnnotationActiveDeadlineSource]
}

// Early tells whether it would be wrong of Trainer to end the TrainJob by its deadline at the
// instant now: it is suspended, it is not known yet since when it is active, or more of its
// time is left than the tolerance. A TrainJob that is finished, has no deadline, has another that
// Trainer looks after by a run policy, or is being deleted is not for this rule to judge: nobody
// loses by the end of the last one.
func Early(job *trainer.TrainJob, now time.Time) bool {
	limit, _ := limitOf(job)
	if limit == 0 || job.OwnDeadline() != nil || job.Terminal() || !job.ManagedByTrainer() || !job.DeletionTimestamp.IsZero() {
		return false
	}
	decision := Evaluate(job, now)
	tolerance := Tolerance
	// The generation counts the changes of the spec: without any there was no suspension, and
	// another start is the difference of clocks alone.
	if job.Generation > 1 && decision.Start.Sub(trainerStart(job)) > wholeSecond {
		tolerance = wholeSecond
	}
	return decision.State == None || decision.State == Waiting && decision.RequeueAfter > tolerance
}

// trainerStart is when the TrainJob became active by Trainer's own reckoning.
func trainerStart(job *trainer.TrainJob) time.Time {
	suspended := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime.Time
	}
	return job.CreationTimestamp.Time
}

// WarnAt returns when the end of a waiting TrainJob should be announced: most before its
// deadline, or a tenth of its limit if that is less. The zero time when most is zero.
func (d Decision) WarnAt(most time.Duration) time.Time {
	if d.State != Waiting || most <= 0 {
		return time.Time{}
	}
	return d.Deadline.Add(-min(most, d.Limit/10))
}

// limitOf returns the limit of the TrainJob and its source, or zero when it has none. A value
// above MaxSeconds, stored before anyone checked, counts as MaxSeconds: the least surprising
// reading of it, where stock computes an instant in the past.
func limitOf(job *trainer.TrainJob) (time.Duration, Source) {
	if seconds := job.Spec.ActiveDeadlineSeconds; seconds != nil {
		return limit(*seconds), SourceSpec
	}
	value, found := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]
	if !found {
		return 0, ""
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, ""
	}
	return limit(seconds), SourceAnnotation
}

func limit(seconds int64) time.Duration {
	if seconds < v1alpha1.MinDeadlineSeconds {
		return 0
	}
	return time.Duration(min(seconds, v1alpha1.MaxSeconds)) * time.Second
}

// ActiveSince returns when the active TrainJob last became active, or the zero time when
// that is not known yet: the latest of what is stored about it.
//
//   - The stamp covers what Trainer never saw: a suspension while its controller was away,
//     a suspend and resume within one of its passes.
//   - The Suspended condition covers a stamp left stale while the webhook was away, and a
//     resume that Trainer acted on late.
//   - The creation covers a TrainJob with neither, and a stamp that came with a copied
//     manifest while the webhook was away.
//
// While Trainer still reports the TrainJob suspended, only a stamp from after that counts:
// without one it was resumed unseen, nothing of it runs yet, and the creation, or a stamp
// from before the suspension, would end it early.
func ActiveSince(job *trainer.TrainJob, now time.Time) time.Time {
	start := job.CreationTimestamp.Time
	stamp, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
	stamped := err == nil && stamp.Sub(now) <= MaxAhead
	if stamped {
		start = later(start, stamp)
	}
	suspended := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionSuspended)
	if suspended == nil || suspended.LastTransitionTime.Sub(now) > MaxAhead {
		return start
	}
	if suspended.Status == metav1.ConditionFalse {
		return later(start, suspended.LastTransitionTime.Time)
	}
	if !stamped || stamp.Before(suspended.LastTransitionTime.Time) {
		return time.Time{}
	}
	return start
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
