// Package chaos_test proves that deadlines hold while requests fail and parts of the control
// plane die and come back. All tests share one cluster, each in its own namespace; they stop
// parts of it, so that none runs in parallel with another.
package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// Flags of TestDeadlineChaos: go test ./test/chaos -args -chaos.jobs=200 -chaos.duration=15m
var (
	chaosSeed     = flag.Uint64("chaos.seed", 0, "seed of the chaos test; 0 for one from the clock")
	chaosJobs     = flag.Int("chaos.jobs", 30, "TrainJobs of the chaos test")
	chaosDuration = flag.Duration("chaos.duration", 90*time.Second, "how long the chaos test kills parts")
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
	shared, err = cluster.Start(ctx, cluster.Options{Signalbox: true, Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster:", err)
		return 1
	}
	code := m.Run()
	keepLogs(code)
	if err := shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "close the cluster:", err)
		return 1
	}
	return code
}

// keepLogs copies the logs of all parts of a failed run to $CHAOS_LOGS, if that is set.
func keepLogs(code int) {
	folder := os.Getenv("CHAOS_LOGS")
	if code == 0 || folder == "" {
		return
	}
	if err := os.CopyFS(folder, os.DirFS(shared.Dir+"/logs")); err != nil {
		fmt.Fprintln(os.Stderr, "keep the logs:", err)
	}
}
