package v1alpha1

import (
	"fmt"
	"strconv"
	"time"
)

// Bounds of what is given in seconds. MaxSeconds, 136 years, is the largest that fits 32 bits;
// from 9223372037 on the nanoseconds would overflow 64 bits and lie in the past.
const (
	MinDeadlineSeconds = 1
	MinTTLSeconds      = 0
	MaxSeconds         = 4294967295
)

// None is the value of the annotations active-deadline-seconds and ttl-seconds-after-finished
// of a TrainJob that opts out of what a default would give it.
const None = "none"

// ParseSeconds reads the value of an annotation that is a whole number of seconds, from least to
// MaxSeconds. The error says what is allowed.
func ParseSeconds(value string, least int64) (time.Duration, error) {
	seconds, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("must be a whole number of seconds from %d to %d", least, int64(MaxSeconds))
	case seconds < least:
		return 0, fmt.Errorf("must be greater than or equal to %d", least)
	case seconds > MaxSeconds:
		return 0, fmt.Errorf("must be less than or equal to %d", int64(MaxSeconds))
	}
	return time.Duration(seconds) * time.Second, nil
}
