// Package multikueue_test proves Signalbox where MultiKueue hands TrainJobs from a manager
// cluster to a worker cluster: two control planes, each with Trainer, Kueue and Signalbox,
// connected as Kueue's documentation says. All tests share both, each in a namespace and a
// queue of its own. Those that count what Signalbox does on the manager do not run in parallel
// with others.
package multikueue_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// manager takes TrainJobs in, worker runs them.
var manager, worker *cluster.Cluster

// Namespaces that Signalbox's webhook leaves alone on one of the clusters, or on both: as if
// it were not installed there.
const (
	notOnManager = "not-on-manager"
	notOnWorker  = "not-on-worker"
	onNeither    = "on-neither"
)

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
		err = connect(ctx)
	}
	if err == nil {
		if code = m.Run(); code != 0 {
			fmt.Fprint(os.Stderr, logTails())
		}
	}
	for _, c := range []*cluster.Cluster{manager, worker} {
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
	for c, excluded := range map[**cluster.Cluster]string{&manager: notOnManager, &worker: notOnWorker} {
		group.Go(func() (err error) {
			*c, err = cluster.Start(ctx, cluster.Options{
				Signalbox: true, Kueue: true, Log: os.Stderr,
				HelmValues: []string{"webhook.excludedNamespaces={" + excluded + "," + onNeither + "}"},
			})
			return err
		})
	}
	return group.Wait()
}

// logTails returns the end of the log of each part that can tell why a run failed.
func logTails() string {
	var out bytes.Buffer
	for name, c := range map[string]*cluster.Cluster{"manager": manager, "worker": worker} {
		for _, part := range []*cluster.Process{c.Webhook, c.Reconciler, c.Trainer, c.Kueue} {
			log, err := os.ReadFile(part.LogPath)
			if err != nil {
				fmt.Fprintln(&out, err)
				continue
			}
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			fmt.Fprintf(&out, "--- last lines of %s on the %s\n%s\n", part.Name, name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	}
	return out.String()
}
