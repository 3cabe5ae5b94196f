package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/signalbox-dev/signalbox/internal/command"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kubectl/check"
	"github.com/signalbox-dev/signalbox/internal/kubectl/diff"
	"github.com/signalbox-dev/signalbox/internal/kubectl/explain"
	"github.com/signalbox-dev/signalbox/internal/kubectl/list"
)

const long = `See which TrainJobs are running, until when, and on what.

All commands only read: with the rights to get, list and watch they work on any cluster with Kubeflow Trainer, whether or
not Signalbox or Kueue are there. What may not be read, or cannot be, is missing from the answer, and a note on standard
error says so.

Exit codes are 0 where all is well and 1 where the command failed. "diff" and "check" have codes of their own, see there.`

const examples = `  # What is running in this namespace, and until when?
  kubectl signalbox list

  # Why is this TrainJob not running, and what will stop it?
  kubectl signalbox explain eight-hours

  # What has changed in its runtime since it started?
  kubectl signalbox diff eight-hours

  # Is this cluster set up right?
  kubectl signalbox check`

// chunk is how many objects kubectl asks for at once.
const chunk = 500

// NewOptions returns the options that the flags of New change.
func NewOptions(streams genericiooptions.IOStreams) *kubectl.Options {
	return &kubectl.Options{
		IOStreams:       streams,
		Config:          genericclioptions.NewConfigFlags(true),
		ChunkSize:       chunk,
		Clock:           clock.RealClock{},
		SystemNamespace: kubectl.DefaultSystemNamespace,
		UserAgent:       "kubectl-signalbox/" + command.ThisBuild().Version,
	}
}

// New returns the command of the plugin.
func New(o *kubectl.Options) *cobra.Command {
	root := &cobra.Command{
		Use:         "kubectl-signalbox",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl signalbox"},
		Short:       "See which TrainJobs are running, until when, and on what",
		Long:        long,
		Example:     examples,
		// Run says errors, and once.
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(o.In)
	root.SetOut(o.Out)
	root.SetErr(o.ErrOut)
	flags := root.PersistentFlags()
	o.Config.AddFlags(flags)
	flags.BoolVar(&o.NoHeaders, "no-headers", false, "Print tables without their headers.")
	flags.StringVar(&o.SystemNamespace, "signalbox-namespace", o.SystemNamespace, "Namespace that Signalbox is installed in.")
	registerCompletion(root, o)

	listing, comparing := list.Command(o), diff.Command(o)
	for _, cmd := range []*cobra.Command{listing, comparing} {
		flags := cmd.Flags()
		flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "Of all namespaces.")
		flags.StringVarP(&o.Selector, "selector", "l", "", "Only TrainJobs with these labels, such as team=a,stage!=test.")
		flags.StringVar(&o.FieldSelector, "field-selector", "", "Only TrainJobs with these fields, such as metadata.name=a.")
		flags.Int64Var(&o.ChunkSize, "chunk-size", o.ChunkSize, "How many objects to ask the API server for at once; 0 for all.")
	}
	explaining, checking := explain.Command(o), check.Command(o)
	addOutput(listing, o, kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML, kubectl.OutputName)
	addOutput(comparing, o, kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML, kubectl.OutputName)
	addOutput(explaining, o, kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML)
	addOutput(checking, o, kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML)
	root.AddCommand(listing, explaining, comparing, checking, version(o))
	return root
}

// version is the command version.
func version(o *kubectl.Options) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version of this plugin",
		Long:              "Print the version of this plugin, the commit it was built from, and the version of Go. `check` tells those of the cluster.",
		Example:           "  kubectl signalbox version",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(o.Out, "kubectl-signalbox", command.ThisBuild())
			return err
		},
	}
}
