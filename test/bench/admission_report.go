package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

// Targets: the p50 of CREATE and of a resume with Signalbox is at most so many times stock's, and
// at most so much longer.
const (
	mostRatio      = 1.10
	mostDifference = 3 * time.Millisecond
)

var (
	// heldTo are the writes that the targets are about.
	heldTo = []string{writeCreate, writeResume, writeAgain}
	// untouched are the writes that must call no webhook of Signalbox.
	untouched = []string{writeLabel, writeStatus, writeConfigMap, writeJobSet}
)

// compared is what came out for one kind of write.
type compared struct {
	off, on figures.Samples
	// ratios are p50 on to p50 off of each pair, sorted; noise are p50 to p50 of each phase with
	// Signalbox off and the one before it, which are alike, sorted.
	ratios, noise []float64
	// counted is what was counted in all phases with Signalbox on, and off.
	countedOff, countedOn reading
}

func compare(pairs []pair, name string) compared {
	c := compared{countedOff: newReading(), countedOn: newReading()}
	var last float64
	for i, pair := range pairs {
		c.off, c.on = append(c.off, pair.off.times[name]...), append(c.on, pair.on.times[name]...)
		c.countedOff.add(pair.off.counted[name], 1)
		c.countedOn.add(pair.on.counted[name], 1)
		off, on := pair.off.times[name].Quantile(0.5), pair.on.times[name].Quantile(0.5)
		c.ratios = append(c.ratios, float64(on)/float64(off))
		if i > 0 {
			c.noise = append(c.noise, float64(off)/last)
		}
		last = float64(off)
	}
	slices.Sort(c.ratios)
	slices.Sort(c.noise)
	return c
}

// ratio is the median of the ratios.
func (c compared) ratio() float64 { return middle(c.ratios) }

// difference is how much longer the p50 is with Signalbox.
func (c compared) difference() time.Duration { return c.on.Quantile(0.5) - c.off.Quantile(0.5) }

// calls is the number of calls of webhooks of Signalbox for each write.
func (c compared) calls() float64 { return c.countedOn.total() / float64(len(c.on)) }

// reads is the number of requests that the webhook makes to the API server for each write.
func (c compared) reads() float64 { return c.countedOn.reads / float64(len(c.on)) }

// silent tells that the ratio is none that chance alone does not give: it is no farther from 1
// than most of the ratios of neighbouring phases that are alike.
func (c compared) silent() bool {
	low, high := around(c.noise)
	return c.ratio() >= min(low, 1) && c.ratio() <= max(high, 1)
}

// middle is the median of sorted values; 0 of none.
func middle(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// around returns between which bounds the middle half of sorted values is; 0 of none.
func around(sorted []float64) (low, high float64) {
	if len(sorted) == 0 {
		return 0, 0
	}
	quarter := len(sorted) / 4
	return sorted[quarter], sorted[len(sorted)-1-quarter]
}

func admissionReport(pairs []pair, size admissionSize) *figures.Report {
	found := map[string]compared{}
	var names []string
	for _, kind := range (&writes{}).all() {
		names = append(names, kind.name)
		found[kind.name] = compare(pairs, kind.name)
	}
	return &figures.Report{
		Title:   "What Signalbox adds to a write",
		Tables:  []figures.Table{latencyTable(names, found), ratioTable(names, found), webhookTable(names, found), conditionTable(names, found)},
		Plots:   []figures.Plot{distributionPlot("create", writeCreate, found), distributionPlot("resume", writeResume, found)},
		Targets: admissionTargets(found),
		Notes: []string{
			fmt.Sprintf("Signalbox was off and on in turn, %d times each; each time every write was made for %d objects by one client, one after the other, after %d that do not count.", size.pairs, size.each, size.warm),
			fmt.Sprintf("For each TrainJob that becomes active for the first time the reconciler writes two objects. Between two such writes the client waits %d ms, but for those in a row: there the reconciler's work for one TrainJob and the webhooks' for the next share the machine's processors.", pause.Milliseconds()),
			"Off, its webhook configurations are deleted and its reconciler is stopped. Trainer's and JobSet's webhooks answer in both; Trainer's controller does not act, and the client writes the ConfigMaps in its place.",
			"The ratio is the median over the pairs of phases, of the p50 with Signalbox to that without; the noise is that of each phase without Signalbox to the one before it. There is no difference beyond noise where the median is within the middle half of the noise.",
			"A suspend and an edit of a runtime call Signalbox by design: the one ends the active period of a TrainJob, the other gives the runtime a new revision.",
			"etcd does not wait for its disk. Where it does, every write takes longer, and the ratio is smaller.",
			"A write can have more calls than one of each webhook: the API server begins anew, admission included, where it finds that it began from a stale copy of the object, and it would call a mutating webhook again where a later one has changed the object.",
			"Match conditions are counted by the API server only where they spare the call.",
		},
	}
}

func latencyTable(names []string, found map[string]compared) figures.Table {
	table := figures.Table{
		Title:   "Time of a write in ms, as the client sees it",
		Columns: []string{"write", "p50 off", "p50 on", "p95 off", "p95 on", "p99 off", "p99 on", "samples"},
	}
	for _, name := range names {
		c, row := found[name], []string{name}
		for _, q := range []float64{0.5, 0.95, 0.99} {
			row = append(row, milliseconds(c.off.Quantile(q)), milliseconds(c.on.Quantile(q)))
		}
		table.Rows = append(table.Rows, append(row, fmt.Sprintf("%d each", len(c.on))))
	}
	return table
}

func ratioTable(names []string, found map[string]compared) figures.Table {
	table := figures.Table{
		Title:   "What Signalbox adds to the p50",
		Columns: []string{"write", "difference", "ratio", "range", "noise, middle half", "noise, range", "webhook calls", "reads for them"},
	}
	for _, name := range names {
		c := found[name]
		low, high := around(c.noise)
		table.Rows = append(table.Rows, []string{
			name, fmt.Sprintf("%+.2f ms", figures.Milliseconds(c.difference())), fmt.Sprintf("%.3f", c.ratio()), span(c.ratios),
			span([]float64{low, high}), span(c.noise), number(c.calls()), number(c.reads()),
		})
	}
	return table
}

// webhookTable shows where the time of writes that call webhooks goes.
func webhookTable(names []string, found map[string]compared) figures.Table {
	table := figures.Table{
		Title:   "Webhooks of a write, with Signalbox on: calls for each write, and mean times of a call in ms",
		Columns: []string{"write", "webhook", "calls", "API server's time", "handler's time", "the same with Signalbox off"},
	}
	for _, name := range names {
		c := found[name]
		for _, hook := range slices.Sorted(maps.Keys(c.countedOn.hooks)) {
			on := c.countedOn.hooks[hook]
			if on.count == 0 {
				continue
			}
			handler, off := "-", "-"
			if path := pathOf(hook); path != "" {
				handler = fmt.Sprintf("%.2f", c.countedOn.handlers[path].mean())
			}
			if c.countedOff.hooks[hook].count > 0 {
				off = fmt.Sprintf("%.2f", c.countedOff.hooks[hook].mean())
			}
			table.Rows = append(table.Rows, []string{
				name, hook, number(on.count / float64(len(c.on))), fmt.Sprintf("%.2f", on.mean()), handler, off,
			})
		}
	}
	return table
}

// conditionTable shows what the API server spends to find out that it need not call.
func conditionTable(names []string, found map[string]compared) figures.Table {
	table := figures.Table{
		Title:   "Match conditions of Signalbox's webhooks: evaluations for each write, and their mean time in µs",
		Columns: []string{"write", "webhook", "evaluations", "time"},
	}
	for _, name := range names {
		c := found[name]
		for _, hook := range slices.Sorted(maps.Keys(c.countedOn.conditions)) {
			if on := c.countedOn.conditions[hook]; on.count > 0 {
				table.Rows = append(table.Rows, []string{name, hook, number(on.count / float64(len(c.on))), fmt.Sprintf("%.0f", on.mean()*1000)})
			}
		}
	}
	return table
}

// pathOf returns where a webhook, named "TYPE NAME" as the API server counts it, is served when it
// is Signalbox's; else it is empty.
func pathOf(hook string) string {
	kind, name, _ := strings.Cut(hook, " ")
	resource, ours := strings.CutSuffix(name, ".lifecycle.trainer.kubeflow.org")
	if !ours {
		return ""
	}
	if kind == "admit" {
		return "/mutate-" + resource
	}
	return "/validate-" + resource
}

func distributionPlot(file, name string, found map[string]compared) figures.Plot {
	return figures.Plot{
		Name: file, Title: "Time of a write: " + name, X: "ms", Y: "share of the writes that took at most this",
		Series: []figures.Series{
			{Name: "Signalbox off", Points: found[name].off.Distribution()},
			{Name: "Signalbox on", Points: found[name].on.Distribution()},
		},
	}
}

func admissionTargets(found map[string]compared) []figures.Target {
	var targets []figures.Target
	for _, name := range heldTo {
		c := found[name]
		targets = append(targets, figures.Target{
			What: "p50 of " + name,
			Want: fmt.Sprintf("at most %.2f times stock's and %d ms more", mostRatio, mostDifference.Milliseconds()),
			Got:  fmt.Sprintf("%.2f times, %+.2f ms", c.ratio(), figures.Milliseconds(c.difference())),
			Met:  c.ratio() <= mostRatio && c.difference() <= mostDifference,
		})
	}
	for _, name := range untouched {
		c := found[name]
		low, high := around(c.noise)
		targets = append(targets, figures.Target{
			What: name,
			Want: "no webhook call, no difference beyond noise",
			Got:  fmt.Sprintf("%s calls, %.3f times, noise %s", number(c.calls()), c.ratio(), span([]float64{low, high})),
			Met:  c.calls() == 0 && c.silent(),
		})
	}
	return targets
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f", figures.Milliseconds(d)) }

// span is the first of sorted values to the last.
func span(sorted []float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f to %.2f", sorted[0], sorted[len(sorted)-1])
}

// number is a number without needless digits.
func number(value float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", value), "0"), ".")
}
