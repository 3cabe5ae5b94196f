// Command reconciler enforces the deadlines of TrainJobs and keeps what Trainer and people read
// of their runtimes as it was sealed. Of several replicas one acts.
package main

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/command"
)

func main() { command.Main("reconciler", run) }

// run parses the arguments and works until the context ends.
func run(ctx context.Context, args []string) error {
	options, err := parse(args)
	if err != nil {
		return err
	}
	mgr, err := newManager(options)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
