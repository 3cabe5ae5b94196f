package chart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnits runs the suites in the chart's folder tests.
func TestUnits(t *testing.T) {
	unittest, err := tool("helm-unittest", "helm-unittest")
	if err != nil {
		t.Fatal(err)
	}
	suites, err := filepath.Glob(filepath.Join(root, chart, "tests/*_test.yaml"))
	if err != nil || len(suites) == 0 {
		t.Fatalf("suites: %q, %v; want some", suites, err)
	}
	// It also succeeds where it finds none.
	want := fmt.Sprintf("Test Suites: %[1]d passed, %[1]d total\n", len(suites))
	if output, err := command(unittest, "--strict", chart); err != nil || !strings.Contains(output, want) {
		t.Errorf("helm-unittest: %v\n%s", err, output)
	}
}

// TestArchive checks what of the chart's folder is in its archive: what Helm reads, and no test.
func TestArchive(t *testing.T) {
	folder := t.TempDir()
	if output, err := command(helm, "package", chart, "--destination", folder); err != nil {
		t.Fatalf("helm package: %v\n%s", err, output)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("archives: %v, %v; want one", entries, err)
	}
	listing, err := command("tar", "-tzf", folder+"/"+entries[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"signalbox/Chart.yaml", "signalbox/values.yaml", "signalbox/values.schema.json", "signalbox/README.md",
		"signalbox/templates/checks.yaml", "signalbox/files/alerts.yaml", "signalbox/files/dashboard.json",
	} {
		if !strings.Contains(listing, want+"\n") {
			t.Errorf("the archive does not have %s", want)
		}
	}
	if strings.Contains(listing, "signalbox/tests/") {
		t.Errorf("the archive has tests:\n%s", listing)
	}
}
