package kubectl

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestSkew(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// answer is sent and received, in milliseconds after noon by this machine's clock, and dated in seconds
	// after noon by the server's.
	type answer struct{ sent, received, date int64 }
	for name, tc := range map[string]struct {
		answers []answer
		want    time.Duration
		known   bool
	}{
		"nothing was asked":                   {},
		"the same clock":                      {[]answer{{100, 150, 0}}, 0, true},
		"the same to the second":              {[]answer{{900, 950, 1}}, 0, true},
		"an hour ahead":                       {[]answer{{500, 500, 3600}}, time.Hour, true},
		"an hour behind":                      {[]answer{{500, 500, -3600}}, -time.Hour, true},
		"a slow answer is a wide range":       {[]answer{{0, 20_000, 15}}, 0, true},
		"narrowed by a quick one":             {[]answer{{0, 20_000, 30}, {20_100, 20_100, 35}}, 15400 * time.Millisecond, true},
		"narrowed by many":                    {[]answer{{0, 0, 10}, {900, 900, 10}, {100, 100, 10}}, 10 * time.Second, true},
		"one of the clocks was set meanwhile": {[]answer{{0, 0, 3600}, {1000, 1000, 1}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := times{clock: clocktesting.NewFakePassiveClock(noon)}
			for _, a := range tc.answers {
				at := func(ms int64) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
				ts.answer(at(a.sent), at(a.received), at(a.date*1000))
			}
			got, known := ts.skew()
			if known != tc.known || (got-tc.want).Abs() > 600*time.Millisecond {
				t.Errorf("skew %s, %v; want %s, %v", got, known, tc.want, tc.known)
			}
		})
	}
}
