// Package cli_test proves the kubectl plugin on objects of real API servers: what it prints is compared with
// golden files in testdata, which -update writes anew. All tests share one cluster with Signalbox and Kueue,
// each in its own namespace, and further ones that lack a part. A cluster is started when the first test
// needs it. Tests that change what is not in their namespace do not run in parallel with others.
package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/internal/kubectl/plugin"
	"github.com/signalbox-dev/signalbox/test/cluster"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// The clusters. With Signalbox and Kueue all parts run; in the others only API servers do, and a
// test plays what it needs.
var (
	// withAll has Trainer, Signalbox and Kueue.
	withAll = lazy(cluster.Options{Signalbox: true, Kueue: true, Log: os.Stderr})
	// stock has Trainer's kinds; neither Signalbox nor Kueue.
	stock = lazy(cluster.Options{KindsOnly: true})
	// kueueless has Trainer's kinds and Signalbox.
	kueueless = lazy(cluster.Options{Signalbox: true, KindsOnly: true})
	// empty has none of them.
	empty = lazy(cluster.Options{Bare: true})
)

// started are the clusters to close.
var started struct {
	sync.Mutex
	ctx      context.Context
	clusters []*cluster.Cluster
}

// lazy returns a function that starts the cluster when it is called for the first time: one after
// the other, since all at once would keep each other from getting ready.
func lazy(options cluster.Options) func() (*cluster.Cluster, error) {
	return sync.OnceValues(func() (*cluster.Cluster, error) {
		started.Lock()
		defer started.Unlock()
		c, err := cluster.Start(started.ctx, options)
		if err == nil {
			started.clusters = append(started.clusters, c)
		}
		return c, err
	})
}

func TestMain(m *testing.M) {
	flag.Parse()
	plugin.Quiet()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	started.ctx = ctx
	home, err := os.MkdirTemp("", "signalbox-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = surroundings(home)
	code := 1
	if err == nil {
		if code = m.Run(); code != 0 {
			fmt.Fprint(os.Stderr, logTails())
		}
	}
	for _, c := range started.clusters {
		err = errors.Join(err, c.Close())
	}
	if err = errors.Join(err, os.RemoveAll(home)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// surroundings makes those of the plugin the same on each machine.
func surroundings(home string) error {
	time.Local = time.UTC
	// Go builds the parts of the clusters, from caches that are in the true home.
	known, err := exec.Command("go", "env", "GOENV", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(known), "\n"), "\n") {
		if err := os.Setenv([]string{"GOENV", "GOCACHE", "GOMODCACHE", "GOPATH"}[i], value); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{"HOME": home, "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "KUBECONFIG": filepath.Join(home, "none")} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return errors.Join(err, os.Unsetenv("NO_COLOR"))
}

// binary returns the path of the plugin, built from these sources.
var binary = sync.OnceValues(func() (string, error) {
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	return binaries.Plugin(started.ctx, root, os.Stderr)
})

// logTails returns the end of the log of each part that can tell why a run failed.
func logTails() string {
	var out strings.Builder
	for _, c := range started.clusters {
		for _, part := range []*cluster.Process{c.Webhook, c.Reconciler} {
			if part == nil {
				continue
			}
			log, err := os.ReadFile(part.LogPath)
			if err != nil {
				fmt.Fprintln(&out, err)
				continue
			}
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			fmt.Fprintf(&out, "--- last lines of %s\n%s\n", part.Name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
	}
	return out.String()
}
