// Package list shows the TrainJobs of a cluster: what each is doing, until when, and on what.
package list

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

const long = `List TrainJobs, one line each: what it is doing, until when, and on what. What ends first comes first.

  STATE     Queued (held back by Kueue), Suspended (by anybody else), Running, Finishing (being deleted, past its
            deadline, or its JobSet has ended), Succeeded, Failed, DeadlineExceeded
  SINCE     when it last became active
  DEADLINE  when it will be stopped, and LEFT how long that is away; "-" where nothing counts: in a queue, without a
            limit, finished, or run by another controller
  OF LIMIT  how much of the limit is left
  LIMIT     how long it may be active, each time that it becomes active
  FROM      who gave the limit: "spec" or "annotation" where it is the author's own, or the LifecyclePolicy or runtime
  RUNTIME   the runtime that it refers to; a ClusterTrainingRuntime where no kind is said
  CHANGED   whether that has another content now than the one that the TrainJob runs on: no, yes, or gone; "-" where it
            has not started, and will run on the runtime as it is then; "?" where that is not known
  QUEUE     the LocalQueue of its Kueue Workload, and POSITION its place there by priority and time

On a narrow terminal the columns that are missed least are left out; -o wide has all, and times in full. Times are those of
this machine's time zone, counted by the API server's clock.

With --watch, a terminal shows the list as it is at each moment. Elsewhere each change is a line more; a TrainJob that is
not listed any more has the state Deleted, or Unselected where it still exists and does not match the selectors.

It needs the right to list (and, with --watch, to watch) TrainJobs. What else it may not read is missing from the answer,
and a note on standard error says so.`

const examples = `  # What is running in this namespace, and until when?
  kubectl signalbox list

  # Keep looking, in all namespaces
  kubectl signalbox list --all-namespaces --watch

  # The TrainJobs of one team
  kubectl signalbox list -l team=vision

  # Those that end within the hour, for a script
  kubectl signalbox list -o json | jq -r '.items[] | select(.secondsLeft != null and .secondsLeft < 3600) | .name'

  # Those whose runtime has changed since they started
  kubectl signalbox list -A -o json | jq -r '.items[] | select(.changed == "yes") | .namespace + "/" + .name'`

// Command returns the command list.
func Command(o *kubectl.Options) *cobra.Command {
	var follow bool
	command := &cobra.Command{
		Use:                   "list",
		Aliases:               []string{"ls"},
		DisableFlagsInUseLine: true,
		Short:                 "List TrainJobs: what each is doing, until when, and on what",
		Long:                  long,
		Example:               examples,
		Args:                  cobra.NoArgs,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o, follow) },
	}
	command.Flags().BoolVarP(&follow, "watch", "w", false, "After the list, show what changes.")
	return command
}

func run(ctx context.Context, o *kubectl.Options, follow bool) error {
	if err := o.Resolve(kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML, kubectl.OutputName); err != nil {
		return err
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	l := newLister(o, reader)
	if err := l.read(ctx, follow); err != nil {
		return why(err)
	}
	if follow {
		return l.watch(ctx, viewerOf(o))
	}
	now := l.now(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	l.notes.Print(o.ErrOut)
	return once(o, l, now)
}

// viewerOf returns what shows a list that is watched.
func viewerOf(o *kubectl.Options) viewer {
	if (o.Output == kubectl.OutputTable || o.Output == kubectl.OutputWide) && o.Terminal().Redraws {
		return &drawn{options: o, terminal: o.Terminal, screen: screen{out: o.Out}}
	}
	return &appended{options: o}
}

// why says why TrainJobs cannot be listed.
func why(err error) error {
	if kubectl.NotInstalled(err) {
		return errNoTrainer
	}
	return err
}

var errNoTrainer = errors.New("this cluster has no TrainJobs: Kubeflow Trainer is not installed")
