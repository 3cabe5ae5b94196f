package list

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// barWidth is how many characters a bar has.
const barWidth = 10

// urgency tells how much of its time a TrainJob has left.
type urgency int

const (
	calm    urgency = iota // a quarter or more
	soon                   // less
	urgent                 // a tenth or less
	counted                // none
)

// urgencyOf returns the urgency of what is left of a limit.
func urgencyOf(left, limit time.Duration) urgency {
	switch {
	case left <= 0:
		return counted
	case left <= limit/10:
		return urgent
	case left < limit/4:
		return soon
	}
	return calm
}

// leftText says how much time is left; none is 0s.
func leftText(left time.Duration) string {
	// Rounded up: what is left for a moment yet is not 0s.
	return duration.HumanDuration((max(left, 0) + time.Second - 1).Truncate(time.Second))
}

// bar draws what is left of a limit, which is not zero. It is full at the start, and empty only when
// nothing is left.
func bar(left, limit time.Duration, unicode bool) string {
	share := min(max(float64(left)/float64(limit), 0), 1)
	filled := int(share * barWidth)
	if float64(filled) < share*barWidth {
		filled++
	}
	full, empty := "#", "."
	if unicode {
		full, empty = "█", "░"
	}
	return strings.Repeat(full, filled) + strings.Repeat(empty, barWidth-filled)
}

// instant writes a time for a column: the time of day where it is of the same day as now, else with the
// date. The zero time is "-".
func instant(at, now time.Time, zone *time.Location) string {
	if at.IsZero() {
		return "-"
	}
	at, now = at.In(zone), now.In(zone)
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format(time.TimeOnly)
	case at.Sub(now).Abs() < 300*24*time.Hour:
		return at.Format("Jan-02 15:04")
	}
	return at.Format(time.DateOnly)
}

// exactly writes a time with all that there is to say; the zero time is "-".
func exactly(at time.Time, zone *time.Location) string {
	if at.IsZero() {
		return "-"
	}
	return at.In(zone).Format(time.RFC3339)
}
