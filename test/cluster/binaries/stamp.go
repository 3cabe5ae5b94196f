package binaries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// versions maps each module that test/controlplane, or a folder of a part in it, requires to its
// version. Of a module that both require, that of test/controlplane counts.
type versions map[string]string

func readVersions(root string) (versions, error) {
	found := versions{}
	for _, p := range append([]part{{}}, parts...) {
		path := filepath.Join(p.source(root), "go.mod")
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(path, data, nil)
		if err != nil {
			return nil, err
		}
		for _, r := range file.Require {
			if found[r.Mod.Path] == "" {
				found[r.Mod.Path] = r.Mod.Version
			}
		}
		if p.module != "" && found[p.module] == "" {
			return nil, fmt.Errorf("%s does not require %s", path, p.module)
		}
	}
	return found, nil
}

// linkFlags returns the -ldflags value of all parts. Without the version, parts
// of Kubernetes call themselves v0.0.0-master, and Kueue refuses to run on that.
func (v versions) linkFlags() string {
	kubernetes := v[kubernetesModule]
	major, rest, _ := strings.Cut(strings.TrimPrefix(kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("-s -w -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s",
		pkg, kubernetes, pkg, major, pkg, minor)
}

// stamp says what a binary was made from. It is kept beside the binary; a
// binary whose stamp differs is built again.
func (v versions) stamp(p part, goVersion string) string {
	return fmt.Sprintf("%s %s\n%s\n%s\n", filepath.Join(p.dir, p.pkg), v[p.module], goVersion, v.linkFlags())
}

func stampPath(root string, p part) string {
	return filepath.Join(binDir(root), "control-plane", p.name+".version")
}

// upToDate says whether the binary is there and carries the stamp.
func upToDate(root string, p part, stamp string) (bool, error) {
	for _, path := range []string{filepath.Join(binDir(root), "control-plane", p.name), stampPath(root, p)} {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	have, err := os.ReadFile(stampPath(root, p))
	return string(have) == stamp, err
}

// source is the folder of the go.mod that the part is built by.
func (p part) source(root string) string { return filepath.Join(controlPlaneDir(root), p.dir) }

func controlPlaneDir(root string) string { return filepath.Join(root, "test", "controlplane") }
