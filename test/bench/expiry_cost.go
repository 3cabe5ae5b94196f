package main

import (
	"context"
	"runtime"
	"syscall"
	"time"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// endCost is what Signalbox's reconciler took while TrainJobs ended.
type endCost struct {
	// requests to the API server by method; refused are those that it answered with 429.
	requests map[string]float64
	refused  float64
	// cpu is in seconds.
	cpu float64
}

// costOf reads what the reconciler has taken so far.
func costOf(ctx context.Context, reconciler *cluster.Process) (endCost, error) {
	cost := endCost{requests: map[string]float64{}}
	var err error
	for _, method := range []string{"GET", "PATCH", "DELETE", "POST"} {
		if cost.requests[method], err = figure(ctx, reconciler.MetricsURL, "rest_client_requests_total", "method", method); err != nil {
			return cost, err
		}
	}
	if cost.refused, err = figure(ctx, reconciler.MetricsURL, "rest_client_requests_total", "code", "429"); err != nil {
		return cost, err
	}
	cost.cpu, err = figure(ctx, reconciler.MetricsURL, "process_cpu_seconds_total")
	return cost, err
}

// since returns what was taken after the earlier reading.
func (c endCost) since(earlier endCost) endCost {
	taken := endCost{requests: map[string]float64{}, refused: c.refused - earlier.refused, cpu: c.cpu - earlier.cpu}
	for method, count := range c.requests {
		taken.requests[method] = count - earlier.requests[method]
	}
	return taken
}

// share measures what of the machine's processors this process takes from now on.
func share() func() float64 {
	began, before := time.Now(), ownCPU()
	return func() float64 {
		return (ownCPU() - before).Seconds() / time.Since(began).Seconds() / float64(runtime.NumCPU())
	}
}

// ownCPU is the processor time that this process has taken.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it never fails for the process itself
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
