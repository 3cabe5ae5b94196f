package deadline

import (
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestResumedAt(t *testing.T) {
	now := time.Date(2026, time.March, 1, 14, 0, 0, 120, time.FixedZone("", 2*60*60))
	const fresh = "2026-03-01T12:00:00.000000120Z"
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	for name, tc := range map[string]struct {
		before, after *builder.TrainJobBuilder
		want          string
	}{
		"created active":                             {after: job(), want: fresh},
		"created with suspend false":                 {after: job().Suspend(false), want: fresh},
		"created suspended":                          {after: job().Suspended(), want: ""},
		"created active with a stamp from elsewhere": {after: job().StampText("old"), want: fresh},
		"created suspended with a stamp":             {after: job().Suspended().StampText("old"), want: ""},
		"resumed":                                    {before: job().Suspended(), after: job().Suspend(false), want: fresh},
		"resumed by removing suspend":                {before: job().Suspended(), after: job(), want: fresh},
		"resumed with a forged stamp":                {before: job().Suspended(), after: job().StampText("2030-01-01T00:00:00Z"), want: fresh},
		"resumed over a stamp left stale":            {before: job().Suspended().StampText("old"), after: job().StampText("old"), want: fresh},
		"suspended":                                  {before: job().StampText("old"), after: job().Suspended().StampText("old"), want: ""},
		"still active keeps its stamp":               {before: job().StampText("old"), after: job().StampText("old"), want: "old"},
		"from absent to false is no resume":          {before: job().StampText("old"), after: job().Suspend(false).StampText("old"), want: "old"},
		"a forged stamp is put back":                 {before: job().StampText("old"), after: job().StampText("forged"), want: "old"},
		"a removed stamp is put back":                {before: job().StampText("old"), after: job(), want: "old"},
		"a stamp that never was is not invented":     {before: job(), after: job().StampText("forged"), want: ""},
		"still suspended stays without":              {before: job().Suspended(), after: job().Suspended().StampText("forged"), want: ""},
		"still suspended loses a stale one":          {before: job().Suspended().StampText("old"), after: job().Suspended().StampText("old"), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before *trainer.TrainJob
			if tc.before != nil {
				before = tc.before.Obj()
			}
			if got := ResumedAt(before, tc.after.Obj(), now); got != tc.want {
				t.Errorf("ResumedAt = %q, want %q", got, tc.want)
			}
		})
	}
}

// A creation that is admitted twice counts as of the first time; nobody gains time by a stamp
// of their own.
func TestNow(t *testing.T) {
	clock := time.Date(2026, time.March, 1, 12, 0, 0, 120, time.UTC)
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	for name, tc := range map[string]struct {
		before, after *builder.TrainJobBuilder
		age           time.Duration
	}{
		"created":                              {after: job()},
		"created once more":                    {after: job().StampText("2026-03-01T11:59:59.000000120Z"), age: time.Second},
		"created once more, at once":           {after: job().StampText("2026-03-01T12:00:00.000000120Z")},
		"created once more, late":              {after: job().StampText("2026-03-01T11:59:55.000000120Z"), age: 5 * time.Second},
		"created with an older stamp":          {after: job().StampText("2026-03-01T11:59:55.000000119Z")},
		"created with a stamp that is to come": {after: job().StampText("2026-03-01T12:00:00.000000121Z")},
		"created with none that is one":        {after: job().StampText("old")},
		"updated":                              {before: job(), after: job().StampText("2026-03-01T11:59:59.000000120Z")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before *trainer.TrainJob
			if tc.before != nil {
				before = tc.before.Obj()
			}
			if got := Now(before, tc.after.Obj(), clock); !got.Equal(clock.Add(-tc.age)) {
				t.Errorf("Now = %v, want %v before %v", got, tc.age, clock)
			}
		})
	}
}

// The stamp that is written must be the start that is read.
func TestResumedAtIsTheStart(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 987654321, time.UTC)
	job := builder.TrainJob("ns", "job").Created(now).Deadline(60)
	job.StampText(ResumedAt(nil, job.Obj(), now))
	if got := Evaluate(job.Obj(), now).Start; !got.Equal(now) {
		t.Errorf("start = %v, want %v", got, now)
	}
}
