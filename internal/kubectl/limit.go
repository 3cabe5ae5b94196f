package kubectl

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Limit is how long a TrainJob may be active, as somebody enforces it.
type Limit struct {
	// Decision is how the TrainJob stands to its deadline; its state is None while nothing counts.
	Decision deadline.Decision
	// After is the limit, Source where it stands, and By who gave it as KIND/NAME, "" for the author of
	// the TrainJob: set also while nothing counts, as in a queue, and zero for none.
	After  time.Duration
	Source deadline.Source
	By     string
}

// LimitOf returns the limit of a TrainJob at the instant now, by the server's clock. signalbox tells
// whether Signalbox is installed, or may be: without it only what Trainer itself enforces is a limit.
// What another controller makes of the settings of a TrainJob that it runs is not known here.
func LimitOf(job *trainer.TrainJob, signalbox bool, now time.Time) Limit {
	var limit Limit
	if !job.ManagedByTrainer() {
		return limit
	}
	limit.After, limit.Source, limit.By = deadline.Limit(job)
	if signalbox {
		limit.Decision = deadline.Evaluate(job, now)
		return limit
	}
	if limit.Source != deadline.SourceSpec {
		return Limit{}
	}
	limit.Decision = deadline.EvaluateTrainer(job, now)
	return limit
}

// ActiveSince returns when the TrainJob last became active, also where it has no limit or is finished;
// the zero time while it is suspended, or that is not known yet. limit is that of LimitOf.
func ActiveSince(job *trainer.TrainJob, limit Limit, now time.Time) time.Time {
	switch {
	case !job.Active():
		return time.Time{}
	case limit.Decision.State != deadline.None:
		return limit.Decision.Start
	}
	return deadline.ActiveSince(job, now)
}
