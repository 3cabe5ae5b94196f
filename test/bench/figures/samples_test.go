package figures

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// millis returns samples of so many milliseconds.
func millis(values ...int) Samples {
	var samples Samples
	for _, value := range values {
		samples = append(samples, time.Duration(value)*time.Millisecond)
	}
	return samples
}

// upTo returns samples of 1 to n milliseconds, in a mixed order.
func upTo(n int) Samples {
	var values []int
	for _, value := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		values = append(values, value+1)
	}
	return millis(values...)
}

func TestQuantile(t *testing.T) {
	for name, tc := range map[string]struct {
		samples Samples
		q       float64
		want    time.Duration
	}{
		"none":                                {nil, 0.5, 0},
		"one sample, nearly none of it":       {millis(7), 1e-9, 7 * time.Millisecond},
		"one sample, half":                    {millis(7), 0.5, 7 * time.Millisecond},
		"one sample, all":                     {millis(7), 1, 7 * time.Millisecond},
		"two samples, half":                   {millis(9, 7), 0.5, 7 * time.Millisecond},
		"two samples, a little more":          {millis(9, 7), 0.51, 9 * time.Millisecond},
		"two samples, all":                    {millis(9, 7), 1, 9 * time.Millisecond},
		"three samples, half":                 {millis(3, 1, 2), 0.5, 2 * time.Millisecond},
		"same samples":                        {millis(4, 4, 4), 0.99, 4 * time.Millisecond},
		"a hundred, 95 %":                     {upTo(100), 0.95, 95 * time.Millisecond},
		"a hundred, 99 %":                     {upTo(100), 0.99, 99 * time.Millisecond},
		"a hundred, all":                      {upTo(100), 1, 100 * time.Millisecond},
		"a hundred and one, 99 %":             {upTo(101), 0.99, 100 * time.Millisecond},
		"a product a little above the number": {upTo(100), 0.07, 7 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(tc.samples)
			if got := tc.samples.Quantile(tc.q); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(given, tc.samples); diff != "" {
				t.Errorf("the samples have changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestQuantileRank compares with the rank by whole numbers, for many numbers of samples.
func TestQuantileRank(t *testing.T) {
	for n := 1; n <= 2000; n++ {
		samples := make(Samples, n)
		for i := range samples {
			samples[i] = time.Duration(i + 1)
		}
		for _, percent := range []int{50, 95, 99} {
			want := time.Duration((n*percent + 99) / 100)
			if got := samples.Quantile(float64(percent) / 100); got != want {
				t.Fatalf("%d %% of %d: rank %d, want %d", percent, n, got, want)
			}
		}
	}
}

func TestDistribution(t *testing.T) {
	for name, tc := range map[string]struct {
		samples Samples
		want    []Point
	}{
		"none":        {nil, nil},
		"one":         {millis(7), []Point{{7, 1}}},
		"four":        {millis(4, 1, 3, 2), []Point{{1, 0.25}, {2, 0.5}, {3, 0.75}, {4, 1}}},
		"some alike":  {millis(5, 5), []Point{{5, 0.5}, {5, 1}}},
		"in parts":    {Samples{1500 * time.Microsecond}, []Point{{1.5, 1}}},
		"not a whole": {millis(3, 1, 2), []Point{{1, 1.0 / 3}, {2, 2.0 / 3}, {3, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.samples.Distribution()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDistributionOfMany checks that a plot of many samples has few points, from the least
// sample to the greatest, each the share of samples up to its own.
func TestDistributionOfMany(t *testing.T) {
	for _, n := range []int{99, 100, 101, 199, 200, 1000, 5003} {
		points := upTo(n).Distribution()
		if len(points) > 102 || len(points) < 50 {
			t.Errorf("%d samples: %d points", n, len(points))
		}
		for i, point := range points {
			if want := point.X / float64(n); point.Y != want || i > 0 && point.X <= points[i-1].X {
				t.Errorf("%d samples: point %d is %v, want the share %v", n, i, point, want)
			}
		}
		if first, last := points[0].X, points[len(points)-1].X; first != 1 || last != float64(n) {
			t.Errorf("%d samples: points from %v to %v", n, first, last)
		}
	}
}

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0":          0,
		"0.00 µs":    time.Nanosecond,
		"0.84 µs":    840 * time.Nanosecond,
		"9.99 µs":    9994 * time.Nanosecond,
		"10 µs":      9995 * time.Nanosecond,
		"999 µs":     999499 * time.Nanosecond,
		"1.00 ms":    999500 * time.Nanosecond,
		"31.42 ms":   31416 * time.Microsecond,
		"999.99 ms":  999994 * time.Microsecond,
		"1.00 s":     999995 * time.Microsecond,
		"90.00 s":    90 * time.Second,
		"-250 µs":    -250 * time.Microsecond,
		"-1.50 ms":   -1500 * time.Microsecond,
		"-3600.00 s": -time.Hour,
	} {
		t.Run(want, func(t *testing.T) {
			if got := Duration(d); got != want {
				t.Errorf("%d ns: %s", d, got)
			}
		})
	}
}

func TestRow(t *testing.T) {
	for name, tc := range map[string]struct {
		samples Samples
		want    []string
	}{
		"none":      {nil, []string{"-", "-", "-", "-"}},
		"one":       {millis(7), []string{"7.00 ms", "7.00 ms", "7.00 ms", "7.00 ms"}},
		"a hundred": {upTo(100), []string{"50.00 ms", "95.00 ms", "99.00 ms", "100.00 ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.samples.Row()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(got) != len(Quantiles) {
				t.Errorf("%d cells for %d columns", len(got), len(Quantiles))
			}
		})
	}
}
