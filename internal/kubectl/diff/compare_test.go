package diff

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func take(t *testing.T, runtime *builder.RuntimeBuilder) *snapshot.Snapshot {
	t.Helper()
	taken, err := snapshot.Take(runtime.Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func TestCompare(t *testing.T) {
	first := func() *builder.RuntimeBuilder { return builder.ClusterTrainingRuntime("torch") }
	second := func() *builder.RuntimeBuilder { return first().Image("image:2") }
	old, edited := take(t, first()), take(t, second())
	liveIs := func(b *builder.RuntimeBuilder, built kubectl.Built) kubectl.Content {
		return kubectl.Content{Built: built, Live: kubectl.Live{Revision: take(t, b).Revision}, LiveRuntime: b.Obj()}
	}
	with := func(content kubectl.Content, change func(*kubectl.Content)) kubectl.Content {
		change(&content)
		return content
	}
	seal := kubectl.Built{From: kubectl.FromSeal, Revision: old.Revision, Next: kubectl.FromSeal}
	sealed := func(content kubectl.Content) kubectl.Content {
		return with(content, func(c *kubectl.Content) { c.Sealed, c.Snapshot = old, old })
	}
	for name, tc := range map[string]struct {
		content  kubectl.Content
		finished bool
		same     bool
		want     []string // lines of the text
		notes    []string // a part of each note
		err      string
	}{
		"the runtime was edited": {
			content: sealed(liveIs(second(), seal)),
			want: []string{
				"--- ClusterTrainingRuntime/torch (sealed, revision " + old.Revision + ")",
				"+++ ClusterTrainingRuntime/torch (live, revision " + edited.Revision + ")",
				"-                - image: image:1",
				"+                - image: image:2",
			},
		},
		"the runtime is what is sealed": {
			content: sealed(liveIs(first().Label("a", "b"), seal)),
			same:    true,
		},
		"the runtime is gone": {
			content: with(sealed(kubectl.Content{Built: seal}), func(c *kubectl.Content) { c.Live.Gone = true }),
			want:    []string{"+++ /dev/null", "-kind: ClusterTrainingRuntime", "-                - image: image:1"},
			notes:   []string{"Trainer refuses every change"},
		},
		"the runtime of a finished TrainJob is gone": {
			content:  with(sealed(kubectl.Content{Built: seal}), func(c *kubectl.Content) { c.Live.Gone = true }),
			finished: true,
			want:     []string{"+++ /dev/null"},
		},
		"the runtime could not be read": {
			content: sealed(kubectl.Content{Built: seal}),
			err:     "ClusterTrainingRuntime/torch could not be read",
		},
		"nothing is kept yet": {
			content: with(liveIs(second(), kubectl.Built{From: kubectl.FromLive, Revision: edited.Revision, Next: kubectl.FromLive}), func(c *kubectl.Content) { c.Snapshot = edited }),
			same:    true,
			notes:   []string{"as that is when it starts"},
		},
		"a Trainer that keeps nothing, and it runs on what is sealed": {
			content: sealed(liveIs(second(), kubectl.Built{From: kubectl.FromSeal, Revision: old.Revision, Next: kubectl.FromLive})),
			want:    []string{"-                - image: image:1"},
			notes:   []string{"this Trainer builds it from the live runtime"},
		},
		"a Trainer that keeps nothing, and it runs on the live runtime": {
			content: with(sealed(liveIs(second(), kubectl.Built{From: kubectl.FromLive, Revision: edited.Revision, Next: kubectl.FromLive})), func(c *kubectl.Content) { c.Snapshot = edited }),
			same:    true,
			notes:   []string{"is a record"},
		},
		"a Trainer that keeps nothing, and it runs on neither": {
			content: with(sealed(liveIs(second(), kubectl.Built{From: kubectl.FromJobSet, Revision: "between", Next: kubectl.FromLive})), func(c *kubectl.Content) { c.Snapshot = nil }),
			notes:   []string{"is a record", "differences cannot be shown"},
		},
		"what Trainer keeps": {
			content: with(liveIs(second(), kubectl.Built{From: kubectl.FromTrainer, Revision: old.Revision, Next: kubectl.FromTrainer}), func(c *kubectl.Content) { c.Snapshot = old }),
			want:    []string{"--- ClusterTrainingRuntime/torch (kept by Trainer, revision " + old.Revision + ")"},
		},
		"a JobSet that no gate has seen": {
			content: with(sealed(liveIs(second(), kubectl.Built{From: kubectl.FromJobSet, Revision: edited.Revision, Next: kubectl.FromSeal, Mismatch: true})), func(c *kubectl.Content) { c.Snapshot = nil }),
			same:    true,
			notes:   []string{"has not passed"},
		},
		"a seal that cannot be read": {
			content: with(liveIs(second(), kubectl.Built{From: kubectl.FromUnknown, Why: "nothing is kept"}), func(c *kubectl.Content) { c.SealErr = errors.New("no gzip") }),
			notes:   []string{"no gzip"},
			err:     "it is not known what TrainJob team-a/train runs on: nothing is kept",
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := builder.TrainJob("team-a", "train").Runtime(trainer.ClusterTrainingRuntimeKind, "torch")
			if tc.finished {
				job.Condition(trainer.ConditionComplete, metav1.ConditionTrue, "JobsCompleted", time.Unix(0, 0))
			}
			got, err := compare(job.Obj(), tc.content)
			if message := errorText(err); message != tc.err {
				t.Errorf("error = %q, want %q", message, tc.err)
			}
			if got.same != tc.same || (got.text != "") != (len(tc.want) > 0) {
				t.Errorf("same = %v, want %v; the differences:\n%s", got.same, tc.same, got.text)
			}
			for _, line := range tc.want {
				if !strings.Contains("\n"+got.text, "\n"+line+"\n") {
					t.Errorf("no line %q in\n%s", line, got.text)
				}
			}
			if len(got.notes) != len(tc.notes) {
				t.Fatalf("notes: %s", cmp.Diff(tc.notes, got.notes))
			}
			for i, part := range tc.notes {
				if !strings.Contains(got.notes[i], part) {
					t.Errorf("note %q, want %q in it", got.notes[i], part)
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
