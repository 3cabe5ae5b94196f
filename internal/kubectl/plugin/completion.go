package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// addOutput gives a command the flag of its formats.
func addOutput(cmd *cobra.Command, o *kubectl.Options, formats ...string) {
	formats = append([]string{"table"}, formats...)
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "How to print the answer: "+strings.Join(formats, ", ")+".")
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
}

// registerCompletion has the flags of kubectl completed as kubectl completes them.
func registerCompletion(root *cobra.Command, o *kubectl.Options) {
	must(root.RegisterFlagCompletionFunc("namespace", o.CompleteNamespaces))
	must(root.RegisterFlagCompletionFunc("signalbox-namespace", o.CompleteNamespaces))
	must(root.RegisterFlagCompletionFunc("context", named(o, func(config api.Config) []string { return keys(config.Contexts) })))
	must(root.RegisterFlagCompletionFunc("cluster", named(o, func(config api.Config) []string { return keys(config.Clusters) })))
	must(root.RegisterFlagCompletionFunc("user", named(o, func(config api.Config) []string { return keys(config.AuthInfos) })))
}

// named completes names from the kubeconfig.
func named(o *kubectl.Options, names func(api.Config) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		config, err := o.Config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := slices.DeleteFunc(names(config), func(name string) bool { return !strings.HasPrefix(name, start) })
		slices.Sort(found)
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func keys[V any](of map[string]V) []string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	return names
}

// must is for what only a mistake in this package makes fail.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("kubectl-signalbox: %v", err))
	}
}
