// Command webhook serves Signalbox's admission webhooks. Every replica serves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

// run parses the arguments and serves until the context ends.
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
