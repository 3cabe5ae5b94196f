package plugin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

func TestMain(m *testing.M) {
	Quiet()
	os.Exit(m.Run())
}

// run runs the plugin where no cluster is.
func run(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "config")
	config := `{apiVersion: v1, kind: Config, current-context: here,
		clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}],
		contexts: [{name: here, context: {cluster: nowhere}}, {name: there, context: {cluster: nowhere}}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	t.Setenv("HOME", folder)
	var stdout, stderr bytes.Buffer
	code = Run(context.Background(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	return stdout.String(), stderr.String(), code
}

func TestArguments(t *testing.T) {
	for name, tc := range map[string]struct{ process, want []string }{
		"by kubectl":             {[]string{"/usr/bin/kubectl-signalbox", "list", "-A"}, []string{"list", "-A"}},
		"as the completer":       {[]string{"/home/me/bin/kubectl_complete-signalbox", "explain", "ei"}, []string{"__complete", "explain", "ei"}},
		"as that of Windows":     {[]string{"kubectl_complete-signalbox.exe", ""}, []string{"__complete", ""}},
		"of a name that differs": {[]string{"kubectl_complete-signalbox2", "list"}, []string{"list"}},
		"of no name":             {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Arguments(tc.process)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		// text is part of what is said, once, on standard error; "" for nothing.
		text string
	}{
		"help":                         {nil, 0, ""},
		"help of a command":            {[]string{"list", "--help"}, 0, ""},
		"version":                      {[]string{"version"}, 0, ""},
		"no such command":              {[]string{"lists"}, 1, `error: unknown command "lists" for "kubectl signalbox"`},
		"no such flag":                 {[]string{"list", "--nope"}, 1, "error: unknown flag: --nope"},
		"no such format":               {[]string{"list", "-o", "xml"}, 1, `error: --output must be one of table, wide, json, yaml, name, not "xml"`},
		"no TrainJob":                  {[]string{"explain"}, 1, "error: accepts 1 arg(s), received 0"},
		"no cluster":                   {[]string{"list"}, 1, "error: "},
		"diff, no TrainJob":            {[]string{"diff"}, 2, "error: give the name of one TrainJob"},
		"diff, no such flag":           {[]string{"diff", "--nope"}, 2, "error: unknown flag: --nope"},
		"diff, no cluster":             {[]string{"diff", "job"}, 2, "error: "},
		"check, no such flag":          {[]string{"check", "--nope"}, 2, "error: unknown flag: --nope"},
		"check, too much":              {[]string{"check", "job"}, 2, "error: "},
		"check, no cluster":            {[]string{"check"}, 2, "error: "},
		"no such context":              {[]string{"list", "--context", "nowhere"}, 1, "error: invalid configuration: context was not found for specified context: nowhere"},
		"escape sequences in an error": {[]string{"list", "--context", "a\x1b[31mb"}, 1, "context was not found for specified context: a"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := run(t, tc.args...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if tc.text == "" && errOut != "" || !strings.Contains(errOut, tc.text) || strings.Count(errOut, "error:") > 1 {
				t.Errorf("standard error %q, want %q in it", errOut, tc.text)
			}
			if (tc.code == 0) == (out == "") {
				t.Errorf("standard output %q", out)
			}
			if strings.Contains(errOut, "\x1b") {
				t.Errorf("an escape sequence in %q", errOut)
			}
		})
	}
}

func TestAnInterruptIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	if code := exit(genericiooptions.IOStreams{ErrOut: &out}, nil, ended(ctx, ctx.Err())); code != 130 || out.Len() > 0 {
		t.Errorf("exit code %d, %q", code, out.String())
	}
	if code := exit(genericiooptions.IOStreams{ErrOut: &out}, nil, ended(ctx, nil)); code != 0 || out.Len() > 0 {
		t.Errorf("list --watch: exit code %d, %q", code, out.String())
	}
	wrapped := &kubectl.ExitError{Code: 2, Err: fmt.Errorf("read: %w", ctx.Err())}
	if code := exit(genericiooptions.IOStreams{ErrOut: &out}, nil, ended(ctx, wrapped)); code != 130 || out.Len() > 0 {
		t.Errorf("check: exit code %d, %q", code, out.String())
	}
	if code := exit(genericiooptions.IOStreams{ErrOut: &out}, nil, ended(context.Background(), context.Canceled)); code != 1 || out.Len() == 0 {
		t.Errorf("what was not interrupted: exit code %d, %q", code, out.String())
	}
}

// commands returns all commands of the plugin that do something.
func commands() []*cobra.Command {
	root := New(NewOptions(genericiooptions.NewTestIOStreamsDiscard()))
	return append([]*cobra.Command{root}, root.Commands()...)
}

func TestEveryCommandHasHelp(t *testing.T) {
	for _, cmd := range commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || cmd.Long == "" || cmd.Example == "" {
				t.Errorf("short %q, long %q, examples %q", cmd.Short, cmd.Long, cmd.Example)
			}
			for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
				if len(line) > 125 {
					t.Errorf("a line of %d characters: %s", len(line), line)
				}
			}
			cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
				if flag.Name != "help" && !strings.HasSuffix(flag.Usage, ".") {
					t.Errorf("--%s: %q is no sentence", flag.Name, flag.Usage)
				}
			})
		})
	}
}

// What examples show can be typed.
func TestExamplesCanBeTyped(t *testing.T) {
	for _, cmd := range commands() {
		for line := range strings.Lines(cmd.Example) {
			words, found := strings.CutPrefix(strings.TrimSpace(line), "kubectl signalbox")
			if !found {
				continue
			}
			words, _, _ = strings.Cut(words, " | ")
			args := slices.DeleteFunc(strings.Fields(words), func(word string) bool { return strings.HasPrefix(word, ">") })
			if i := slices.Index(args, "&&"); i >= 0 {
				args = args[:i]
			}
			root := New(NewOptions(genericiooptions.NewTestIOStreamsDiscard()))
			target, rest, err := root.Find(args)
			if err == nil {
				err = target.ParseFlags(rest)
			}
			if err == nil {
				err = target.ValidateArgs(target.Flags().Args())
			}
			if err != nil || target == root && len(args) > 0 {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	for name, tc := range map[string]struct{ args, want []string }{
		"formats":       {[]string{"explain", "-o", ""}, []string{"table", "wide", "json", "yaml"}},
		"contexts":      {[]string{"list", "--context", ""}, []string{"here", "there"}},
		"begun context": {[]string{"list", "--context", "t"}, []string{"there"}},
		"clusters":      {[]string{"list", "--cluster", ""}, []string{"nowhere"}},
		"no cluster to ask for names is no reason to fail": {[]string{"explain", ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, code := run(t, append([]string{cobra.ShellCompNoDescRequestCmd}, tc.args...)...)
			lines := strings.Fields(out)
			if code != 0 || len(lines) == 0 || lines[len(lines)-1] != ":4" {
				t.Fatalf("exit code %d, %q", code, out)
			}
			if got := lines[:len(lines)-1]; !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, _, code := run(t, "completion", shell); code != 0 || !strings.Contains(out, "kubectl-signalbox") {
			t.Errorf("completion %s: exit code %d, %d characters", shell, code, len(out))
		}
	}
}
