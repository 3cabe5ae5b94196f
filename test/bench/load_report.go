package main

import (
	"fmt"
	"slices"

	signalbox "github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

const (
	// wantedReviews is how many requests to create a TrainJob one processor is to answer in a second.
	wantedReviews = 3000
	// flatMemory is how much of what the webhook had once it was warm it may have at the end.
	flatMemory = 1.2
)

// loadReport makes the report; of the steps those of each webhook are in the order of their
// connections.
func loadReport(steps []*loadStep, memory *loadMemory) *figures.Report {
	table := figures.Table{
		Title:   "One replica of the webhook under load",
		Columns: []string{"webhook", "connections", "reviews a second", "for a second of its CPU", "reads for each", "p50", "p95", "p99"},
	}
	perCore := figures.Plot{
		Name: "reviews", Title: "Reviews that one core answers", X: "connections", Y: "reviews for a second of CPU", LogX: true,
	}
	late := figures.Plot{
		Name: "latency", Title: "Time to answer under load, the slowest of a hundred", X: "connections", Y: "p99 (ms)", LogX: true, LogY: true,
	}
	var full *loadStep
	for _, path := range []string{signalbox.TrainJobMutatePath, signalbox.TrainJobValidatePath} {
		rate, latency := figures.Series{Name: path}, figures.Series{Name: path}
		for _, s := range steps {
			if s.path != path {
				continue
			}
			p99 := s.latencies.Quantile(0.99)
			table.Rows = append(table.Rows, []string{
				path, fmt.Sprint(s.connections), fmt.Sprintf("%.0f", s.perSecond()), fmt.Sprintf("%.0f", s.perCoreSecond()),
				fmt.Sprintf("%.2f", s.reads/float64(len(s.latencies))),
				millis(s.latencies.Quantile(0.5)), millis(s.latencies.Quantile(0.95)), millis(p99),
			})
			rate.Points = append(rate.Points, figures.Point{X: float64(s.connections), Y: s.perCoreSecond()})
			latency.Points = append(latency.Points, figures.Point{X: float64(s.connections), Y: figures.Milliseconds(p99)})
			if path == signalbox.TrainJobMutatePath {
				full = s
			}
		}
		perCore.Series, late.Series = append(perCore.Series, rate), append(late.Series, latency)
	}
	resident := figures.Series{Name: "webhook"}
	for i, at := range memory.seconds {
		resident.Points = append(resident.Points, figures.Point{X: at, Y: memory.bytes[i] / 1e6})
	}
	warm, end, most := memory.bytes[memory.warm], memory.bytes[memory.end], slices.Max(memory.bytes)
	return &figures.Report{
		Title: "How much one replica of the webhook answers",
		Tables: []figures.Table{table, {
			Title:   "Its resident memory",
			Columns: []string{"once warm", "at the end", "at most"},
			Rows:    [][]string{{megabytes(warm), megabytes(end), megabytes(most)}},
		}},
		Plots: []figures.Plot{perCore, late, {
			Name: "memory", Title: "Memory of the webhook under load", X: "time (s)", Y: "resident memory (MB)", Series: []figures.Series{resident},
		}},
		Targets: []figures.Target{
			{
				What: fmt.Sprintf("CREATE reviews that seal, for a second of CPU, under full load (%d connections)", full.connections),
				Want: fmt.Sprintf("at least %d", wantedReviews), Got: fmt.Sprintf("%.0f", full.perCoreSecond()), Met: full.perCoreSecond() >= wantedReviews,
			},
			{
				What: "resident memory at the end, of that once warm", Want: fmt.Sprintf("at most %.1f times", flatMemory),
				Got: fmt.Sprintf("%.2f times", end/warm), Met: end <= flatMemory*warm,
			},
		},
		Notes: []string{
			"Each request is the creation of a TrainJob of 2 KB on a runtime of 2 KB, which the mutating webhook seals; for that it reads the runtime's metadata from the API server.",
			"The requests come as from an API server that calls a Service: HTTP/1.1 over TLS on connections that stay, as fast as they are answered.",
			"The webhook shares the processors with etcd, the API server and the sender: what counts is how much it answers for a second of its own CPU time, not how much a second.",
			"Requests that come at the same time share their reads: with few connections, each pays more.",
			"That CPU time includes all else that the process does, such as collecting garbage and telling its metrics every second.",
		},
	}
}
