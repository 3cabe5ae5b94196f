// Command reconciler enforces the deadlines of TrainJobs and keeps what Trainer and people read
// of their runtimes as it was sealed. Of several replicas one acts.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/signalbox-dev/signalbox/internal/command"
)

// garbage is how much garbage may pile up, in percent of what is in use, before it is collected. What
// the reconciler holds is for long, a note of every TrainJob, and Go's own 100 would have it take
// twice of that.
const garbage = 50

func main() { command.Main("reconciler", run) }

// run parses the arguments and works until the context ends.
func run(ctx context.Context, args []string) error {
	options, err := parse(args)
	if err != nil {
		return err
	}
	limitGarbage(os.Getenv("GOGC"))
	mgr, err := newManager(options)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// limitGarbage sets how much garbage may pile up, unless that has been set for the process.
func limitGarbage(own string) {
	if own == "" {
		debug.SetGCPercent(garbage)
	}
}
