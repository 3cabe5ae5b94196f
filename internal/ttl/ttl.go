// Package ttl decides how long a finished TrainJob stays, and removes it then.
package ttl

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Limit is how long a finished TrainJob stays, from zero on, and who says so as KIND/NAME.
type Limit struct {
	After time.Duration
	By    string
}

// Rules are what is said about a TrainJob elsewhere than in it; nil where nothing is.
type Rules struct {
	// Runtime is the default of its runtime.
	Runtime *Limit
	// Succeeded and Failed are the defaults of policies by how the TrainJob has finished.
	Succeeded, Failed *Limit
	// Max is the maximum of policies, over all others.
	Max *Limit
	// OwnTTL tells that the runtime sets a TTL that Trainer itself looks after.
	OwnTTL bool
}

// RulesOf puts together what the runtime of a TrainJob says, and the strictest that policies say: how
// long it stays when it has succeeded, when it has failed, and at most. The zero Limit is none: no policy
// says less than a second.
func RulesOf(runtime trainer.RuntimeSettings, succeeded, failed, most Limit) Rules {
	return Rules{
		Runtime:   Default(runtime.Annotations, runtime.Name),
		Succeeded: given(succeeded),
		Failed:    given(failed),
		Max:       given(most),
		OwnTTL:    runtime.OwnTTL,
	}
}

// given returns the limit of a policy; nil for none.
func given(limit Limit) *Limit {
	if limit.After <= 0 {
		return nil
	}
	return &limit
}

// State tells how a TrainJob stands to its end.
type State int

const (
	// None: nothing counts. The TrainJob is not finished, is suspended, is being deleted, is to
	// stay, or is run by somebody else.
	None State = iota
	// Waiting: it is finished, and stays for some time yet.
	Waiting
	// Due: its time is over.
	Due
)

// Decision is what Evaluate finds.
type Decision struct {
	State State
	// Finished is when the TrainJob finished, After how long it stays from then on, and
	// Expires their sum. All zero when State is None.
	Finished, Expires time.Time
	After             time.Duration
	// By says where After comes from.
	By string
	// RequeueAfter is the exact rest while Waiting, else zero.
	RequeueAfter time.Duration
}

// own says that the TrainJob's own annotation is what counts.
const own = "annotation " + v1alpha1.AnnotationTTLSecondsAfterFinished

// Evaluate tells at the instant now how the TrainJob stands to its end. At equality it is due.
func Evaluate(job *trainer.TrainJob, rules Rules, now time.Time) Decision {
	if !mayGo(job) {
		return Decision{}
	}
	finished := job.FinishedAt()
	limit := LimitOf(job, rules, finished.Type == trainer.ConditionComplete)
	if limit == nil {
		return Decision{}
	}
	decision := Decision{State: Waiting, Finished: finished.LastTransitionTime.Time, After: limit.After, By: limit.By}
	decision.Expires = decision.Finished.Add(limit.After)
	if rest := decision.Expires.Sub(now); rest > 0 {
		decision.RequeueAfter = rest
		return decision
	}
	decision.State = Due
	return decision
}

// mayGo tells whether the TrainJob is one that is removed at all.
func mayGo(job *trainer.TrainJob) bool {
	finished := job.FinishedAt()
	return finished != nil && !finished.LastTransitionTime.IsZero() && job.Active() && job.ManagedByTrainer() &&
		job.DeletionTimestamp.IsZero()
}

// LimitOf returns what counts of all that is said about the TrainJob, by how it has finished or when it
// should; nil when it is to stay.
// Where its own annotation cannot be read, which only one stored while the webhook was away can
// be, it stays as long as it may: what is removed does not come back. Where Trainer itself removes
// it, only the maximum counts, as for a copy that MultiKueue made: its own cluster must learn
// first how that ended, and removes it then.
func LimitOf(job *trainer.TrainJob, rules Rules, succeeded bool) *Limit {
	var limit *Limit
	text, annotated := job.Annotations[v1alpha1.AnnotationTTLSecondsAfterFinished]
	switch {
	case job.CopyOfMultiKueue(), job.OwnTTL(), rules.OwnTTL:
	case annotated:
		if after, err := v1alpha1.ParseSeconds(text, v1alpha1.MinTTLSeconds); err == nil {
			limit = &Limit{After: after, By: own}
		}
	case rules.Runtime != nil:
		limit = rules.Runtime
	case succeeded:
		limit = rules.Succeeded
	default:
		limit = rules.Failed
	}
	if rules.Max != nil && (limit == nil || limit.After > rules.Max.After) {
		limit = rules.Max
	}
	return limit
}

// Default returns the default that a runtime with these annotations, named KIND/NAME, says; nil
// when it says none.
func Default(annotations map[string]string, by string) *Limit {
	text, found := annotations[v1alpha1.AnnotationDefaultTTLSecondsAfterFinished]
	if !found {
		return nil
	}
	after, err := v1alpha1.ParseSeconds(text, v1alpha1.MinTTLSeconds)
	if err != nil {
		return nil
	}
	return &Limit{After: after, By: by}
}

// Validate checks the annotation of a write that turns before into after; before is nil on
// CREATE. Unlike a deadline it may change at any time. What is stored is not held against an
// update that leaves it as it is.
func Validate(before, after *trainer.TrainJob) field.ErrorList {
	const key = v1alpha1.AnnotationTTLSecondsAfterFinished
	text, found := after.Annotations[key]
	if !found || text == v1alpha1.None {
		return nil
	}
	if before != nil {
		if stored, was := before.Annotations[key]; was && stored == text {
			return nil
		}
	}
	if _, err := v1alpha1.ParseSeconds(text, v1alpha1.MinTTLSeconds); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(key), text, err.Error()+", or "+v1alpha1.None)}
	}
	return nil
}

// removed says why a TrainJob is removed.
func removed(decision Decision) string {
	return fmt.Sprintf("finished at %s, to stay %d s (%s)",
		decision.Finished.UTC().Format(time.RFC3339), int64(decision.After.Seconds()), decision.By)
}
