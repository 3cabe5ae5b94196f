// Package command holds what the two commands have in common: flags, logger and the
// configuration of their client.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// DefaultNamespace is where Signalbox lives when neither flag nor environment say otherwise.
const DefaultNamespace = "signalbox-system"

// StopTimeout is how long a command goes on with what it has begun once it is told to stop.
// It fits into the 30 s that a pod has, of which the webhook serves on for 10.
const StopTimeout = 15 * time.Second

// SyncTimeout is how long a command may take to read what it follows, before it gives up and is
// started anew. With a hundred thousand TrainJobs that takes minutes where the API server is slow.
const SyncTimeout = 10 * time.Minute

// RequestTimeout is how long one pass of a reconciler may take, with all its requests.
const RequestTimeout = 30 * time.Second

// Main runs a command until it ends or the process is told to stop, and exits with 1 when it
// fails. run gets the arguments without the command's name and returns flag.ErrHelp when it
// has only answered a question.
func Main(name string, run func(ctx context.Context, args []string) error) {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Flags are the flags that both commands have.
type Flags struct {
	// MetricsAddress and ProbeAddress are where metrics and probes are served, HOST:PORT;
	// "0" turns metrics off.
	MetricsAddress, ProbeAddress string
	// PprofAddress is where profiles are served, HOST:PORT; "" for nowhere.
	PprofAddress string
	// Namespace is Signalbox's own.
	Namespace string

	logLevel  slog.Level
	logFormat string
	version   bool
}

// Register adds the flags to the set. The client configuration is found as kubectl finds
// it: --kubeconfig, $KUBECONFIG, the pod's service account, ~/.kube/config.
func (f *Flags) Register(set *flag.FlagSet) {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = DefaultNamespace
	}
	config.RegisterFlags(set)
	set.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8080", "`HOST:PORT` of the metrics, 0 for none")
	set.StringVar(&f.ProbeAddress, "health-probe-bind-address", ":8081", "`HOST:PORT` of /healthz and /readyz")
	set.StringVar(&f.PprofAddress, "pprof-bind-address", "", "`HOST:PORT` of Go's profiles, below /debug/pprof/, for whoever reaches it; by default none")
	set.StringVar(&f.Namespace, "namespace", namespace, "Signalbox's own `NAMESPACE`; by default $POD_NAMESPACE")
	set.TextVar(&f.logLevel, "log-level", slog.LevelInfo, "least `LEVEL` that is logged: debug, info, warn or error")
	set.StringVar(&f.logFormat, "log-format", "json", "`FORMAT` of the log: json or text")
	set.BoolVar(&f.version, "version", false, "print the version and exit, as the command version does")
}

// Parse parses the arguments (without the command's name) and sets up logging to output. It
// returns flag.ErrHelp when there is nothing more to do: the help or the version was asked
// for and has been printed, the version to the standard output.
func (f *Flags) Parse(set *flag.FlagSet, args []string, output io.Writer) error {
	if err := set.Parse(args); err != nil {
		return err
	}
	if f.version || set.NArg() == 1 && set.Arg(0) == "version" {
		fmt.Println(set.Name(), ThisBuild())
		return flag.ErrHelp
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	var handler slog.Handler
	options := &slog.HandlerOptions{Level: f.logLevel}
	switch f.logFormat {
	case "json":
		handler = slog.NewJSONHandler(output, options)
	case "text":
		handler = slog.NewTextHandler(output, options)
	default:
		return fmt.Errorf("--log-format must be json or text, not %q", f.logFormat)
	}
	if err := limitMemory(os.Getenv("MEMORY_LIMIT"), os.Getenv("GOMEMLIMIT")); err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	// client-go logs through klog.
	klog.SetSlogLogger(slog.New(handler))
	return nil
}

// limitMemory has the garbage collector keep the process below nine tenths of this many bytes, which
// its container may use. The runtime's own setting comes first; empty is no limit.
func limitMemory(limit, own string) error {
	if limit == "" || own != "" {
		return nil
	}
	bytes, err := strconv.ParseInt(limit, 10, 64)
	if err != nil || bytes < 1 {
		return fmt.Errorf("MEMORY_LIMIT must be a number of bytes, not %q", limit)
	}
	debug.SetMemoryLimit(bytes / 10 * 9)
	return nil
}

// RESTConfig returns the configuration of the client, with this rate limit on its own side:
// queries a second, and how many may come at once.
func RESTConfig(qps float64, burst int) (*rest.Config, error) {
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	cfg.QPS, cfg.Burst = float32(qps), burst
	return cfg, nil
}
