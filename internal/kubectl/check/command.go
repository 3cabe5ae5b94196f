package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

const long = `Tell whether this cluster is set up right for TrainJobs with deadlines: one line for each
thing that is looked at, with what to do where something is amiss.

Looked at are the version of Kubernetes and its clock; the CRDs of Trainer, JobSet and Signalbox,
and what this Trainer can do; whether Signalbox's webhooks are registered and reachable, and until
when their certificate is valid; whether the reconciler acts; whether Kueue is there and known by
its service account; stored runtimes that have a clock of their own; LifecyclePolicies, and the
namespaces that they select.

Results are:
  ok       as it should be
  warning  it works, but something is less than it could be, or will not last
  fault    it does not work
  unknown  it could not be looked at, mostly for want of a right to read

The exit code is 0 where there is no fault and all could be looked at, 1 where there is a fault,
and 2 where there is none, but something could not be looked at.`

const examples = `  # Look at the cluster
  kubectl signalbox check

  # In a script: what does not work, and what to do about it
  kubectl signalbox check -o json | jq -r '.checks[] | select(.result == "fault") | .finding, .todo'

  # Signalbox is in another namespace, and does not say so
  kubectl signalbox check --signalbox-namespace trains`

// Command is `kubectl signalbox check`.
func Command(o *kubectl.Options) *cobra.Command {
	return &cobra.Command{
		Use:               "check",
		Short:             "Tell whether this cluster is set up right",
		Long:              long,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := run(cmd.Context(), o)
			if exit := (*kubectl.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				// 1 is for what is wrong with the cluster.
				return &kubectl.ExitError{Code: 2, Err: err}
			}
			return err
		},
	}
}

func run(ctx context.Context, o *kubectl.Options) error {
	if err := o.Resolve(kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML); err != nil {
		return err
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	from := &source{
		Reader: reader, Discovery: reader.Discovery, Clock: o.Clock, Namespace: o.SystemNamespace,
		Renewal: renewal, Skew: reader.Skew, Each: reader.EachOf,
	}
	facts, err := from.read(ctx)
	if err != nil {
		return err
	}
	answer := Judge(facts)
	if err := write(o, answer); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if code := answer.ExitCode(); code != 0 {
		return &kubectl.ExitError{Code: code, Err: errors.New(answer.Summary())}
	}
	return nil
}

// write writes the answer in the format that was asked for; a wide one with no line broken.
func write(o *kubectl.Options, answer Answer) error {
	if o.Output == kubectl.OutputJSON || o.Output == kubectl.OutputYAML {
		return kubectl.Encode(o.Out, answer, o.Output)
	}
	terminal := o.Terminal()
	if o.Output == kubectl.OutputWide {
		terminal.Width = 0
	}
	return table(o.Out, answer, terminal, o.NoHeaders)
}
