package diff

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// What a terminal acts on, or shows nothing of, is written as text: two lines that differ look so.
func TestPrintUnifiedShowsAll(t *testing.T) {
	text := "--- a\n+++ b\n@@ -1 +1 @@\n-\tname: \x1b]0;title\a\n+  name: x\u202e\u200b\U000e0001\u00e9\n"
	want := "--- a\n+++ b\n@@ -1 +1 @@\n- name: \\u001b]0;title\\u0007\n+  name: x\\u202e\\u200b\\U000e0001\u00e9\n"
	var out bytes.Buffer
	if err := printUnified(&out, text, kubectl.Terminal{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPrintUnifiedColours(t *testing.T) {
	var out bytes.Buffer
	if err := printUnified(&out, "--- a\n+++ b\n@@ -1 +1 @@\n same\n-old\n+new\n", kubectl.Terminal{Colour: true}); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n same\n\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestGridOf(t *testing.T) {
	live := kubectl.Live{Revision: "1111111111111111"}
	uses := []useReport{
		useOf(builder.TrainJob("team-a", "eight-hours").Obj(), kubectl.Built{From: kubectl.FromSeal, Revision: "0000000000000000", Next: kubectl.FromSeal}, live),
		useOf(builder.TrainJob("team-b", "lost\x1b[2J").Obj(), kubectl.Built{From: kubectl.FromUnknown, Why: "nothing is kept", Next: kubectl.FromUnknown}, live),
		useOf(builder.TrainJob("team-b", "nightly").Suspended().Obj(), kubectl.Built{From: kubectl.FromLive, Revision: live.Revision, Next: kubectl.FromLive}, live),
	}
	for name, tc := range map[string]struct {
		options  kubectl.Options
		terminal kubectl.Terminal
		want     string
	}{
		"a namespace": {
			want: `NAME         RUNTIME  REVISION          ACTIVE  FROM
eight-hours  differs  0000000000000000  yes     seal
lost[2J      unknown  -                 yes     unknown
nightly      same     1111111111111111  no      live`,
		},
		"all namespaces, wide": {
			options: kubectl.Options{AllNamespaces: true, Output: kubectl.OutputWide},
			want: `NAMESPACE  NAME         RUNTIME  REVISION          ACTIVE  FROM     NEXT     WHY
team-a     eight-hours  differs  0000000000000000  yes     seal     seal     -
team-b     lost[2J      unknown  -                 yes     unknown  unknown  nothing is kept
team-b     nightly      same     1111111111111111  no      live     live     -`,
		},
		"a narrow terminal": {
			terminal: kubectl.Terminal{Width: 40},
			want: `NAME         RUNTIME  REVISION
eight-hours  differs  0000000000000000
lost[2J      unknown  -
nightly      same     1111111111111111`,
		},
		"a very narrow one, without headers": {
			options:  kubectl.Options{NoHeaders: true, AllNamespaces: true},
			terminal: kubectl.Terminal{Width: 20, Colour: true},
			want: "eight-hours  \x1b[33mdiffers\x1b[0m\n" +
				"lost[2J      \x1b[31munknown\x1b[0m\n" +
				"nightly      same",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(gridOf(&tc.options, uses).Lines(tc.terminal), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrintUses(t *testing.T) {
	live := kubectl.Live{Revision: "1111111111111111"}
	runtime := target{kind: "TrainingRuntime", live: live}
	runtime.key.Namespace, runtime.key.Name = "team-a", "mine"
	uses := []useReport{useOf(builder.TrainJob("team-a", "train").Obj(), kubectl.Built{From: kubectl.FromSeal, Revision: "0000000000000000", Next: kubectl.FromSeal}, live)}
	for name, tc := range map[string]struct {
		output    string
		noHeaders bool
		uses      []useReport
		want, err string
	}{
		"a table": {uses: uses, want: `TrainingRuntime/mine is of revision 1111111111111111
NAME   RUNTIME  REVISION          ACTIVE  FROM
train  differs  0000000000000000  yes     seal
`},
		"none":                  {want: "TrainingRuntime/mine is of revision 1111111111111111\n", err: "No unfinished TrainJob refers to it.\n"},
		"a table of no headers": {uses: uses, noHeaders: true, want: "train  differs  0000000000000000  yes  seal\n"},
		"names":                 {output: kubectl.OutputName, uses: uses, want: "trainjob.trainer.kubeflow.org/train\n"},
		"no names":              {output: kubectl.OutputName},
		"JSON": {output: kubectl.OutputJSON, uses: uses, want: `{
    "runtime": {
        "kind": "TrainingRuntime",
        "namespace": "team-a",
        "name": "mine",
        "revision": "1111111111111111"
    },
    "trainJobs": [
        {
            "namespace": "team-a",
            "name": "train",
            "active": true,
            "revision": "0000000000000000",
            "from": "seal",
            "next": "seal",
            "same": false
        }
    ]
}
`},
		"YAML of none": {output: kubectl.OutputYAML, want: `runtime:
  kind: TrainingRuntime
  name: mine
  namespace: team-a
  revision: "1111111111111111"
trainJobs: []
`},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errs := genericiooptions.NewTestIOStreams()
			o := &kubectl.Options{IOStreams: streams, Output: tc.output, NoHeaders: tc.noHeaders}
			if err := printUses(o, runtime, tc.uses); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.err, errs.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
