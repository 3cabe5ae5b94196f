package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kubectl finds the plugin, and what completes it, on the PATH by their names.
func TestCLIByKubectl(t *testing.T) {
	t.Parallel()
	s := withoutKueue(t)
	s.create("eight-hours", suspended(), deadline(28800))
	s.create("other", suspended())
	path, err := binary()
	s.must(err)
	bin := t.TempDir()
	for _, name := range []string{"kubectl-signalbox", "kubectl_complete-signalbox"} {
		s.must(os.Symlink(path, filepath.Join(bin, name)))
	}
	kubectl := func(args ...string) (string, string) {
		t.Helper()
		var out, errOut bytes.Buffer
		cmd := exec.CommandContext(s.ctx, s.cluster.Kubectl, args...)
		cmd.Env = append(os.Environ(), "PATH="+bin, "KUBECONFIG="+s.kubeconfig)
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
		}
		return out.String(), errOut.String()
	}
	out, errOut := kubectl("signalbox", "list", "-n", s.namespace, "-o", "name")
	if want := "trainjob.trainer.kubeflow.org/eight-hours\ntrainjob.trainer.kubeflow.org/other\n"; out != want || errOut != "" {
		t.Errorf("list: %q, standard error %q, want %q", out, errOut, want)
	}
	for name, tc := range map[string]struct {
		typed []string
		want  []string
	}{
		"names of TrainJobs":    {[]string{"explain", "-n", s.namespace, "ei"}, []string{"eight-hours"}},
		"names of runtimes":     {[]string{"diff", "--jobs", "torch-d"}, []string{"torch-distributed"}},
		"namespaces":            {[]string{"list", "-n", s.namespace[:len(s.namespace)-1]}, []string{s.namespace}},
		"formats":               {[]string{"check", "-o", ""}, []string{"table", "wide", "json", "yaml"}},
		"contexts":              {[]string{"list", "--context", ""}, []string{"cluster"}},
		"no second TrainJob":    {[]string{"explain", "-n", s.namespace, "other", ""}, nil},
		"nothing after a check": {[]string{"check", ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, _ := kubectl(append([]string{"__complete", "signalbox"}, tc.typed...)...)
			// The last line is a directive to the shell: that files are no answer.
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if last := lines[len(lines)-1]; last != ":4" {
				t.Errorf("directive %q, want :4", last)
			}
			got := lines[:len(lines)-1]
			for i := range got {
				got[i], _, _ = strings.Cut(got[i], "\t")
			}
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
