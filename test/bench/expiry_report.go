package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

const (
	// wantTen is how late the 99th of 100 may be Failed when ten end at once.
	wantTen = 100 * time.Millisecond
	// wantRatio is how many times the bare limit it may take until all have ended.
	wantRatio = 1.3
)

var stages = []struct {
	stage
	name, file string
}{{failed, "Failed", "failed"}, {gone, "pods gone", "gone"}}

// whole is the time from the first deadline until the last TrainJob has come to that stage.
func (e ends) whole(s stage) time.Duration { return e.took[s] }

// whole is the median of the times of one size.
func (f *expiryFigures) whole(w way, size int, s stage) time.Duration {
	var samples figures.Samples
	for _, one := range f.ends[w][size] {
		samples = append(samples, one.whole(s))
	}
	return samples.Quantile(0.5)
}

// late are the TrainJobs of all times of one size.
func (f *expiryFigures) late(w way, size int, s stage) figures.Samples {
	var samples figures.Samples
	for _, one := range f.ends[w][size] {
		samples = append(samples, one.late[s]...)
	}
	return samples
}

func (f *expiryFigures) report(of []round) *figures.Report {
	report := &figures.Report{Title: "From the deadline to Failed and to the end of the pods"}
	report.Tables = append(report.Tables, f.lateTable(of), f.wholeTable(of), f.costTable(of))
	for _, r := range of {
		report.Plots = append(report.Plots, f.latePlot(r.size))
	}
	for _, s := range stages {
		plot := figures.Plot{
			Name: "whole-" + s.file, Title: "Until all are " + s.name,
			X: "TrainJobs that end in one second", Y: "time from the first deadline until all are " + s.name + ", s", LogX: true, LogY: true,
		}
		for _, w := range ways {
			series := figures.Series{Name: string(w)}
			for _, r := range of {
				series.Points = append(series.Points, figures.Point{X: float64(r.size), Y: f.whole(w, r.size, s.stage).Seconds()})
			}
			plot.Series = append(plot.Series, series)
		}
		report.Plots = append(report.Plots, plot)
	}
	report.Targets, report.Notes = f.targets(of), f.notes(of)
	return report
}

func (f *expiryFigures) lateTable(of []round) figures.Table {
	table := figures.Table{
		Title:   "Time from each TrainJob's own deadline",
		Columns: []string{"at once", "times", "ended by", "Failed: p50", "p99", "last", "pods gone: p50", "p99", "last"},
	}
	for _, r := range of {
		for _, w := range ways {
			row := []string{fmt.Sprint(r.size), fmt.Sprint(r.times), string(w)}
			for _, s := range stages {
				late := f.late(w, r.size, s.stage)
				row = append(row, inMilliseconds(late.Quantile(0.5)), inMilliseconds(late.Quantile(0.99)), inMilliseconds(late.Quantile(1)))
			}
			table.Rows = append(table.Rows, row)
		}
	}
	return table
}

func (f *expiryFigures) wholeTable(of []round) figures.Table {
	table := figures.Table{
		Title:   "Time from the first deadline until all have ended, median",
		Columns: []string{"at once", "ended by", "all Failed", "to the bare limit", "all pods gone", "to the bare limit"},
	}
	for _, r := range of {
		for _, w := range ways {
			row := []string{fmt.Sprint(r.size), string(w)}
			for _, s := range stages {
				row = append(row, inMilliseconds(f.whole(w, r.size, s.stage)), fmt.Sprintf("%.2f", f.ratio(w, byClient, r.size, s.stage)))
			}
			table.Rows = append(table.Rows, row)
		}
	}
	return table
}

// ratio is how many times as long one way takes as another until all have come to the stage.
func (f *expiryFigures) ratio(w, to way, size int, s stage) float64 {
	return f.whole(w, size, s).Seconds() / f.whole(to, size, s).Seconds()
}

// costTable tells what Signalbox's reconciler needs for each TrainJob.
func (f *expiryFigures) costTable(of []round) figures.Table {
	table := figures.Table{
		Title:   "What the reconciler needs for each TrainJob, from the first deadline on",
		Columns: []string{"at once", "GET", "PATCH", "DELETE", "POST", "answered 429, in all", "CPU"},
	}
	for _, r := range of {
		cost, jobs := f.costs[r.size], float64(r.size*r.times)
		row := []string{fmt.Sprint(r.size)}
		for _, method := range []string{"GET", "PATCH", "DELETE", "POST"} {
			row = append(row, fmt.Sprintf("%.2f", cost.requests[method]/jobs))
		}
		row = append(row, fmt.Sprint(cost.refused), fmt.Sprintf("%.2f ms", cost.cpu*1000/jobs))
		table.Rows = append(table.Rows, row)
	}
	return table
}

func (f *expiryFigures) latePlot(size int) figures.Plot {
	plot := figures.Plot{
		Name: fmt.Sprint("late-", size), Title: fmt.Sprintf("%d at once", size),
		X: "time from the deadline to Failed, ms", Y: "share of the TrainJobs",
	}
	for _, w := range ways {
		plot.Series = append(plot.Series, figures.Series{Name: string(w), Points: f.late(w, size, failed).Distribution()})
	}
	return plot
}

func (f *expiryFigures) targets(of []round) []figures.Target {
	var targets []figures.Target
	for _, r := range of {
		if r.size == 10 {
			got := f.late(bySignalbox, r.size, failed).Quantile(0.99)
			targets = append(targets, figures.Target{
				What: "10 at once: 99 of 100 are Failed after", Want: "at most " + inMilliseconds(wantTen), Got: inMilliseconds(got), Met: got <= wantTen,
			})
			continue
		}
		if r.size < 1000 {
			continue
		}
		for _, s := range stages {
			got := f.ratio(bySignalbox, byClient, r.size, s.stage)
			targets = append(targets, figures.Target{
				What: fmt.Sprintf("%d at once: until all are %s, to the bare limit", r.size, s.name),
				Want: fmt.Sprintf("at most %.1f", wantRatio), Got: fmt.Sprintf("%.2f", got), Met: got <= wantRatio,
			})
			got = f.ratio(bySignalbox, byStock, r.size, s.stage)
			targets = append(targets, figures.Target{
				What: fmt.Sprintf("%d at once: until all are %s, to stock", r.size, s.name),
				Want: "at most 1", Got: fmt.Sprintf("%.2f", got), Met: got <= 1,
			})
		}
	}
	return targets
}

func (f *expiryFigures) notes(of []round) []string {
	largest := slices.MaxFunc(of, func(a, b round) int { return a.size - b.size })
	notes := []string{
		"5000 at once are measured only with FULL=1.",
		"Each way has a cluster of its own, one after the other: Signalbox with deadlines by its annotation, which Trainer does not know; stock with spec.activeDeadlineSeconds and without Signalbox; " +
			"and, without Signalbox and deadlines, a client that patches the status and deletes the JobSet of each TrainJob, " +
			fmt.Sprintf("%d side by side, with nothing to read, no event to write and no limit of its own.", bareWorkers),
		"The limits that Trainer, JobSet, the scheduler and the controller manager put on their own requests are lifted, in all three. JobSet's controller and Trainer's work on one object at a time all the same, by their own code.",
		"All TrainJobs of a time are in one namespace, have one pod each and the same deadline. The first of them went the ordinary way until its pod ran and nothing of it changed any more; the others are copies in etcd of all that was stored for it, with UIDs of their own.",
		"Signalbox's requests are queued by the API server's priority and fairness as those of any service account, and so are those of the bare client.",
		"The times are those at which a client learns of it by a watch: of Failed, " +
			fmt.Sprintf("%s (median) to %s (p99) after the writer has its answer, as measured with the bare client.", inMilliseconds(f.told.Quantile(0.5)), inMilliseconds(f.told.Quantile(0.99))),
	}
	for _, w := range ways {
		notes = append(notes, fmt.Sprintf("While %d ended by %s, what measures took %.0f %% of the %d processors.", largest.size, w, 100*f.observer[w][largest.size], runtime.NumCPU()))
	}
	return notes
}

// inMilliseconds writes a time for a table.
func inMilliseconds(d time.Duration) string {
	ms := figures.Milliseconds(d)
	if ms < 100 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
