package explain

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// span says roughly how long something is, such as 5h or 3m10s.
func span(length time.Duration) string { return duration.HumanDuration(length.Truncate(time.Second)) }

// fromNow says how far an instant is away from now.
func fromNow(at, now time.Time) string {
	if rest := at.Sub(now); rest > 0 {
		// Rounded up: what is away for a moment yet is not 0s away.
		return "in " + span(rest+time.Second-1)
	}
	return span(now.Sub(at)) + " ago"
}
