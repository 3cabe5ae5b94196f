package main

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

const (
	// lateTolerance is how late Failed may be seen.
	lateTolerance = 2 * time.Second
	// earlyTolerance is how early Trainer may be: it counts from the time that it wrote on
	// the condition Suspended, which the API keeps in whole seconds.
	earlyTolerance = time.Second
)

// judge tells in words how well the deadline was kept, counted from the stamp of the last
// resume, when Failed was seen at the instant at. It is an error if it was not.
func judge(stamp string, limit time.Duration, at time.Time, writer string) (string, error) {
	start, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return "", fmt.Errorf("stamp: %w", err)
	}
	late := at.Sub(start) - limit
	early := -late
	verdict := fmt.Sprintf("Failed %.2f s after stamp + %.0f s, set by %s", late.Seconds(), limit.Seconds(), writer)
	if early > 0 {
		verdict = fmt.Sprintf("Failed %.2f s before stamp + %.0f s, set by %s", early.Seconds(), limit.Seconds(), writer)
	}
	switch {
	case late > lateTolerance:
		return "", fmt.Errorf("too late: %s; at most %s is allowed", verdict, lateTolerance)
	case early > 0 && writer == v1alpha1.FieldManager:
		return "", fmt.Errorf("too early: %s, which must never be early", verdict)
	case early >= earlyTolerance:
		return "", fmt.Errorf("too early: %s; less than %s is allowed", verdict, earlyTolerance)
	case early > 0:
		verdict += ", which counts in whole seconds"
	}
	return verdict, nil
}
