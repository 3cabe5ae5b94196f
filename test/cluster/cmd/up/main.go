// Command up starts a whole test cluster with signalbox on this machine, says
// how to use it and runs until it is interrupted; nothing of it then remains.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	kueue := flags.Bool("kueue", false, "add Kueue")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Signalbox: true, Kueue: *kueue, Log: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Printf(`
The cluster is up: Kubernetes with Trainer, JobSet and signalbox. Logs are in %s/logs.
Its kubeconfig: %s

Try:
  export KUBECONFIG=%[2]s
  %[3]s get clustertrainingruntimes
  echo '{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "demo"}, "spec": {"activeDeadlineSeconds": 30, "runtimeRef": {"name": "torch-distributed"}}}' | %[3]s apply -f -
  %[3]s get trainjobs,jobsets,pods

The job fails with DeadlineExceeded 30 seconds after it started. Stop with Ctrl-C.
`, c.Dir, c.Kubeconfig, c.Kubectl)
	<-ctx.Done()
	return c.Close()
}
