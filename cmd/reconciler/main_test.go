package main

import (
	"runtime/debug"
	"testing"
)

func TestLimitGarbage(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for _, tc := range []struct {
		own  string
		want int
	}{{"200", 100}, {"off", 100}, {"", garbage}} {
		limitGarbage(tc.own)
		if got := debug.SetGCPercent(100); got != tc.want {
			t.Errorf("with GOGC=%q: %d, want %d", tc.own, got, tc.want)
		}
	}
}
