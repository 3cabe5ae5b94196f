package list

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Changed tells whether the runtime of a TrainJob has changed since the content was taken that the
// TrainJob runs on.
type Changed string

const (
	// Unchanged: it has not.
	Unchanged Changed = "no"
	// HasChanged: it has.
	HasChanged Changed = "yes"
	// Gone: the runtime is not there any more.
	Gone Changed = "gone"
	// Unknown: that cannot be told.
	Unknown Changed = "unknown"
	// Follows: the TrainJob has not started yet, and will run on the runtime as it is then.
	Follows Changed = "follows"
)

// Row is what list says of one TrainJob. Its JSON is what scripts get.
type Row struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	UID       types.UID     `json:"uid"`
	State     kubectl.State `json:"state"`
	Created   time.Time     `json:"created"`
	// ActiveSince is when it last became active; zero while it is suspended, or that is not known yet.
	ActiveSince time.Time `json:"activeSince,omitzero"`
	// Deadline is when it will be stopped, and SecondsLeft how long that is away, 0 when it is over; zero
	// and nil where nothing counts.
	Deadline    time.Time `json:"deadline,omitzero"`
	SecondsLeft *int64    `json:"secondsLeft,omitempty"`
	// LimitSeconds is how long it may be active each time, LimitSource where that stands, and LimitBy
	// who gave it as KIND/NAME; zero for no limit, and LimitBy where it is the author's own.
	LimitSeconds int64  `json:"limitSeconds,omitempty"`
	LimitSource  string `json:"limitSource,omitempty"`
	LimitBy      string `json:"limitBy,omitempty"`
	// Finished is when it finished; zero while it has not.
	Finished time.Time `json:"finished,omitzero"`
	// Runtime is the one that it refers to, as KIND/NAME.
	Runtime string `json:"runtime"`
	// RunsOn says what it is built from, and Revision what that is of; "" where it is not known.
	RunsOn   kubectl.From `json:"runsOn"`
	Revision string       `json:"revision,omitempty"`
	// LiveRevision is of the runtime now; "" where it is gone or not known.
	LiveRevision string  `json:"liveRevision,omitempty"`
	Changed      Changed `json:"changed"`
	// Queue is the LocalQueue of Kueue that it belongs to; "" for none.
	Queue string `json:"queue,omitempty"`
	// Position is its place in that, from 1 on; 0 where it does not wait there, or that is not known.
	Position int `json:"position,omitempty"`

	limit time.Duration
}

// left is how much time is left at the instant now, where a deadline counts.
func (r *Row) left(now time.Time) time.Duration { return r.Deadline.Sub(now) }

// counts tells whether a deadline counts.
func (r *Row) counts() bool { return !r.Deadline.IsZero() }

// Beside is what is known of a TrainJob beside itself.
type Beside struct {
	// Signalbox is installed, or may be.
	Signalbox bool
	// Facts of what it is built from.
	Facts kubectl.Facts
	// Queued tells whether Kueue holds it back, Queue names its LocalQueue, and Position is its place.
	Queued   bool
	Queue    string
	Position int
}

// RowOf makes the row of a TrainJob at the instant now, by the server's clock.
func RowOf(job *trainer.TrainJob, of Beside, now time.Time) Row {
	limit := kubectl.LimitOf(job, of.Signalbox, now)
	built := kubectl.BuiltFrom(of.Facts)
	ref := job.Spec.RuntimeRef
	row := Row{
		Namespace: job.Namespace, Name: job.Name, UID: job.UID,
		State:        kubectl.StateOf(job, of.Queued, of.Facts.JobSet, limit.Decision),
		Created:      job.CreationTimestamp.UTC(),
		ActiveSince:  kubectl.ActiveSince(job, limit, now).UTC(),
		LimitSeconds: int64(limit.After / time.Second),
		LimitSource:  string(limit.Source),
		LimitBy:      limit.By,
		Runtime:      ref.GroupVersionKind().Kind + "/" + ref.Name,
		RunsOn:       built.From,
		Revision:     built.Revision,
		LiveRevision: of.Facts.Live.Revision,
		Changed:      changed(job, built, of.Facts.Live),
		Queue:        of.Queue,
		limit:        limit.After,
	}
	if end := job.FinishedAt(); end != nil {
		row.Finished = end.LastTransitionTime.UTC()
	}
	if at := limit.Decision.Deadline; !at.IsZero() {
		row.Deadline = at.UTC()
		seconds := int64(max(row.left(now), 0) / time.Second)
		row.SecondsLeft = &seconds
	}
	if row.State == kubectl.Queued {
		row.Position = of.Position
	}
	return row
}

// changed says how what the TrainJob runs on stands to its runtime.
func changed(job *trainer.TrainJob, built kubectl.Built, live kubectl.Live) Changed {
	switch different, known := built.Changed(live); {
	case live.Gone:
		return Gone
	case built.From == kubectl.FromLive && !job.Active():
		return Follows
	case !known:
		return Unknown
	case different:
		return HasChanged
	}
	return Unchanged
}

// Sort puts first what ends first: the TrainJobs whose deadline counts by the time that is left, then those
// that run without one, those that are queued by their place, those that are suspended, and at last the
// finished ones, the latest first.
func Sort(rows []Row) { slices.SortFunc(rows, compare) }

func compare(a, b Row) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		a.Deadline.Compare(b.Deadline),
		b.Finished.Compare(a.Finished),
		cmp.Compare(queueOf(a), queueOf(b)),
		cmp.Compare(unplaced(a), unplaced(b)),
		cmp.Compare(a.Position, b.Position),
		a.ActiveSince.Compare(b.ActiveSince),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// rank is by which a row comes before those of another kind.
func rank(row Row) int {
	switch {
	case row.counts():
		return 0
	case row.State == kubectl.Finishing:
		return 1
	case row.State == kubectl.Running:
		return 2
	case row.State == kubectl.Queued:
		return 3
	case row.State == kubectl.Suspended:
		return 4
	}
	return 5
}

// queueOf names the queue in which a TrainJob waits; "" where it does not.
func queueOf(row Row) string {
	if row.State != kubectl.Queued {
		return ""
	}
	return row.Namespace + "/" + row.Queue
}

// unplaced is 1 for a TrainJob that waits and whose place is not known.
func unplaced(row Row) int {
	if row.State == kubectl.Queued && row.Position == 0 {
		return 1
	}
	return 0
}
