package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const (
	// handlerPackage is where the benchmarks of the webhooks are.
	handlerPackage = "./internal/admission"
	// createName is the benchmark with the target, wantedCreate the target.
	createName   = "TrainJobMutator/create/runtime=2KB/trainjob=2KB"
	wantedCreate = 100 * time.Microsecond
)

// handlerRun is one run of a Go benchmark.
type handlerRun struct {
	name string
	// nanoseconds, bytes and allocations are for one request.
	nanoseconds, bytes, allocations float64
}

// handlers runs the Go benchmarks of the webhooks: what one request costs, without the network and
// without what is read from the API server.
func handlers(ctx context.Context, o options) (*figures.Report, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	duration, count := "300ms", 5
	if o.short {
		duration, count = "2x", 1
	}
	fmt.Fprintln(os.Stderr, "running the Go benchmarks of the webhooks")
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchmem",
		"-benchtime", duration, "-count", strconv.Itoa(count), handlerPackage)
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks: %w\n%s", err, out)
	}
	runs, err := parseRuns(out)
	if err != nil {
		return nil, err
	}
	return handlersReport(runs)
}

// processors is what testing puts behind the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// parseRuns reads what go test prints of benchmarks.
func parseRuns(out []byte) ([]handlerRun, error) {
	var runs []handlerRun
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		name, found := strings.CutPrefix(lines.Text(), "Benchmark")
		if !found || len(fields) < 4 {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		name, _, _ = strings.Cut(name, "\t")
		run := handlerRun{name: processors.ReplaceAllString(name, "")}
		// After the name and the number of runs come pairs of a value and its unit.
		for pair := range slices.Chunk(fields[2:], 2) {
			value, err := strconv.ParseFloat(pair[0], 64)
			if err != nil || len(pair) < 2 {
				return nil, fmt.Errorf("read the line %q of the benchmarks", lines.Text())
			}
			switch pair[1] {
			case "ns/op":
				run.nanoseconds = value
			case "B/op":
				run.bytes = value
			case "allocs/op":
				run.allocations = value
			}
		}
		runs = append(runs, run)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, errors.New("the benchmarks printed no figures")
	}
	return runs, nil
}

// medians returns for each benchmark, in the order in which they came, the medians of its runs.
func medians(runs []handlerRun) []handlerRun {
	var names []string
	of := map[string][]handlerRun{}
	for _, run := range runs {
		if of[run.name] == nil {
			names = append(names, run.name)
		}
		of[run.name] = append(of[run.name], run)
	}
	var found []handlerRun
	for _, name := range names {
		middle := func(value func(handlerRun) float64) float64 {
			var values []float64
			for _, run := range of[name] {
				values = append(values, value(run))
			}
			slices.Sort(values)
			return values[(len(values)-1)/2]
		}
		found = append(found, handlerRun{
			name:        name,
			nanoseconds: middle(func(r handlerRun) float64 { return r.nanoseconds }),
			bytes:       middle(func(r handlerRun) float64 { return r.bytes }),
			allocations: middle(func(r handlerRun) float64 { return r.allocations }),
		})
	}
	return found
}

func handlersReport(runs []handlerRun) (*figures.Report, error) {
	table := figures.Table{Title: "One request, without network and reads", Columns: []string{"webhook", "operation", "sizes", "time", "memory", "allocations"}}
	plot := figures.Plot{
		Name: "time", Title: "Time of one request, TrainJobs of 2 KB", X: "size of the runtime (KB)", Y: "microseconds", LogX: true, LogY: true,
	}
	found := medians(runs)
	for _, run := range found {
		webhook, operation, sizes := splitName(run.name)
		table.Rows = append(table.Rows, []string{
			webhook, operation, sizes, fmt.Sprintf("%.1f µs", run.nanoseconds/1e3), fmt.Sprintf("%.1f KB", run.bytes/1e3), fmt.Sprintf("%.0f", run.allocations),
		})
		size, sized := runtimeSize(sizes)
		if !sized {
			continue
		}
		line := webhook + " " + operation
		i := slices.IndexFunc(plot.Series, func(s figures.Series) bool { return s.Name == line })
		if i < 0 {
			i, plot.Series = len(plot.Series), append(plot.Series, figures.Series{Name: line})
		}
		plot.Series[i].Points = append(plot.Series[i].Points, figures.Point{X: size, Y: run.nanoseconds / 1e3})
	}
	i := slices.IndexFunc(found, func(run handlerRun) bool { return run.name == createName })
	if i < 0 {
		return nil, fmt.Errorf("there is no benchmark %s", createName)
	}
	got := time.Duration(found[i].nanoseconds)
	return &figures.Report{
		Title:  "What a request costs in the webhook",
		Tables: []figures.Table{table},
		Plots:  []figures.Plot{plot},
		Targets: []figures.Target{{
			What: "CREATE of an active TrainJob of 2 KB on a runtime of 2 KB, which is sealed", Want: fmt.Sprintf("under %d µs", wantedCreate.Microseconds()),
			Got: fmt.Sprintf("%.1f µs", found[i].nanoseconds/1e3), Met: got < wantedCreate,
		}},
		Notes: []string{
			"Go benchmarks of " + strings.TrimPrefix(handlerPackage, "./") + ", each figure the median of its runs.",
			"Left out are TLS, HTTP, the decoding of the request around the object, and what is read from the API server: the reads are answered from memory at once.",
			"Runtimes have been seen before, save after an edit: the first TrainJob then has the runtime read whole and packed.",
		},
	}, nil
}

// splitName splits the name of a benchmark, WEBHOOK/OPERATION/SIZE=N/..., of which there may be no
// operation and no sizes.
func splitName(name string) (webhook, operation, sizes string) {
	parts := strings.Split(name, "/")
	webhook = parts[0]
	var operations, of []string
	for _, part := range parts[1:] {
		if strings.HasPrefix(part, "runtime=") || strings.HasPrefix(part, "trainjob=") {
			of = append(of, strings.Replace(part, "=", " ", 1))
			continue
		}
		operations = append(operations, strings.NewReplacer("_", " ", "-", " ", "=", " ").Replace(part))
	}
	return webhook, strings.Join(operations, ", "), strings.Join(of, ", ")
}

// runtimeSize returns the size of the runtime in kilobytes, of benchmarks whose TrainJobs are all of
// 2 KB.
func runtimeSize(sizes string) (kilobytes float64, found bool) {
	runtime, job, _ := strings.Cut(sizes, ", ")
	text, found := strings.CutPrefix(runtime, "runtime ")
	if !found || job != "" && job != "trainjob 2KB" {
		return 0, false
	}
	kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(text, "KB"), 64)
	return kilobytes, err == nil
}
