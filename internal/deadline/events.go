package deadline

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Reasons of the events that tell of a deadline: that a TrainJob was given one, and that it
// comes near.
const (
	reasonGiven       = "DeadlineSet"
	reasonApproaching = "DeadlineApproaching"
)

// tell writes a warning event about the TrainJob, once for each reason and occasion.
func (r *Reconciler) tell(ctx context.Context, job *trainer.TrainJob, reason, text string, occasion, now time.Time) {
	event.Warn(ctx, r.Client, job.Reference(), reason, text, strconv.FormatInt(occasion.UnixNano(), 10), now)
}

// tellGiven writes the event of a deadline that a new TrainJob was given by its runtime or a
// policy, once.
func (r *Reconciler) tellGiven(ctx context.Context, job *trainer.TrainJob, now time.Time) {
	by := job.Annotations[v1alpha1.AnnotationActiveDeadlineSource]
	limit, source := limitOf(job)
	if by == "" || limit == 0 || job.Terminal() || !job.ManagedByTrainer() || now.Sub(job.CreationTimestamp.Time) > newsFor {
		return
	}
	if r.told != nil {
		if _, told := r.told.Get(job.UID); told {
			return
		}
	}
	text := fmt.Sprintf("%s is %d s, from %s", source, int64(limit.Seconds()), by)
	if event.Note(ctx, r.Client, job.Reference(), reasonGiven, text, "", now) && r.told != nil {
		r.told.Add(job.UID, nil)
	}
}

// newsFor is how long an expiry is worth an event: a restart must not tell again of all that
// ever expired.
const newsFor = 5 * time.Minute

// tellOf writes the event of an expiry, unless it is old. The text is that of the condition
// where it says since when, how long and by what; Trainer's own does not, and is made anew.
func (r *Reconciler) tellOf(ctx context.Context, job *trainer.TrainJob, now time.Time) {
	failed := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed)
	if now.Sub(failed.LastTransitionTime.Time) > newsFor {
		return
	}
	text := failed.Message
	if !strings.HasPrefix(text, activeSinceText) {
		running := job.DeepCopy()
		meta.RemoveStatusCondition(&running.Status.Conditions, trainer.ConditionFailed)
		decision := Evaluate(running, now)
		if decision.State == None {
			return
		}
		text = exceeded(decision, false)
	}
	r.tell(ctx, job, trainer.ReasonDeadlineExceeded, text, failed.LastTransitionTime.Time, now)
}

// activeSinceText begins the texts of an expiry.
const activeSinceText = "active since "

// exceeded says what happened, for the condition and the event.
func exceeded(decision Decision, neverReady bool) string {
	text := fmt.Sprintf(activeSinceText+"%s, longer than the limit of %d s (%s)",
		decision.Start.UTC().Format(time.RFC3339), int64(decision.Limit.Seconds()), decision.Origin())
	if neverReady {
		text += "; no pod was ever ready"
	}
	return text
}

// Origin says where the limit stands, and who set it if that was not the TrainJob's author.
func (d Decision) Origin() string {
	if d.By == "" {
		return string(d.Source)
	}
	return string(d.Source) + " from " + d.By
}

// approaching says what is about to happen.
func approaching(decision Decision, now time.Time) string {
	return fmt.Sprintf("%s left of the limit of %d s (%s); active since %s",
		decision.Deadline.Sub(now).Round(time.Second), int64(decision.Limit.Seconds()), decision.Origin(),
		decision.Start.UTC().Format(time.RFC3339))
}
