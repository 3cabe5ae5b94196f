package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

func TestCLIExplainRunning(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.research()
	s.create("tune", s.mine())
	s.running("tune")
	s.editMine()
	s.aged("tune")
	keep := []string{"8h", "24h"}
	s.same("explain-running", s.succeeds("explain", "tune"), keep...)
	s.same("explain-running-wide", s.succeeds("explain", "trainjob/tune", "-o", "wide"), keep...)
	// Of two looks, all but the time of the look is equal.
	asJSON := s.succeeds("explain", "tune", "-o", "json")
	s.same("explain-running-json", asJSON, keep...)
	var fromJSON, fromYAML map[string]any
	s.must(json.Unmarshal([]byte(asJSON), &fromJSON))
	s.must(yaml.Unmarshal([]byte(s.succeeds("explain", "tune", "-o", "yaml")), &fromYAML))
	delete(fromJSON, "now")
	delete(fromYAML, "now")
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("-o yaml says something else than -o json (-json +yaml):\n%s", diff)
	}
}

func TestCLIExplainTerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create("tune", s.mine(), deadline(28800))
	s.running("tune")
	s.editMine()
	s.aged("tune")
	for name, tc := range map[string]struct {
		columns int
		env     []string
	}{
		"explain-terminal":        {columns: 120},
		"explain-terminal-narrow": {columns: 50, env: []string{"NO_COLOR=1"}},
	} {
		text, code := s.onTerminal(tc.columns, 40, tc.env, "explain", "tune").ends()
		if code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		s.same(name, text, "8h")
		if plain := tc.env != nil; plain == strings.Contains(text, "\x1b") {
			t.Errorf("%d columns, %v: colours or none:\n%q", tc.columns, tc.env, text)
		}
	}
}

func TestCLIExplainSuspended(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create("tune", s.mine(), deadline(28800))
	s.running("tune")
	s.suspend("tune")
	s.becomes("tune", trainer.ConditionSuspended, "True/Suspended")
	s.same("explain-suspended", s.succeeds("explain", "tune"), "8h")
}

func TestCLIExplainQueued(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.queue("team", 1)
	mine := s.mine()
	s.create("first", mine, queued("team"))
	s.running("first")
	s.create("second", mine, queued("team"))
	s.waits("second")
	s.create("third", mine, queued("team"))
	s.waits("third")
	s.same("explain-queued", anyOrder(s.succeeds("explain", "third")))
	// The second is admitted when the first has finished.
	s.finish("first")
	s.running("second")
	out := s.succeeds("explain", "second", "-o", "wide")
	for _, want := range []string{"admitted by ClusterQueue ", " resumed (annotation " + v1alpha1.AnnotationResumedAt + ")"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestCLIExplainDeadline(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	// No node has as many CPUs.
	s.create("tune", s.mine(), annotated(v1alpha1.AnnotationActiveDeadlineSeconds, "2"), annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, "3600"),
		set(map[string]any{"requests": map[string]any{"cpu": "1000"}}, "spec", "trainer", "resourcesPerNode"))
	s.becomes("tune", trainer.ConditionFailed, "True/DeadlineExceeded")
	s.eventually("the end of its JobSet", func() (bool, string) {
		jobSet := s.child(trainer.JobSetGroupVersionKind, "tune")
		return jobSet == nil, fmt.Sprint(jobSet)
	})
	s.same("explain-deadline", s.succeeds("explain", "tune"), "1h")
}

// A TrainJob that no webhook saw is told so, but not without the right to know since when there is one.
func TestCLIExplainUnseen(t *testing.T) {
	s := newScene(t)
	s.unseen()
	mine := s.mine()
	s.eventually("a webhook that does not look", func() (bool, string) {
		job := s.trainJob("probe", mine, labelled("unseen", "yes"))
		s.must(s.cluster.Client.Create(s.ctx, job, client.DryRunAll))
		_, stamped := job.GetAnnotations()[v1alpha1.AnnotationResumedAt]
		return !stamped, fmt.Sprint(job.GetAnnotations())
	})
	s.create("tune", mine, labelled("unseen", "yes"))
	s.running("tune")
	s.eventually("what is filed", func() (bool, string) {
		filed := s.child(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind), "tune")
		return filed != nil, "nothing"
	})
	s.same("explain-unseen", s.succeeds("explain", "tune"))
	user := s.as(may(trainer.GroupVersion.Group, "trainjobs"), may("jobset.x-k8s.io", "jobsets"), may("", "pods", "events", "namespaces"))
	out, errOut, code := user.run("explain", "tune")
	if code != 0 || strings.Contains(out, "the webhook was away when it was created") {
		t.Errorf("without rights: exit code %d\n%s", code, out)
	}
	user.same("explain-unseen-rights", out+errOut)
}

func TestCLIExplainWithoutSignalbox(t *testing.T) {
	t.Parallel()
	s := withoutSignalbox(t)
	mine := s.mine()
	s.create("tune", mine, deadline(28800), annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, "60"), labelled("kueue.x-k8s.io/queue-name", "team"))
	s.aged("tune")
	s.same("explain-stock", s.succeeds("explain", "tune"), "8h")
	// Nobody looks after the annotation.
	s.create("annotated", mine, annotated(v1alpha1.AnnotationActiveDeadlineSeconds, "1"))
	if out := s.succeeds("explain", "annotated"); strings.Contains(out, "DeadlineExceeded") || !strings.Contains(out, "none that counts") {
		t.Errorf("a deadline that nobody looks after:\n%s", out)
	}
}

func TestCLIExplainWithoutKueue(t *testing.T) {
	t.Parallel()
	s := withoutKueue(t)
	s.create("tune", s.mine(), suspended(), deadline(28800))
	s.same("explain-kueueless", s.succeeds("explain", "tune"), "8h")
}

// What may not be read is a note; the TrainJob itself is needed.
func TestCLIExplainRights(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create("tune", s.mine(), deadline(28800))
	s.running("tune")
	s.aged("tune")
	out, errOut, code := s.asIn(may(trainer.GroupVersion.Group, "trainjobs")).run("explain", "tune")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.same("explain-rights", out+errOut, "8h")
	out, errOut, code = s.asIn().run("explain", "tune")
	if code != 1 || out != "" || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "error: ") || !strings.Contains(errOut, "forbidden") {
		t.Errorf("without any right: exit code %d, %q, %q", code, out, errOut)
	}
}

func TestCLIExplainErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scene func(*testing.T) *scene
		args  []string
		want  string
	}{
		"no such TrainJob": {withoutSignalbox, []string{"tune"}, `error: trainjobs.trainer.kubeflow.org "tune" not found`},
		"no Trainer":       {withoutTrainer, []string{"tune"}, "error: " + kubectl.ErrNoTrainer.Error()},
		"not a TrainJob":   {withoutTrainer, []string{"pod/tune"}, `error: "pod/tune" is not a TrainJob`},
		"no name":          {withoutTrainer, nil, "error: accepts 1 arg(s), received 0"},
		"-o name":          {withoutTrainer, []string{"tune", "-o", "name"}, `error: --output must be one of table, wide, json, yaml, not "name"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := tc.scene(t).run(append([]string{"explain"}, tc.args...)...)
			if code != 1 || out != "" || errOut != tc.want+"\n" {
				t.Errorf("exit code %d, %q, standard error:\n%swant:\n%s", code, out, errOut, tc.want)
			}
		})
	}
}
