package deadline

import (
	"time"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// stampLayout is RFC 3339 with all nine digits of the nanoseconds, so that stamps of equal
// zone sort as text.
const stampLayout = "2006-01-02T15:04:05.000000000Z07:00"

// ResumedAt returns the value that the annotation resumed-at of the TrainJob must have once
// the write that turns before into after is stored, or "" when it must be absent. before is
// nil on CREATE. It looks at nothing that a client could have sent for the annotation:
// on UPDATE the stored value counts, unless this very write starts or ends an active period.
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
