package deadline

import (
	"time"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// stampLayout is RFC 3339 with all nine digits of the nanoseconds, so that stamps of equal
// zone sort as text.
const stampLayout = "2006-01-02T15:04:05.000000000Z07:00"

// again is how long after its first call a webhook may be called once more for one creation:
// longer than a client waits for the API server's webhooks, as a rule.
const again = 5 * time.Second

// Now returns the instant that a write of the TrainJob counts as. A creation that comes with a
// stamp of a moment ago has been stamped by the call before this one: that instant stays, so
// that being called twice makes no difference. A client that sends such a stamp gives up that
// much of its time.
func Now(before, after *trainer.TrainJob, clock time.Time) time.Time {
	if before != nil {
		return clock
	}
	at, err := time.Parse(time.RFC3339Nano, after.Annotations[v1alpha1.AnnotationResumedAt])
	if age := clock.Sub(at); err != nil || age < 0 || age > again {
		return clock
	}
	return at
}

// ResumedAt returns the value that the annotation resumed-at of the TrainJob must have once
// the write that turns before into after is stored, or "" when it must be absent. before is
// nil on CREATE. now is the instant that the write counts as. It looks at nothing that a
// client could have sent for the annotation: on UPDATE the stored value counts, unless this very
// write starts or ends an active period.
func ResumedAt(before, after *trainer.TrainJob, now time.Time) string {
	switch {
	case !after.Active():
		return ""
	case before == nil || !before.Active():
		return now.UTC().Format(stampLayout)
	default:
		return before.Annotations[v1alpha1.AnnotationResumedAt]
	}
}
