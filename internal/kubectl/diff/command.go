// Package diff compares what TrainJobs run on with their runtime as it is now.
package diff

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

const long = `Compare the content that a TrainJob runs on with its runtime as it is now.

A TrainJob runs, for its whole life, on the runtime as it was when it first became active. "diff JOB" shows what an admin
has changed in the runtime since, as a unified diff of YAML: lines with - are of what the TrainJob runs on, lines with + of
the runtime now. Only what counts is compared: labels and annotations of the runtime, the order of keys, the spelling of
quantities and empty fields make no difference, as they make none to its revision.

"diff RUNTIME --jobs" shows which revision of a runtime each unfinished TrainJob runs on, in its namespace or, with
--all-namespaces, in all. RUNTIME is the name of a TrainingRuntime of the namespace or of a ClusterTrainingRuntime; where
there are both, and where it is gone, TYPE/NAME.

What is compared is what the TrainJob is built from. Trainer 2.3 builds it from what is sealed, and keeps a copy of the
runtime for TrainJobs that are not. Trainer 2.0 to 2.2 keep none, and build from the runtime whenever a TrainJob is
suspended and resumed: there its JobSet tells which revision it runs on, and what is sealed is a record. Notes on standard
error say so.

Exit codes are those of diff:
  0  no difference
  1  the runtime is another now, or gone
  2  something is wrong, or it is not known what a TrainJob runs on`

const examples = `  # What has changed in the runtime since this TrainJob started?
  kubectl signalbox diff eight-hours

  # Which TrainJobs of all teams run on which revision of it?
  kubectl signalbox diff torch-distributed --jobs --all-namespaces

  # The same of a runtime of the namespace team-a, for a script
  kubectl signalbox diff trainingruntime/mine --jobs -n team-a -o json

  # Has nothing changed?
  kubectl signalbox diff eight-hours >/dev/null && echo unchanged`

// Command returns the command diff.
func Command(o *kubectl.Options) *cobra.Command {
	var jobs bool
	command := &cobra.Command{
		Use:                   "diff (JOB | RUNTIME --jobs) [flags]",
		DisableFlagsInUseLine: true,
		Short:                 "Compare what TrainJobs run on with their runtime as it is now",
		Long:                  long,
		Example:               examples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give the name of one TrainJob, or of one runtime and --jobs")
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) > 0:
				return nil, cobra.ShellCompDirectiveNoFileComp
			case jobs:
				return o.CompleteRuntimes(cmd, args, start)
			}
			return o.CompleteJobs(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if jobs {
				return ofRuntime(cmd.Context(), o, args[0])
			}
			return ofJob(cmd.Context(), o, args[0])
		},
	}
	command.Flags().BoolVar(&jobs, "jobs", false, "Show which revision of the runtime each unfinished TrainJob runs on.")
	return command
}
