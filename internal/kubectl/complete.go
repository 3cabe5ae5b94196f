package kubectl

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// completionTime is how long a shell may wait for names.
const completionTime = 3 * time.Second

// CompleteJobs returns the names of the TrainJobs that begin with what was typed.
func (o *Options) CompleteJobs(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	kind, start, typed := strings.Cut(start, "/")
	if !typed {
		kind, start = "", kind
	}
	names := o.names(cmd.Context(), trainer.GroupVersion.WithKind(trainer.TrainJobKind), start)
	return prefixed(kind, names), cobra.ShellCompDirectiveNoFileComp
}

// CompleteRuntimes returns the names of the runtimes that begin with what was typed: of both kinds, or of
// that which was typed.
func (o *Options) CompleteRuntimes(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	typed, begin, slash := strings.Cut(start, "/")
	if !slash {
		typed, begin = "", start
	}
	var names []string
	for _, kind := range []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind} {
		if typed != "" {
			if is, _, err := RuntimeArgument(typed + "/any"); err != nil || is != kind {
				continue
			}
		}
		for _, name := range o.names(cmd.Context(), trainer.GroupVersion.WithKind(kind), begin) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return prefixed(typed, names), cobra.ShellCompDirectiveNoFileComp
}

// prefixed puts the kind that was typed back before the names.
func prefixed(kind string, names []string) []string {
	if kind != "" {
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
	}
	return names
}

var namespaces = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// CompleteNamespaces returns the names of the namespaces that begin with what was typed.
func (o *Options) CompleteNamespaces(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return o.names(cmd.Context(), namespaces, start), cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of the objects of a kind that begin so; of what cannot be read none: a shell is no
// place for errors.
func (o *Options) names(ctx context.Context, gvk schema.GroupVersionKind, start string) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	// The flags before the name have been read, but nothing has been made of them.
	complete := *o
	complete.Output = OutputTable
	if timeout := complete.Config.Timeout; timeout != nil && (*timeout == "" || *timeout == "0") {
		// Finding the kinds goes by this, not by ctx.
		*timeout = completionTime.String()
	}
	if complete.Resolve() != nil {
		return nil
	}
	reader, err := complete.Reader()
	if err != nil {
		return nil
	}
	namespace := complete.Namespace
	if gvk.Kind == trainer.ClusterTrainingRuntimeKind || gvk == namespaces {
		namespace = ""
	}
	var names []string
	page := &metav1.PartialObjectMetadataList{}
	for {
		page.SetGroupVersionKind(gvk)
		if err := reader.List(ctx, page, client.InNamespace(namespace), client.Limit(complete.ChunkSize), client.Continue(page.Continue)); err != nil {
			break
		}
		for i := range page.Items {
			if name := page.Items[i].Name; strings.HasPrefix(name, start) {
				names = append(names, name)
			}
		}
		if page.Continue == "" {
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
