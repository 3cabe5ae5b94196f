// Package binaries builds the programs that a test control plane consists of.
//
// Everything is built from Go modules with the Go toolchain alone: the parts of
// Kubernetes and of the neighbours (JobSet, Trainer, Kueue, kwok) from the
// module in test/controlplane, which pins their versions, and signalbox from
// the root module. The results are kept in .bin under the project root, so that
// only the first run is slow.
package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the parts that Ensure can build.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	JobSet            = "jobset"
	Trainer           = "trainer"
	Kueue             = "kueue"
	Kwok              = "kwok"
)

// Modules whose released manifests a test control plane installs.
const (
	JobSetModule  = "sigs.k8s.io/jobset"
	TrainerModule = "github.com/kubeflow/trainer/v2"
	KueueModule   = "sigs.k8s.io/kueue"
	KwokModule    = "sigs.k8s.io/kwok"

	etcdModule       = "go.etcd.io/etcd/server/v3"
	kubernetesModule = "k8s.io/kubernetes"
)

// part is one program: the main package, the module whose version names it, and the folder
// below test/controlplane of the go.mod that it is built by.
type part struct {
	name, module, pkg, dir string
}

// parts lists what can be built, the slowest of the indispensable ones first, so
// that a broken toolchain or network shows early.
var parts = []part{
	{Etcd, etcdModule, etcdModule, ""},
	{APIServer, kubernetesModule, kubernetesModule + "/cmd/kube-apiserver", ""},
	{ControllerManager, kubernetesModule, kubernetesModule + "/cmd/kube-controller-manager", ""},
	{Scheduler, kubernetesModule, kubernetesModule + "/cmd/kube-scheduler", ""},
	{Kubectl, kubernetesModule, kubernetesModule + "/cmd/kubectl", ""},
	{JobSet, JobSetModule, JobSetModule, ""},
	{Trainer, TrainerModule, TrainerModule + "/cmd/trainer-controller-manager", ""},
	{Kwok, KwokModule, KwokModule + "/cmd/kwok", ""},
	// Kueue is released with an older Trainer in it than the one that runs here.
	{Kueue, KueueModule, KueueModule + "/cmd/kueue", "kueue"},
}

// All returns the names of every part, in the order in which they are built.
func All() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// Ensure returns the path of each named part, keyed by name, and builds those
// that are missing or were built at another version. root is the project root,
// see Root. Progress goes to log, a line a step, with a sign of life every 15 s
// while something is being built: on a machine that never built them, all parts
// together take 15 minutes on two cores.
//
// When KUBEBUILDER_ASSETS is set, etcd, kube-apiserver and kubectl come from
// that folder and are not built; one that is missing there is an error.
//
// Several processes may call Ensure at once: one builds, the others wait.
func Ensure(ctx context.Context, root string, log io.Writer, names ...string) (map[string]string, error) {
	paths := map[string]string{}
	var build []part
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown part %q, known are: %s", name, strings.Join(All(), ", "))
		}
		path, err := fromAssets(name)
		if err != nil {
			return nil, err
		}
		if path != "" {
			paths[name] = path
			continue
		}
		paths[name] = filepath.Join(binDir(root), "control-plane", name)
		build = append(build, parts[i])
	}
	if len(build) == 0 {
		return paths, nil
	}
	if err := buildParts(ctx, root, log, build); err != nil {
		return nil, err
	}
	return paths, nil
}

// fromAssets returns where KUBEBUILDER_ASSETS has the part, or "" when it is not
// set or is not known to hold such a part.
func fromAssets(name string) (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" || !slices.Contains([]string{Etcd, APIServer, Kubectl}, name) {
		return "", nil
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("KUBEBUILDER_ASSETS is set but lacks %s: %w", name, err)
	}
	return path, nil
}

func binDir(root string) string { return filepath.Join(root, ".bin") }
