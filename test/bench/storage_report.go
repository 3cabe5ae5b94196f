package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

// Targets: what the annotations take of what Trainer's own ConfigMap takes without Signalbox, and
// the TrainingRuntimeSnapshot.
const (
	mostOfAnnotations = 0.25
	mostOfSnapshot    = 1.0
)

// judged is a keeping with the shares of its objects.
type judged struct {
	keeping
	trainJob, snapshot shares
}

// ofAnnotations is the size of the annotations, ofSnapshot that of the TrainingRuntimeSnapshot, each
// as a share of Trainer's ConfigMap without Signalbox.
func (j judged) ofAnnotations() float64 {
	return float64(j.trainJob.annotations) / float64(len(j.stock.configMap))
}

func (j judged) ofSnapshot() float64 {
	return float64(len(j.ours.snapshot)) / float64(len(j.stock.configMap))
}

func storageReport(found []keeping, events, installed []sizedObject) (*figures.Report, error) {
	var all []judged
	for _, k := range found {
		j := judged{keeping: k}
		var err error
		if j.trainJob, err = sharesOf(k.ours.trainJob); err != nil {
			return nil, err
		}
		if j.snapshot, err = sharesOf(k.ours.snapshot); err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	// By the size of the runtime, as in the plot.
	slices.SortStableFunc(all, func(a, b judged) int { return cmp.Compare(len(a.stock.runtime), len(b.stock.runtime)) })
	return &figures.Report{
		Title: "What a TrainJob takes in etcd",
		Tables: []figures.Table{
			keptTable(all), addedTable(all),
			objectTable("Events that Signalbox writes, only where there is a deadline", events),
			objectTable("Objects of the installation", installed),
		},
		Plots:   []figures.Plot{storagePlot(all)},
		Targets: storageTargets(all),
		Notes: []string{
			"One active TrainJob of one node on each runtime, once nothing changes any more: first without Signalbox, then with it. Bytes are those of the values in etcd: JSON of custom kinds, protobuf of others. Jobs, pods and events of others are as on stock and left out.",
			"Built-in runtimes are those that Trainer brings, made anew without Signalbox. The own ones are named by about their size as JSON: the environment variables that fill them are no two alike, but compress well. Those of own-random are random text, which no real runtime is; the targets are not about it.",
			"Trainer's ConfigMap holds the runtime with its managedFields, as YAML: what a runtime grows by is there once more. The TrainingRuntimeSnapshot holds its spec.",
			"The names of the annotations, the time of the start and the name and the revision of the runtime take some 330 bytes on every TrainJob. That is why they take the greatest share where the runtime is smallest.",
			"Here the runtimes were there before Signalbox, and the reconciler wrote their revision, with an entry in managedFields. Where the webhook writes it, there is none.",
			"In a cluster the Secret signalbox-webhook-cert holds certificates and a key, some 3 KB, and the webhook configurations name a Service; here both have another certificate.",
		},
	}, nil
}

func keptTable(all []judged) figures.Table {
	table := figures.Table{
		Title: "Bytes in etcd for a TrainJob",
		Columns: []string{
			"runtime", "the runtime itself", "TrainJob off", "TrainJob on", "ConfigMap off", "ConfigMap on", "JobSet off", "JobSet on",
			"TrainingRuntimeSnapshot", "sum off", "sum on",
		},
	}
	for _, j := range all {
		table.Rows = append(table.Rows, []string{
			j.runtime, bytesOf(j.stock.runtime), bytesOf(j.stock.trainJob), bytesOf(j.ours.trainJob), bytesOf(j.stock.configMap), bytesOf(j.ours.configMap),
			bytesOf(j.stock.jobSet), bytesOf(j.ours.jobSet), bytesOf(j.ours.snapshot), fmt.Sprint(j.stock.sum()), fmt.Sprint(j.ours.sum()),
		})
	}
	return table
}

func addedTable(all []judged) figures.Table {
	table := figures.Table{
		Title: "What Signalbox adds, in bytes; shares are of Trainer's ConfigMap without Signalbox",
		Columns: []string{
			"runtime", "annotations of the TrainJob", "share", "of them the compressed runtime", "managedFields of the TrainJob", "ConfigMap", "JobSet",
			"TrainingRuntimeSnapshot", "share", "of it managedFields", "the runtime itself",
		},
	}
	for _, j := range all {
		table.Rows = append(table.Rows, []string{
			j.runtime, fmt.Sprint(j.trainJob.annotations), percent(j.ofAnnotations()), fmt.Sprint(j.trainJob.seal), fmt.Sprint(j.trainJob.managedFields),
			more(j.stock.configMap, j.ours.configMap), more(j.stock.jobSet, j.ours.jobSet),
			bytesOf(j.ours.snapshot), percent(j.ofSnapshot()), fmt.Sprint(j.snapshot.allManagedFields),
			more(j.stock.runtime, j.ours.runtime),
		})
	}
	return table
}

func objectTable(title string, objects []sizedObject) figures.Table {
	table, sum := figures.Table{Title: title, Columns: []string{"object", "bytes"}}, 0
	for _, object := range objects {
		table.Rows = append(table.Rows, []string{object.key, fmt.Sprint(object.size)})
		sum += object.size
	}
	table.Rows = append(table.Rows, []string{"all", fmt.Sprint(sum)})
	return table
}

// storagePlot is of the own runtimes that compress as real ones do.
func storagePlot(all []judged) figures.Plot {
	lines := []struct {
		name string
		size func(j judged) int
	}{
		{"Trainer's ConfigMap, without Signalbox", func(j judged) int { return len(j.stock.configMap) }},
		{"TrainingRuntimeSnapshot", func(j judged) int { return len(j.ours.snapshot) }},
		{"annotations of the TrainJob", func(j judged) int { return j.trainJob.annotations }},
		{"all with Signalbox", func(j judged) int { return j.ours.sum() }},
		{"all without Signalbox", func(j judged) int { return j.stock.sum() }},
	}
	plot := figures.Plot{
		Name: "bytes", Title: "What is kept for a TrainJob, over the size of its runtime",
		X: "bytes of the runtime in etcd", Y: "bytes in etcd", LogX: true, LogY: true,
	}
	for _, line := range lines {
		series := figures.Series{Name: line.name}
		for _, j := range all {
			if !j.random && !j.builtIn {
				series.Points = append(series.Points, figures.Point{X: float64(len(j.stock.runtime)), Y: float64(line.size(j))})
			}
		}
		plot.Series = append(plot.Series, series)
	}
	return plot
}

func storageTargets(all []judged) []figures.Target {
	target := func(what string, most float64, share func(j judged) float64) figures.Target {
		t := figures.Target{What: what, Want: fmt.Sprintf("at most %s of Trainer's ConfigMap", percent(most)), Met: true}
		var shares []float64
		worst := ""
		for _, j := range all {
			if j.random {
				continue
			}
			if len(shares) == 0 || share(j) > slices.Max(shares) {
				worst = j.runtime
			}
			shares = append(shares, share(j))
		}
		if len(shares) == 0 {
			return figures.Target{What: what, Want: t.Want, Got: "-"}
		}
		t.Got = fmt.Sprintf("%s to %s, most for %s", percent(slices.Min(shares)), percent(slices.Max(shares)), worst)
		t.Met = slices.Max(shares) <= most
		return t
	}
	return []figures.Target{
		target("annotations of the TrainJob", mostOfAnnotations, judged.ofAnnotations),
		target("TrainingRuntimeSnapshot", mostOfSnapshot, judged.ofSnapshot),
	}
}

func bytesOf(stored []byte) string { return fmt.Sprint(len(stored)) }

// more is by how much the second is larger, with its sign.
func more(before, after []byte) string { return fmt.Sprintf("%+d", len(after)-len(before)) }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }
