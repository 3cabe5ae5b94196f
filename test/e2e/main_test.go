// Package e2e_test proves Signalbox on a real control plane: API server, garbage
// collection, scheduler, JobSet, Trainer, Kueue and fake nodes, with Signalbox installed
// from its chart. All tests share one cluster, each in its own namespace, and a
// second one without Signalbox to show what goes wrong there. Those that stop a
// part of it, or count what reaches it, do not run in parallel with others.
package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// shared is the cluster of all tests, stock one without Signalbox: a fault that Signalbox
// removes is first shown there.
var shared, stock *cluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := 1
	err := start(ctx)
	if err == nil {
		if code = m.Run(); code != 0 {
			fmt.Fprint(os.Stderr, logTails())
		}
	}
	for _, c := range []*cluster.Cluster{shared, stock} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start starts both clusters.
func start(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() (err error) {
		shared, err = cluster.Start(ctx, cluster.Options{Signalbox: true, Kueue: true, Log: os.Stderr})
		return err
	})
	group.Go(func() (err error) {
		stock, err = cluster.Start(ctx, cluster.Options{Kueue: true})
		return err
	})
	return group.Wait()
}
