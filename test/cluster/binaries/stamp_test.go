package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsOfThisProject(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	v, err := readVersions(root)
	if err != nil {
		t.Fatal(err)
	}
	flags := v.linkFlags()
	version := v[kubernetesModule]
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for _, want := range []string{".gitVersion=" + version, ".gitMajor=" + parts[0], ".gitMinor=" + parts[1]} {
		if !strings.Contains(flags, want) {
			t.Errorf("link flags %q lack %q", flags, want)
		}
	}
}

func TestUpToDate(t *testing.T) {
	p := parts[0]
	v := versions{p.module: "v1.0.0", kubernetesModule: "v1.36.3"}
	stamp := v.stamp(p, "go1.26.0")
	tests := map[string]struct {
		binary, stamp string
		want          bool
	}{
		"nothing is there":            {},
		"the build was interrupted":   {binary: "x"},
		"the binary was removed":      {stamp: stamp},
		"built by another Go":         {binary: "x", stamp: v.stamp(p, "go1.25.0")},
		"built at another version":    {binary: "x", stamp: versions{p.module: "v1.0.1", kubernetesModule: "v1.36.3"}.stamp(p, "go1.26.0")},
		"linked with another version": {binary: "x", stamp: versions{p.module: "v1.0.0", kubernetesModule: "v1.37.0"}.stamp(p, "go1.26.0")},
		"built from the same":         {binary: "x", stamp: stamp, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(path, content string) {
				if content == "" {
					return
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write(filepath.Join(binDir(root), "control-plane", p.name), tc.binary)
			write(stampPath(root, p), tc.stamp)
			got, err := upToDate(root, p, stamp)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("up to date: got %t, want %t", got, tc.want)
			}
		})
	}
}
