// Command bench measures what Signalbox costs, how late it is and how far it scales, on a real
// control plane, beside what the stock stack does in the same run. It never judges: it prints
// tables and writes the figures to files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

// bench is one of the benches.
type bench struct {
	name string
	run  func(ctx context.Context, o options) (*figures.Report, error)
}

// benches are all benches, in the order in which they run.
var benches = []bench{
	{"handlers", handlers},
	{"load", load},
	{"admission", admission},
	{"storage", storage},
	{"scale", scale},
	{"expiry", expiry},
}

// options are the settings of a run.
type options struct {
	// short is for a look whether the benches work: their figures say little.
	short bool
	// full adds what takes long.
	full bool
	// out is the folder for the files of the reports.
	out  string
	only []string
}

func parse(args []string) (options, error) {
	var o options
	var names []string
	for _, b := range benches {
		names = append(names, b.name)
	}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.BoolVar(&o.short, "short", false, "run with small sizes, to see whether all works")
	set.BoolVar(&o.full, "full", false, "measure also what takes long: 5000 deadlines at once, some 20 minutes")
	set.StringVar(&o.out, "out", ".bin/bench", "`FOLDER` for the figures")
	only := set.String("only", "", "`NAMES` of the benches to run, with commas between them: "+strings.Join(names, ", ")+"; by default all")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if o.short && o.full {
		return o, errors.New("-short and -full exclude each other")
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if *only == "" {
		o.only = names
		return o, nil
	}
	o.only = strings.Split(*only, ",")
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("there is no bench %q, only %s", name, strings.Join(names, ", "))
		}
	}
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the benches that were asked for, each after the other.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	for _, b := range benches {
		if !slices.Contains(o.only, b.name) {
			continue
		}
		machine, err := figures.ThisMachine()
		if err != nil {
			return err
		}
		report, err := b.run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		report.Name, report.Machine, report.Command = b.name, machine, "make bench BENCH="+b.name
		if o.full {
			report.Command += " FULL=1"
		}
		if o.short {
			report.Notes = append(report.Notes, "A short run: its figures say little.")
		}
		if err := report.Print(os.Stdout); err != nil {
			return err
		}
		if err := report.Write(o.out); err != nil {
			return err
		}
	}
	return nil
}
