package list

import (
	"testing"
	"time"
)

func TestLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		left, limit time.Duration
		text, bar   string
		urgency     urgency
	}{
		"all":                 {time.Hour, time.Hour, "60m", "##########", calm},
		"more than all":       {2 * time.Hour, time.Hour, "120m", "##########", calm},
		"a little less":       {time.Hour - time.Second, time.Hour, "59m", "##########", calm},
		"a half":              {30 * time.Minute, time.Hour, "30m", "#####.....", calm},
		"a quarter":           {15 * time.Minute, time.Hour, "15m", "###.......", calm},
		"less than a quarter": {15*time.Minute - time.Second, time.Hour, "14m", "###.......", soon},
		"a tenth":             {6 * time.Minute, time.Hour, "6m", "#.........", urgent},
		"a moment":            {time.Millisecond, time.Hour, "1s", "#.........", urgent},
		"nothing":             {0, time.Hour, "0s", "..........", counted},
		"less than that":      {-time.Minute, time.Hour, "0s", "..........", counted},
		"136 years":           {4294967295 * time.Second, 4294967295 * time.Second, "136y", "##########", calm},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leftText(tc.left); got != tc.text {
				t.Errorf("leftText is %q, want %q", got, tc.text)
			}
			if got := bar(tc.left, tc.limit, false); got != tc.bar {
				t.Errorf("bar is %q, want %q", got, tc.bar)
			}
			if got := urgencyOf(tc.left, tc.limit); got != tc.urgency {
				t.Errorf("urgencyOf is %d, want %d", got, tc.urgency)
			}
		})
	}
	if got := bar(time.Minute, 2*time.Minute, true); got != "█████░░░░░" {
		t.Errorf("in Unicode it is %q", got)
	}
}

func TestInstant(t *testing.T) {
	zone := time.FixedZone("east", 2*60*60)
	now := time.Date(2026, time.March, 1, 22, 30, 0, 0, time.UTC) // the second day of March in the zone
	for name, tc := range map[string]struct {
		at             time.Time
		short, exactly string
	}{
		"none":         {time.Time{}, "-", "-"},
		"today":        {now.Add(time.Hour), "01:30:00", "2026-03-02T01:30:00+02:00"},
		"yesterday":    {now.Add(-time.Hour), "Mar-01 23:30", "2026-03-01T23:30:00+02:00"},
		"next century": {now.AddDate(100, 0, 0), "2126-03-02", "2126-03-02T00:30:00+02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := instant(tc.at, now, zone); got != tc.short {
				t.Errorf("instant is %q, want %q", got, tc.short)
			}
			if got := exactly(tc.at, zone); got != tc.exactly {
				t.Errorf("exactly is %q, want %q", got, tc.exactly)
			}
		})
	}
}
