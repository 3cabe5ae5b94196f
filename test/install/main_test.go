// Package install_test installs Signalbox for real: Helm 4 and Helm 3 put the chart into a
// control plane whose API server accepts every object, the controllers of Kubernetes make pods
// of the Deployments, these run as processes with the rights of their service accounts, and the
// API server calls them by their Service, with the certificate that they keep themselves.
//
// All tests share one cluster. One Signalbox fits into it, so they run one after the other, and
// each leaves the cluster as it was.
package install_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-dev/signalbox/test/cluster"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// shared is the cluster of all tests; root is the root of the project; helms are the paths of
// the pinned Helms by their name.
var (
	shared *cluster.Cluster
	root   string
	helms  = map[string]string{}
)

// The two Helms, and the module in tools of each.
const (
	helm4 = "Helm 4"
	helm3 = "Helm 3"
)

var helmModules = map[string]string{helm4: "helm", helm3: "helm3"}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	home, err := os.MkdirTemp("", "signalbox-helm-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(home)
	// Plugins and repositories of whoever runs the tests have no part in them.
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		os.Setenv(name, filepath.Join(home, name))
	}
	code := 1
	if err = start(ctx); err == nil {
		if code = m.Run(); code != 0 {
			fmt.Fprint(os.Stderr, logTails())
		}
	}
	if shared != nil {
		err = errors.Join(err, shared.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func start(ctx context.Context) (err error) {
	if root, err = binaries.Root(); err != nil {
		return err
	}
	for name, module := range helmModules {
		if helms[name], err = binaries.HelmPath(ctx, root, os.Stderr, module); err != nil {
			return err
		}
	}
	shared, err = cluster.Start(ctx, cluster.Options{Pods: true, Log: os.Stderr})
	return err
}

// logTails returns the last lines that Trainer and each pod of Signalbox logged.
func logTails() string {
	var out bytes.Buffer
	logs, _ := filepath.Glob(filepath.Join(shared.Dir, "logs", "signalbox-*.log"))
	for _, path := range append(logs, shared.Trainer.LogPath) {
		log, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(&out, err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		fmt.Fprintf(&out, "--- last lines of %s\n%s\n", filepath.Base(path), strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return out.String()
}
