// Command webhook serves Signalbox's admission webhooks. Every replica serves.
package main

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/command"
)

func main() { command.Main("webhook", run) }

// run parses the arguments and serves until some time after the context ends.
func run(ctx context.Context, args []string) error {
	options, err := parse(args)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, options)
	if err != nil {
		return err
	}
	serving, stop := drained(ctx, options.drain)
	defer stop()
	return mgr.Start(serving)
}
