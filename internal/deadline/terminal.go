package deadline

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Conditions returns the conditions that must be stored when somebody writes the given ones
// into the status of the stored TrainJob, which decides by its own spec and annotations: a
// status request may carry other ones. The result is written itself when all is well.
//
//   - A stored Complete or Failed stays as it is. Trainer replaces the whole list from
//     copies that may be old, and clears Failed when the JobSet is gone.
//   - Complete and Failed are never both True: the first stays. Of two that come in one
//     write, Complete stays.
//   - When byTrainer, a Failed by a deadline that is not reached is taken out: Trainer
//     counts from the creation when it never saw the suspension.
func Conditions(stored *trainer.TrainJob, written []metav1.Condition, byTrainer bool, now time.Time) []metav1.Condition {
	if !stored.ManagedByTrainer() {
		return written
	}
	if first := stored.FinishedAt(); first != nil {
		return keep(written, *first)
	}
	failed := meta.FindStatusCondition(written, trainer.ConditionFailed)
	early := byTrainer && isTrue(failed) && failed.Reason == trainer.ReasonDeadlineExceeded && Early(stored, now)
	both := isTrue(failed) && meta.IsStatusConditionTrue(written, trainer.ConditionComplete)
	if early || both {
		return without(written, trainer.ConditionFailed)
	}
	return written
}

func isTrue(condition *metav1.Condition) bool {
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// keep returns the written conditions with the terminal one as it was stored, at the place
// where it was written or else last, where Trainer's users look for the state; and without
// the other terminal one where that is True.
func keep(written []metav1.Condition, first metav1.Condition) []metav1.Condition {
	other := trainer.ConditionFailed
	if first.Type == trainer.ConditionFailed {
		other = trainer.ConditionComplete
	}
	if meta.IsStatusConditionTrue(written, other) {
		written = without(written, other)
	}
	i := slices.IndexFunc(written, func(c metav1.Condition) bool { return c.Type == first.Type })
	switch {
	case i < 0:
		return append(slices.Clone(written), first)
	case equality.Semantic.DeepEqual(written[i], first):
		return written
	default:
		written = slices.Clone(written)
		written[i] = first
		return written
	}
}

func without(conditions []metav1.Condition, kind string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return c.Type == kind })
}
