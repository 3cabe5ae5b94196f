package figures

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Samples are durations of one thing, in any order.
type Samples []time.Duration

// Quantile returns the least sample that is not exceeded by this share of them, 0 < q <= 1: the
// nearest rank. It returns 0 where there are none.
func (s Samples) Quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	// A product such as 0.07*100 is a little more than the whole number that it stands for.
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-6))
	return sorted[max(rank, 1)-1]
}

// Quantiles are the columns that Row fills.
var Quantiles = []string{"p50", "p95", "p99", "max"}

// Row returns the cells of a table's row under Quantiles, each "-" where there are no samples.
func (s Samples) Row() []string {
	if len(s) == 0 {
		return []string{"-", "-", "-", "-"}
	}
	return []string{Duration(s.Quantile(0.5)), Duration(s.Quantile(0.95)), Duration(s.Quantile(0.99)), Duration(s.Quantile(1))}
}

// Distribution returns the share of samples, up to 1, over their time in milliseconds, as points
// of a plot: no more than about a hundred of them, the least and the greatest sample among them.
func (s Samples) Distribution() []Point {
	sorted := slices.Sorted(slices.Values(s))
	step := max(1, (len(sorted)+99)/100)
	var points []Point
	for i, sample := range sorted {
		if i == 0 || (i+1)%step == 0 || i == len(sorted)-1 {
			points = append(points, Point{X: Milliseconds(sample), Y: float64(i+1) / float64(len(sorted))})
		}
	}
	return points
}

// Milliseconds returns the duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Duration writes a duration for people: in microseconds below a millisecond, in milliseconds
// below a second, else in seconds. Differences may be negative.
func Duration(d time.Duration) string {
	amount := d.Abs()
	switch {
	case amount == 0:
		return "0"
	// A limit is that from which on rounding gives the next unit.
	case amount < 9995*time.Nanosecond:
		return fmt.Sprintf("%.2f µs", float64(d)/float64(time.Microsecond))
	case amount < 999500*time.Nanosecond:
		return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond))
	case amount < 999995*time.Microsecond:
		return fmt.Sprintf("%.2f ms", Milliseconds(d))
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}
