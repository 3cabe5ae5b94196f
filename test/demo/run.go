package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// minSeconds leaves room for a pause well before the deadline on a slow machine.
const minSeconds = 5

// options are what the command line chooses.
type options struct {
	seconds    int64
	annotation bool
}

// run starts the cluster, tells the story on it and ends the cluster, also when ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	var o options
	flags.Int64Var(&o.seconds, "deadline", 10, "deadline of the TrainJob, in seconds")
	flags.BoolVar(&o.annotation, "annotation", false, "set the deadline by the annotation, which Trainer does not know, instead of the spec field, which Trainer enforces too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.seconds < minSeconds {
		return fmt.Errorf("-deadline %d: must be at least %d", o.seconds, minSeconds)
	}
	fmt.Fprintln(os.Stderr, "Starting Kubernetes with Trainer, JobSet and signalbox. The first time, building them takes minutes.")
	c, err := cluster.Start(ctx, cluster.Options{Signalbox: true, Log: os.Stderr})
	if err == nil {
		err = tell(ctx, c, o)
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if c == nil {
		return err
	}
	// The logs go with the cluster.
	reportLogs(os.Stderr, err)
	return errors.Join(err, c.Close())
}

// tell plays the story on a running cluster.
func tell(ctx context.Context, c *cluster.Cluster, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watches
	s := &screen{out: os.Stdout, colour: wantsColour(os.Stdout, os.Getenv), start: time.Now()}
	d, err := newDemo(ctx, c, o, s)
	if err != nil {
		return err
	}
	s.note("\nSeconds since now, what changed in the API (> is what the demo does), and what is left until the deadline.")
	for i, step := range d.steps() {
		d.screen.heading(fmt.Sprintf("%d. %s", i+1, step.title))
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}
