package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// buildParts builds those of the parts that are not up to date.
func buildParts(ctx context.Context, root string, log io.Writer, want []part) error {
	versions, err := readVersions(root)
	if err != nil {
		return err
	}
	out, err := goCommand(ctx, controlPlaneDir(root), "env", "GOVERSION").Output()
	if err != nil {
		return fmt.Errorf("go env GOVERSION: %w", err)
	}
	goVersion := strings.TrimSpace(string(out))

	stale := func() ([]part, error) {
		var found []part
		for _, p := range want {
			ok, err := upToDate(root, p, versions.stamp(p, goVersion))
			if err != nil {
				return nil, err
			}
			if !ok {
				found = append(found, p)
			}
		}
		return found, nil
	}
	// The common case, nothing to do, takes no lock: it must not wait for another
	// process that is busy building a part which this caller does not need.
	if missing, err := stale(); err != nil || len(missing) == 0 {
		return err
	}
	dir := filepath.Join(binDir(root), "control-plane")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), log)
	if err != nil {
		return err
	}
	defer unlock()
	missing, err := stale() // another process may have built them meanwhile
	if err != nil {
		return err
	}
	for _, p := range missing {
		if err := buildPart(ctx, root, log, p, versions, goVersion); err != nil {
			return err
		}
	}
	return nil
}

func buildPart(ctx context.Context, root string, log io.Writer, p part, v versions, goVersion string) error {
	path := filepath.Join(binDir(root), "control-plane", p.name)
	// An interrupted build leaves no stamp, so that it is not taken for a good one.
	if err := os.RemoveAll(stampPath(root, p)); err != nil {
		return err
	}
	cmd := goCommand(ctx, p.source(root), "build", "-ldflags", v.linkFlags(), "-o", path+".tmp", p.pkg)
	// Without cgo the binaries do not depend on the machine's C library, and no C
	// compiler is needed.
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	started := time.Now()
	what := fmt.Sprintf("building %s %s", p.name, v[p.module])
	if err := run(cmd, what, " (first time: up to several minutes)", log); err != nil {
		return err
	}
	fmt.Fprintf(log, "built %s in %.0f s\n", p.name, time.Since(started).Seconds())
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	temp := stampPath(root, p) + ".tmp"
	if err := os.WriteFile(temp, []byte(v.stamp(p, goVersion)), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, stampPath(root, p))
}

// Signalbox builds cmd/webhook and cmd/reconciler of this project and returns
// their paths. They are built at each call, which Go's build cache makes cheap,
// so that a test never runs an older source. A caller that was itself built with
// -race gets binaries built with -race.
func Signalbox(ctx context.Context, root string, log io.Writer) (webhook, reconciler string, err error) {
	if err := os.MkdirAll(binDir(root), 0o755); err != nil {
		return "", "", err
	}
	unlock, err := lock(ctx, filepath.Join(binDir(root), ".lock"), log)
	if err != nil {
		return "", "", err
	}
	defer unlock()
	suffix, args := "", []string{"build"}
	if raceEnabled {
		suffix, args = "-race", []string{"build", "-race"}
	}
	build := func(name string) (string, error) {
		path := filepath.Join(binDir(root), name+suffix)
		cmd := goCommand(ctx, root, append(args, "-o", path, "./cmd/"+name)...)
		return path, run(cmd, "building "+name+suffix, "", log)
	}
	if webhook, err = build("webhook"); err != nil {
		return "", "", err
	}
	reconciler, err = build("reconciler")
	return webhook, reconciler, err
}

// Plugin builds cmd/kubectl-signalbox of this project, as Signalbox builds the others, and returns its path.
func Plugin(ctx context.Context, root string, log io.Writer) (string, error) {
	if err := os.MkdirAll(binDir(root), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(binDir(root), ".lock"), log)
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(binDir(root), "kubectl-signalbox")
	cmd := goCommand(ctx, root, "build", "-o", path, "./cmd/kubectl-signalbox")
	return path, run(cmd, "building kubectl-signalbox", "", log)
}
