package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

// What was aimed at with the most TrainJobs.
const (
	scheduledWithin = 20 * time.Second
	memoryBound     = 300e6
	deniedWithin    = time.Second
)

// scaleReport makes tables, plots and targets of the figures, which are in the order of their
// size; those at rest were taken over this time.
func scaleReport(found []scaleFigures, rest time.Duration) *figures.Report {
	last := found[len(found)-1]
	report := &figures.Report{
		Title: "How the reconciler and the webhook start, and what they cost at rest, with many TrainJobs that have deadlines",
		Notes: []string{
			"Trainer, JobSet and the controller manager do not run. All TrainJobs are active and sealed, with a deadline in 30 days and a runtime of 1 KB, in 50 namespaces: one state of one runtime, of which the caches keep what they all have in common once; " +
				"beside each stand the TrainingRuntimeSnapshot and the ConfigMap that Signalbox keeps. They were copied into etcd.",
			fmt.Sprintf("At rest is over %s, %s after the start. Requests by the reconciler at rest include the renewals of its Lease, one in two seconds (PUT).", rest, min(settle, rest)),
		},
	}
	start := figures.Table{Title: "Start of the reconciler", Columns: []string{"TrainJobs", "caches filled", "all scheduled after that", "CPU", "resident", "requests"}}
	resting := figures.Table{Title: "At rest", Columns: []string{"TrainJobs", "reconciler", "CPU a minute", "requests a minute", "webhook", "CPU a minute", "requests a minute"}}
	guarded := figures.Table{Title: "Dry runs on the runtime of all TrainJobs, median of 9", Columns: []string{"TrainJobs", "deletion, denied", "edit of a value", "deletion of an unused runtime"}}
	var memory [2]figures.Series
	scheduled := figures.Series{Name: "reconciler: all scheduled"}
	filled := figures.Series{Name: "reconciler: caches filled"}
	memory[0].Name, memory[1].Name = "reconciler", "webhook"
	for _, f := range found {
		jobs := thousands(f.jobs)
		start.Rows = append(start.Rows, []string{jobs, seconds(f.filled), seconds(f.scheduled), fmt.Sprintf("%.1f s", f.reconciler.cpuAtStart), megabytes(f.reconciler.memoryAtStart), byMethod(f.reconciler.requestsAtStart)})
		resting.Rows = append(resting.Rows, []string{
			jobs, megabytes(f.reconciler.memoryAtRest), fmt.Sprintf("%.2f s", f.reconciler.cpuAtRest), byMethod(f.reconciler.requestsAtRest),
			megabytes(f.webhook.memoryAtRest), fmt.Sprintf("%.2f s", f.webhook.cpuAtRest), byMethod(f.webhook.requestsAtRest),
		})
		guarded.Rows = append(guarded.Rows, []string{jobs, millis(f.denied), millis(f.edited), millis(f.unused)})
		x := float64(f.jobs)
		memory[0].Points = append(memory[0].Points, figures.Point{X: x, Y: f.reconciler.memoryAtRest / 1e6})
		memory[1].Points = append(memory[1].Points, figures.Point{X: x, Y: f.webhook.memoryAtRest / 1e6})
		filled.Points = append(filled.Points, figures.Point{X: x, Y: f.filled.Seconds()})
		scheduled.Points = append(scheduled.Points, figures.Point{X: x, Y: (f.filled + f.scheduled).Seconds()})
	}
	report.Tables = []figures.Table{start, resting, guarded}
	report.Plots = []figures.Plot{
		{Name: "memory", Title: "Resident memory at rest", X: "TrainJobs", Y: "MB", Series: memory[:]},
		{Name: "start", Title: "Start of the reconciler", X: "TrainJobs", Y: "seconds since its start", Series: []figures.Series{filled, scheduled}},
	}
	jobs := thousands(last.jobs)
	growth := perJob(last) / perJob(found[0])
	report.Targets = []figures.Target{
		{What: jobs + " scheduled after the caches are filled", Want: "within 20 s", Got: seconds(last.scheduled), Met: last.scheduled <= scheduledWithin},
		{What: "reconciler, resident at rest with " + jobs, Want: "under 300 MB", Got: megabytes(last.reconciler.memoryAtRest), Met: last.reconciler.memoryAtRest < memoryBound},
		{What: "webhook, resident at rest with " + jobs, Want: "under 300 MB", Got: megabytes(last.webhook.memoryAtRest), Met: last.webhook.memoryAtRest < memoryBound},
		{What: "requests at rest", Want: "renewals of the Lease, 30 a minute, and watches begun anew", Got: byMethod(last.reconciler.requestsAtRest), Met: onlyRenewals(last)},
		{What: "time from start to all scheduled, for each TrainJob, with " + jobs + " against " + thousands(found[0].jobs), Want: "no more than linear: at most 1", Got: fmt.Sprintf("%.2f", growth), Met: growth <= 1},
		{What: "deletion of the runtime of " + jobs, Want: "under 1 s", Got: millis(last.denied), Met: last.denied < deniedWithin},
	}
	return report
}

// perJob is the time from the start of the reconciler to all being scheduled, for one TrainJob.
func perJob(f scaleFigures) float64 { return (f.filled + f.scheduled).Seconds() / float64(f.jobs) }

// onlyRenewals tells whether both processes only renew the Lease at rest, and begin anew the watches,
// which the API server ends after 5 to 10 minutes and which are GETs.
func onlyRenewals(f scaleFigures) bool {
	const watches = 10
	if f.reconciler.requestsAtRest["GET"] > watches || f.webhook.requestsAtRest["GET"] > watches {
		return false
	}
	for _, method := range []string{"POST", "PATCH", "DELETE"} {
		if f.reconciler.requestsAtRest[method]+f.webhook.requestsAtRest[method] > 0 {
			return false
		}
	}
	return f.reconciler.requestsAtRest["PUT"] <= 33 && f.webhook.requestsAtRest["PUT"] == 0
}

// byMethod writes counts of requests.
func byMethod(counts map[string]float64) string {
	var parts []string
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if counts[method] > 0 {
			parts = append(parts, fmt.Sprintf("%.0f %s", counts[method], method))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func millis(d time.Duration) string  { return fmt.Sprintf("%.1f ms", figures.Milliseconds(d)) }
func megabytes(bytes float64) string { return fmt.Sprintf("%.0f MB", bytes/1e6) }
