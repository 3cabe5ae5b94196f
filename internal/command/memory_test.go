package command

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, tc := range map[string]struct {
		limit, own string
		want       int64
		wantError  string
	}{
		"none":               {want: math.MaxInt64},
		"one":                {limit: "536870912", want: 483183819},
		"one of the runtime": {limit: "536870912", own: "1GiB", want: math.MaxInt64},
		"no number":          {limit: "512Mi", want: math.MaxInt64, wantError: `MEMORY_LIMIT must be a number of bytes, not "512Mi"`},
		"nothing":            {limit: "0", want: math.MaxInt64, wantError: `MEMORY_LIMIT must be a number of bytes, not "0"`},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64)
			got := ""
			if err := limitMemory(tc.limit, tc.own); err != nil {
				got = err.Error()
			}
			if got != tc.wantError {
				t.Errorf("error %q, want %q", got, tc.wantError)
			}
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("limit %d, want %d", got, tc.want)
			}
		})
	}
}
