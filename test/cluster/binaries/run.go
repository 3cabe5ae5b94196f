package binaries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// goCommand returns a go command that runs in dir. Flags and workspaces of the
// user's environment are left out: they would change what is built.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	// The go command removes its work folder when it is interrupted, not when it
	// is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// run runs cmd. It is silent when cmd takes less than a second or two; else it
// says what is going on, with a hint at how long it takes, and every 15 s that it
// still is. The error holds what cmd printed.
func run(cmd *exec.Cmd, what, hint string, log io.Writer) error {
	var out bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &out
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	next := time.NewTimer(1500 * time.Millisecond)
	defer next.Stop()
	for announced := false; ; {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", what, err, out.Bytes())
			}
			return nil
		case <-next.C:
			if announced {
				fmt.Fprintf(log, "still %s: %.0f s\n", what, time.Since(started).Seconds())
			} else {
				fmt.Fprintf(log, "%s%s...\n", what, hint)
			}
			announced = true
			next.Reset(15 * time.Second)
		}
	}
}

// ModuleDirs returns the folder of each module of a part in Go's module cache, at the version
// that the part has, and downloads what is not there yet.
func ModuleDirs(ctx context.Context, root string, log io.Writer, modules ...string) (map[string]string, error) {
	dirs := map[string]string{}
	for _, module := range modules {
		i := slices.IndexFunc(parts, func(p part) bool { return p.module == module })
		if i < 0 {
			return nil, fmt.Errorf("no part is of module %s", module)
		}
		found, err := download(ctx, parts[i].source(root), log, module)
		if err != nil {
			return nil, err
		}
		dirs[module] = found[module]
	}
	return dirs, nil
}

// TrainerDir returns the folder of the release of Trainer that the go.mod in
// test/trainers/MINOR pins, in Go's module cache, and downloads it if it is not there yet.
func TrainerDir(ctx context.Context, root string, log io.Writer, minor string) (string, error) {
	dirs, err := download(ctx, filepath.Join(root, "test", "trainers", minor), log, TrainerModule)
	return dirs[TrainerModule], err
}

// download returns the folder of each module as the go.mod in dir pins it. The go command
// checks what it gets against the go.sum there; nothing that the modules require is needed.
func download(ctx context.Context, dir string, log io.Writer, modules ...string) (map[string]string, error) {
	cmd := goCommand(ctx, dir, append([]string{"mod", "download", "-json"}, modules...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := run(cmd, "downloading the manifests of the neighbours", "", log); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	dirs := map[string]string{}
	for decoder := json.NewDecoder(&out); ; {
		var module struct{ Path, Dir string }
		err := decoder.Decode(&module)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("output of go mod download: %w", err)
		}
		dirs[module.Path] = module.Dir
	}
	return dirs, nil
}

// Version returns the version at which test/controlplane requires the module.
func Version(root, module string) (string, error) {
	v, err := readVersions(root)
	if err != nil {
		return "", err
	}
	if v[module] == "" {
		return "", fmt.Errorf("test/controlplane does not require %s", module)
	}
	return v[module], nil
}

// Helm runs helm with args in the project root and returns what it prints. helm
// is pinned in tools/helm and is built at the first use, which takes a minute or
// more.
func Helm(ctx context.Context, root string, log io.Writer, args ...string) ([]byte, error) {
	mod := filepath.Join(root, "tools", "helm", "go.mod")
	cmd := goCommand(ctx, root, append([]string{"tool", "-modfile=" + mod, "helm"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := run(cmd, "running helm", " (first time: it is built)", log)
	return out.Bytes(), err
}

// HelmPath returns the path of the helm that a module in tools pins, helm or helm3, and builds it
// where that was not done before, which takes minutes.
func HelmPath(ctx context.Context, root string, log io.Writer, module string) (string, error) {
	cmd := goCommand(ctx, root, "tool", "-modfile="+filepath.Join(root, "tools", module, "go.mod"), "-n", "helm")
	var out bytes.Buffer
	cmd.Stdout = &out
	err := run(cmd, "building helm of tools/"+module, " (first time: some minutes)", log)
	return string(bytes.TrimSpace(out.Bytes())), err
}
