package command

import (
	"errors"
	"flag"
	"io"
	"os"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestBuild(t *testing.T) {
	vcs := func(revision, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.2.1-0.2026"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified},
		}}
	}
	for name, tc := range map[string]struct {
		info     *debug.BuildInfo
		release  string
		want     Build
		wantText string
	}{
		"a release":       {vcs("abc", "false"), "0.2.0", Build{"0.2.0", "abc", "go1.26.0"}, "0.2.0 (abc) go1.26.0"},
		"from sources":    {vcs("abc", "false"), "", Build{"v0.2.1-0.2026", "abc", "go1.26.0"}, "v0.2.1-0.2026 (abc) go1.26.0"},
		"changed sources": {vcs("abc", "true"), "", Build{"v0.2.1-0.2026", "abc+dirty", "go1.26.0"}, "v0.2.1-0.2026 (abc+dirty) go1.26.0"},
		"no sources":      {&debug.BuildInfo{GoVersion: "go1.26.0"}, "", Build{"unknown", "", "go1.26.0"}, "unknown go1.26.0"},
	} {
		got := buildOf(tc.info, tc.release)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.String() != tc.wantText {
			t.Errorf("%s: %q, want %q", name, got, tc.wantText)
		}
	}
}

func TestRegisterBuild(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := RegisterBuild(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "signalbox_build_info" {
		t.Fatalf("gathered %v, %v", families, err)
	}
	labels := map[string]string{}
	for _, label := range families[0].Metric[0].Label {
		labels[label.GetName()] = label.GetValue()
	}
	build := ThisBuild()
	want := map[string]string{"version": build.Version, "revision": build.Revision, "go_version": build.Go}
	if diff := cmp.Diff(want, labels); diff != "" || families[0].Metric[0].Gauge.GetValue() != 1 {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// printed returns what do prints to the standard output.
func printed(t *testing.T, do func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = before }()
	do()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The version is asked for by flag or by command, and told on its own.
func TestVersionAskedFor(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"version"}, {"--log-level=debug", "version"}} {
		var flags Flags
		set := flag.NewFlagSet("webhook", flag.ContinueOnError)
		flags.Register(set)
		told := printed(t, func() {
			if err := flags.Parse(set, args, io.Discard); !errors.Is(err, flag.ErrHelp) {
				t.Errorf("%v: %v, want ErrHelp", args, err)
			}
		})
		if want := "webhook " + ThisBuild().String() + "\n"; told != want {
			t.Errorf("%v tells %q, want %q", args, told, want)
		}
	}
	var flags Flags
	set := flag.NewFlagSet("webhook", flag.ContinueOnError)
	flags.Register(set)
	if err := flags.Parse(set, []string{"versions"}, io.Discard); err == nil || errors.Is(err, flag.ErrHelp) {
		t.Errorf("another argument: %v, want an error", err)
	}
}
