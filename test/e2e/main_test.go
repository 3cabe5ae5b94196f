// Package e2e_test proves Signalbox on a real control plane: API server, garbage
// collection, scheduler, JobSet, Trainer, Kueue and fake nodes, with Signalbox installed
// from its chart. All tests share one cluster, each in its own namespace. Those that stop a
// part of it, or count what reaches it, do not run in parallel with others.
package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// shared is the cluster of all tests.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	shared, err = cluster.Start(ctx, cluster.Options{Signalbox: true, Kueue: true, Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster:", err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		fmt.Fprint(os.Stderr, logTails())
	}
	if err := shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "close the cluster:", err)
		return 1
	}
	return code
}
