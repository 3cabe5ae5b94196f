package cli_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// otherDay is a time of another day than today, which depends on when the test runs.
var otherDay = regexp.MustCompile(`\b[A-Z][a-z]{2}-\d\d \d\d:\d\d\b`)

// secondsLeft go down while the test runs.
var secondsLeft = regexp.MustCompile(`"secondsLeft": \d+`)

// looks names what escape sequences do, of which a part would be taken for a duration.
var looks = strings.NewReplacer("\x1b[0m", "{}", "\x1b[31m", "{red}", "\x1b[32m", "{green}", "\x1b[33m", "{yellow}")

// sameList compares the output of list with a golden file.
func (s *scene) sameList(name, text string) {
	s.Helper()
	text = otherDay.ReplaceAllString(looks.Replace(text), "hh:mm:ss")
	s.same(name, secondsLeft.ReplaceAllString(text, `"secondsLeft": N`), "8h", "2s", "3d")
}

// listed makes TrainJobs in all states: of a policy, of their own limits, in a queue, and finished.
func (s *scene) listed() {
	s.Helper()
	mine := s.mine()
	s.create("done", mine)
	s.finish("done")
	s.create("too-long", annotated(v1alpha1.AnnotationActiveDeadlineSeconds, "2"))
	s.becomes("too-long", trainer.ConditionFailed, "True/DeadlineExceeded")
	s.create("free", mine)
	s.running("free")
	s.queue("team", 1)
	s.create("first", mine, queued("team"), deadline(259200))
	s.running("first")
	s.create("second", mine, queued("team"))
	s.waits("second")
	s.aged("second")
	s.create("third", mine, queued("team"))
	s.waits("third")
	s.create("paused", mine, suspended(), deadline(28800))
	s.becomes("paused", trainer.ConditionSuspended, "True/Suspended")
	s.editMine()
	s.research()
	s.create("by-policy", mine)
	s.running("by-policy")
	s.aged("by-policy")
}

func TestCLIList(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.listed()
	s.sameList("list", s.succeeds("list"))
	s.sameList("list-wide", s.succeeds("list", "-o", "wide"))
	s.sameList("list-name", s.succeeds("list", "-o", "name"))
	s.sameList("list-no-headers", s.succeeds("list", "--no-headers", "--field-selector", "metadata.name=free"))
	asJSON := s.succeeds("list", "-o", "json")
	s.sameList("list-json", asJSON)
	var fromJSON, fromYAML struct {
		Items []map[string]any `json:"items"`
	}
	s.must(json.Unmarshal([]byte(asJSON), &fromJSON))
	s.must(yaml.Unmarshal([]byte(s.succeeds("list", "-o", "yaml")), &fromYAML))
	for _, items := range [][]map[string]any{fromJSON.Items, fromYAML.Items} {
		for _, item := range items {
			delete(item, "secondsLeft")
		}
	}
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("-o yaml says something else than -o json (-json +yaml):\n%s", diff)
	}
	if out := s.succeeds("list", "--all-namespaces", "--chunk-size", "2"); !strings.HasPrefix(out, "NAMESPACE ") || strings.Count(out, "\n"+s.namespace+" ") != 8 {
		t.Errorf("of all namespaces:\n%s", out)
	}
	for name, tc := range map[string]struct {
		columns int
		env     []string
	}{
		"list-terminal":        {columns: 150},
		"list-terminal-narrow": {columns: 60, env: []string{"NO_COLOR=1"}},
		"list-terminal-ascii":  {columns: 80, env: []string{"LC_ALL=C", "TERM=dumb"}},
	} {
		text, code := s.onTerminal(tc.columns, 40, tc.env, "list").ends()
		if code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		s.sameList(name, text)
		for line := range strings.Lines(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(text, "")) {
			if width := len([]rune(strings.TrimSuffix(line, "\n"))); width > tc.columns {
				t.Errorf("%s has a line of %d columns: %q", name, width, line)
			}
		}
		if plain := tc.env != nil; plain == strings.Contains(text, "\x1b") {
			t.Errorf("%s: colours or none:\n%q", name, text)
		}
	}
}

// What may not be read is a note, and the rest is there; without the TrainJobs there is nothing but an error.
func TestCLIListRights(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create("tune", s.mine(), deadline(28800))
	s.running("tune")
	s.aged("tune")
	out, errOut, code := s.asIn(may(trainer.GroupVersion.Group, "trainjobs")).run("list")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.sameList("list-rights", out+errOut)
	out, errOut, code = s.asIn(may("jobset.x-k8s.io", "jobsets")).run("list")
	if code != 1 || out != "" || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "error: trainjobs.trainer.kubeflow.org is forbidden: ") {
		t.Errorf("without any right: exit code %d, %q, %q", code, out, errOut)
	}
}

// Without Signalbox nothing counts but what Trainer itself looks after, from where Trainer counts.
func TestCLIListWithoutSignalbox(t *testing.T) {
	t.Parallel()
	s := withoutSignalbox(t)
	mine := s.mine()
	s.create("field", mine, deadline(28800), annotated(v1alpha1.AnnotationResumedAt, time.Now().Add(-10*time.Hour).UTC().Format(time.RFC3339Nano)))
	s.create("annotated", mine, annotated(v1alpha1.AnnotationActiveDeadlineSeconds, "1"))
	s.create("queued", mine, suspended(), labelled("kueue.x-k8s.io/queue-name", "team"))
	s.aged("queued")
	s.sameList("list-stock", s.succeeds("list"))
}

func TestCLIListWithoutKueue(t *testing.T) {
	t.Parallel()
	s := withoutKueue(t)
	s.create("tune", s.mine(), deadline(28800))
	s.aged("tune")
	s.sameList("list-kueueless", s.succeeds("list"))
}

func TestCLIListNothing(t *testing.T) {
	t.Parallel()
	s := withoutSignalbox(t)
	out, errOut, code := s.run("list")
	if want := fmt.Sprintf("No TrainJobs found in namespace %s.\n", s.namespace); code != 0 || out != "" || errOut != want {
		t.Errorf("exit code %d, %q, standard error %q, want %q", code, out, errOut, want)
	}
	if out := s.succeeds("list", "-o", "json"); !strings.Contains(out, `"items": []`) {
		t.Errorf("as JSON: %s", out)
	}
}

func TestCLIListErrors(t *testing.T) {
	t.Parallel()
	s := withoutTrainer(t)
	for want, args := range map[string][]string{
		"error: this cluster has no TrainJobs: Kubeflow Trainer is not installed":    nil,
		`error: --output must be one of table, wide, json, yaml, name, not "custom"`: {"-o", "custom"},
		`error: unknown command "tune" for "kubectl signalbox list"`:                 {"tune"},
		"error: --chunk-size must be 0 or more, not -1":                              {"--chunk-size", "-1"},
	} {
		out, errOut, code := s.run(append([]string{"list"}, args...)...)
		if code != 1 || out != "" || errOut != want+"\n" {
			t.Errorf("%v: exit code %d, %q, standard error:\n%swant:\n%s", args, code, out, errOut, want)
		}
	}
}
