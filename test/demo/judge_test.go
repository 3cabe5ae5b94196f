package main

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	const limit = 10 * time.Second
	stamp := instant.Format(time.RFC3339Nano)
	for name, tc := range map[string]struct {
		stamp, writer string
		// off is when Failed was seen, from stamp and limit on.
		off           time.Duration
		want, wantErr string
	}{
		"a little late": {
			stamp: stamp, writer: "signalbox", off: 20 * time.Millisecond,
			want: "Failed 0.02 s after stamp + 10 s, set by signalbox",
		},
		"as late as may be": {
			stamp: stamp, writer: "signalbox", off: 2 * time.Second,
			want: "Failed 2.00 s after stamp + 10 s, set by signalbox",
		},
		"too late": {
			stamp: stamp, writer: "trainer", off: 2010 * time.Millisecond,
			wantErr: "too late: Failed 2.01 s after stamp + 10 s, set by trainer; at most 2s is allowed",
		},
		"Trainer is early by its rounding": {
			stamp: stamp, writer: "trainer", off: -260 * time.Millisecond,
			want: "Failed 0.26 s before stamp + 10 s, set by trainer, which counts in whole seconds",
		},
		"Trainer is early by more than its rounding": {
			stamp: stamp, writer: "trainer", off: -time.Second,
			wantErr: "too early: Failed 1.00 s before stamp + 10 s, set by trainer; less than 1s is allowed",
		},
		"signalbox is early": {
			stamp: stamp, writer: "signalbox", off: -10 * time.Millisecond,
			wantErr: "too early: Failed 0.01 s before stamp + 10 s, set by signalbox, which must never be early",
		},
		"the stamp is lost": {
			wantErr: `stamp: parsing time "" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "" as "2006"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := judge(tc.stamp, limit, instant.Add(limit+tc.off), tc.writer)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if got != tc.want || gotErr != tc.wantErr {
				t.Errorf("\n got %q, error %q\nwant %q, error %q", got, gotErr, tc.want, tc.wantErr)
			}
		})
	}
}
