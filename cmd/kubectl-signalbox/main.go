// Command kubectl-signalbox is the kubectl plugin of Signalbox: kubectl signalbox.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // how users of a kubeconfig may be known, as with kubectl

	"github.com/signalbox-dev/signalbox/internal/kubectl/plugin"
)

func main() {
	plugin.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first one asks for an end, a second one makes it.
	context.AfterFunc(ctx, stop)
	code := plugin.Run(ctx, plugin.Arguments(os.Args), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
