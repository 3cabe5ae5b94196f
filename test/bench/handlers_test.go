package main

import (
	"slices"
	"testing"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

const goBenchmarks = `goos: linux
goarch: amd64
pkg: github.com/signalbox-dev/signalbox/internal/admission
cpu: A Processor with 2 things-8
BenchmarkTrainJobMutator/create/runtime=2KB/trainjob=2KB-2         	   12742	     30000 ns/op	  93.09 MB/s	    5000 B/op	      70 allocs/op
BenchmarkTrainJobMutator/create/runtime=2KB/trainjob=2KB-2         	   12742	     10000 ns/op	  93.09 MB/s	    6000 B/op	      72 allocs/op
BenchmarkTrainJobMutator/create/runtime=2KB/trainjob=2KB-2         	   12742	     20000.5 ns/op	  93.09 MB/s	    7000 B/op	      71 allocs/op
BenchmarkRuntimeValidator/rename/users=100/runtime=20KB-2         	     265	    905342 ns/op	  42.20 MB/s	  326578 B/op	    3707 allocs/op
BenchmarkWorkloadMutator/as_it_was-2                                       	   12624	     19112 ns/op	    7402 B/op	     123 allocs/op
PASS
ok  	github.com/signalbox-dev/signalbox/internal/admission	15.659s
`

func TestParseRuns(t *testing.T) {
	runs, err := parseRuns([]byte(goBenchmarks))
	if err != nil {
		t.Fatal(err)
	}
	want := []handlerRun{
		{"TrainJobMutator/create/runtime=2KB/trainjob=2KB", 20000.5, 6000, 71},
		{"RuntimeValidator/rename/users=100/runtime=20KB", 905342, 326578, 3707},
		{"WorkloadMutator/as_it_was", 19112, 7402, 123},
	}
	if got := medians(runs); !slices.Equal(got, want) {
		t.Errorf("medians = %v, want %v", got, want)
	}
}

func TestParseRunsRefuses(t *testing.T) {
	for name, out := range map[string]string{
		"nothing":          "PASS\n",
		"no number":        "BenchmarkX-2 100 fast ns/op\n",
		"a value too many": "BenchmarkX-2 100 5 ns/op 7\n",
	} {
		if runs, err := parseRuns([]byte(out)); err == nil {
			t.Errorf("%s: read as %v", name, runs)
		}
	}
}

func TestHandlersReport(t *testing.T) {
	runs, err := parseRuns([]byte(goBenchmarks))
	if err != nil {
		t.Fatal(err)
	}
	report, err := handlersReport(runs)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"TrainJobMutator", "create", "runtime 2KB, trainjob 2KB", "20.0 µs", "6.0 KB", "71"},
		{"RuntimeValidator", "rename, users 100", "runtime 20KB", "905.3 µs", "326.6 KB", "3707"},
		{"WorkloadMutator", "as it was", "", "19.1 µs", "7.4 KB", "123"},
	}
	if !slices.EqualFunc(report.Tables[0].Rows, want, slices.Equal) {
		t.Errorf("rows %v, want %v", report.Tables[0].Rows, want)
	}
	if target := report.Targets[0]; !target.Met || target.Got != "20.0 µs" {
		t.Errorf("target %+v", target)
	}
	series := report.Plots[0].Series
	if len(series) != 2 || series[0].Name != "TrainJobMutator create" || !slices.Equal(series[0].Points, []figures.Point{{X: 2, Y: 20.0005}}) {
		t.Errorf("series %+v", series)
	}
	if _, err := handlersReport(runs[3:]); err == nil {
		t.Error("a report without the benchmark of the target")
	}
}

// TrainJobs of another size are on no line.
func TestRuntimeSize(t *testing.T) {
	for sizes, want := range map[string]float64{
		"runtime 2KB, trainjob 2KB": 2, "runtime 300KB": 300, "runtime 2KB, trainjob 1MB": 0, "trainjob 2KB": 0, "": 0,
	} {
		if got, found := runtimeSize(sizes); got != want || found != (want > 0) {
			t.Errorf("runtimeSize(%q) = %v, %v, want %v", sizes, got, found, want)
		}
	}
}
