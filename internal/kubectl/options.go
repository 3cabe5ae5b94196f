// Package kubectl holds what the commands of the kubectl plugin share: their options, a reader that has no
// more than the rights to get, list and watch, what TrainJobs are called and run on, and how an answer is
// written.
package kubectl

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Formats of an answer: Output of Options. The empty one is a table.
const (
	OutputTable = ""
	OutputWide  = "wide"
	OutputJSON  = "json"
	OutputYAML  = "yaml"
	OutputName  = "name"
)

// Options are what all commands share.
type Options struct {
	genericiooptions.IOStreams
	// Config are the flags by which kubectl finds the API server.
	Config *genericclioptions.ConfigFlags
	// Namespace is the one that is asked for; "" with AllNamespaces. Resolve sets it.
	Namespace     string
	AllNamespaces bool
	// Selector and FieldSelector choose among TrainJobs.
	Selector, FieldSelector string
	// Output is one of the formats.
	Output string
	// ChunkSize is how many objects are asked for at once; 0 is all.
	ChunkSize int64
	NoHeaders bool
	// Clock is that of this machine. Time counts by the server's: see Reader.Now.
	Clock clock.PassiveClock
	// SystemNamespace is where Signalbox lives.
	SystemNamespace string
	// UserAgent is how the plugin calls itself to the API server.
	UserAgent string
}

// Selectors choose among the objects of a kind. The zero value takes all.
type Selectors struct{ Label, Field string }

// Selectors returns those that were given.
func (o *Options) Selectors() Selectors { return Selectors{Label: o.Selector, Field: o.FieldSelector} }

// Resolve finds out the namespace, and looks at what was asked for. formats are those that the command has
// beside the table.
func (o *Options) Resolve(formats ...string) error {
	if o.Output == "table" {
		o.Output = OutputTable
	}
	if o.Output != OutputTable && !slices.Contains(formats, o.Output) {
		return fmt.Errorf("--output must be one of %s, not %q", strings.Join(append([]string{"table"}, formats...), ", "), o.Output)
	}
	if o.ChunkSize < 0 {
		return fmt.Errorf("--chunk-size must be 0 or more, not %d", o.ChunkSize)
	}
	o.Namespace = ""
	if o.AllNamespaces {
		return nil
	}
	namespace, _, err := o.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	o.Namespace = namespace
	return nil
}

// Reader returns a reader of the API server that the flags name.
func (o *Options) Reader() (*Reader, error) {
	config, err := o.Config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	config.UserAgent = o.UserAgent
	// Warnings are for those who write.
	config.WarningHandler = rest.NoWarnings{}
	reader := &Reader{chunk: o.ChunkSize, times: times{clock: o.Clock}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &dated{next: next, times: &reader.times} })
	if reader.mapper, err = o.Config.ToRESTMapper(); err != nil {
		return nil, err
	}
	live, err := client.New(config, client.Options{Scheme: scheme, Mapper: reader.mapper})
	if err != nil {
		return nil, err
	}
	reader.Reader = patient{live}
	if reader.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if reader.Discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, err
	}
	return reader, nil
}
