// Package internal_test checks what the layout promises.
package internal_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/signalbox-dev/signalbox/"

// pure are the files that decide: what they say must follow from their arguments alone.
var pure = []string{
	"deadline/deadline.go", "deadline/ready.go", "deadline/stamp.go", "deadline/terminal.go", "deadline/validate.go",
	"guard/guard.go",
	"kubectl/argument.go", "kubectl/content.go", "kubectl/limit.go", "kubectl/state.go", "kubectl/wrap.go",
	"kubectl/check/certificate.go", "kubectl/check/facts.go", "kubectl/check/installed.go", "kubectl/check/item.go", "kubectl/check/judge.go", "kubectl/check/kueue.go", "kubectl/check/reconciler.go",
	"kubectl/check/rules.go", "kubectl/check/served.go", "kubectl/check/trainer.go", "kubectl/check/webhook.go",
	"kubectl/diff/compare.go", "kubectl/diff/report.go", "kubectl/diff/unified.go",
	"kubectl/explain/findings.go", "kubectl/explain/limits.go", "kubectl/explain/report.go", "kubectl/explain/running.go",
	"kubectl/explain/sealing.go", "kubectl/explain/timeline.go",
	"kubectl/list/left.go", "kubectl/list/lines.go", "kubectl/list/row.go",
	"kueue/built.go", "kueue/compare.go", "kueue/json.go", "kueue/order.go", "kueue/podsets.go", "kueue/told.go", "kueue/workload.go",
	"policy/policy.go",
	"snapshot/revision.go", "snapshot/seal.go", "snapshot/snapshot.go",
	"ttl/ttl.go",
}

// impure are the packages, and those below them, by which a file would reach for a cluster, a
// clock, a log or the machine.
var impure = []string{
	"context", "log", "math/rand", "net", "os", "sync",
	"github.com/go-logr", "github.com/prometheus",
	"k8s.io/client-go", "k8s.io/klog", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime",
}

func TestPureFilesReachForNothing(t *testing.T) {
	for _, file := range pure {
		for _, path := range imports(t, file) {
			if slices.ContainsFunc(impure, func(tree string) bool { return below(path, tree) }) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

// Imports run one way: each package may import those of the rows above it, never of its own.
func TestImportsRunOneWay(t *testing.T) {
	rows := [][]string{
		{"api/v1alpha1", "internal/shared"},
		{"internal/trainer", "internal/event"},
		{"internal/deadline", "internal/snapshot", "internal/guard", "internal/policy", "internal/ttl", "internal/kueue"},
		{"internal/admission", "internal/certificate", "internal/command", "internal/kubectl"},
		{"internal/kubectl/list", "internal/kubectl/explain", "internal/kubectl/diff", "internal/kubectl/check"},
		{"internal/kubectl/plugin"},
		{"cmd/webhook", "cmd/reconciler", "cmd/kubectl-signalbox"},
	}
	var above []string
	for _, row := range rows {
		for _, pkg := range row {
			files, err := filepath.Glob("../" + pkg + "/*.go")
			if err != nil || len(files) == 0 {
				t.Fatalf("the files of %s: %v, %v", pkg, files, err)
			}
			for _, file := range files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				for _, path := range imports(t, file) {
					if own, found := strings.CutPrefix(path, module); found && !slices.Contains(above, own) {
						t.Errorf("%s imports %s", file, own)
					}
				}
			}
		}
		above = append(above, row...)
	}
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, len(parsed.Imports))
	for i, spec := range parsed.Imports {
		if paths[i], err = strconv.Unquote(spec.Path.Value); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// below tells whether the import path is the tree or in it.
func below(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }
