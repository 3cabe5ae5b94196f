package explain

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

const long = `Tell the story of one TrainJob: what has happened to it, what will stop it and when, who decided each limit, which
content of its runtime it runs on, and what looks wrong.

Everything is told from what the cluster stores at the moment: the TrainJob, its JobSet, pods, events, the Workload of
Kueue, the runtime, what is sealed of it, and the policies. Of what happens more than once, such as suspensions, the
cluster stores the last time only. What may not be read, or cannot be, is said in a note on standard error, and nothing is
concluded from it.

Times are in UTC and by the clock of the API server.

Output formats: text (the default), wide, which also says where in the cluster each line of the timeline stands, json and
yaml. A TrainJob that looks wrong is no error: the exit code is 0 whenever the TrainJob could be read.`

const examples = `  # Why is it not running, and what will stop it?
  kubectl signalbox explain eight-hours

  # The same, with the place in the cluster where each thing is written
  kubectl signalbox explain eight-hours -n team-a -o wide

  # When will it be stopped, for a script
  kubectl signalbox explain eight-hours -o json | jq -r '.limits[] | select(.kind == "ActiveDeadline").at'

  # What looks wrong, one line each
  kubectl signalbox explain eight-hours -o json | jq -r '.findings[] | "\(.level) \(.reason): \(.text)"'`

// Command returns the command explain.
func Command(o *kubectl.Options) *cobra.Command {
	return &cobra.Command{
		Use:                   "explain JOB",
		DisableFlagsInUseLine: true,
		Short:                 "Tell the story of a TrainJob, what will stop it, and what looks wrong",
		Long:                  long,
		Example:               examples,
		Args:                  cobra.ExactArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.CompleteJobs(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), o, args[0]) },
	}
}

// run explains the TrainJob of this name.
func run(ctx context.Context, o *kubectl.Options, argument string) error {
	if err := o.Resolve(kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML); err != nil {
		return err
	}
	name, err := kubectl.JobArgument(argument)
	if err != nil {
		return err
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	notes := &kubectl.Notes{}
	defer notes.Print(o.ErrOut)
	facts, err := read(ctx, o, reader, name, notes)
	if err != nil {
		return err
	}
	now := reader.Now(ctx, notes)
	if err := ctx.Err(); err != nil {
		return err
	}
	report := Of(facts, now)
	switch o.Output {
	case kubectl.OutputJSON, kubectl.OutputYAML:
		report.Notes = notes.All()
		return kubectl.Encode(o.Out, report, o.Output)
	}
	return Print(o.Out, report, o.Terminal(), o.Output == kubectl.OutputWide)
}
