package list

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// scene is a list of a cluster that was read.
type scene struct {
	*lister
	out, notes *bytes.Buffer
	at         time.Time
	// touch hands over to what watches the scene what the test has changed of it.
	touch func()
}

// newScene has a TrainJob of a policy that runs on a runtime that has changed, one without a limit, one in a
// queue and a failed one.
func newScene(t *testing.T, output string) *scene {
	t.Helper()
	t.Setenv("LC_ALL", "C")
	t.Setenv("NO_COLOR", "")
	s := &scene{out: &bytes.Buffer{}, notes: &bytes.Buffer{}, at: created.Add(45 * time.Minute)}
	options := &kubectl.Options{IOStreams: genericiooptions.IOStreams{Out: s.out, ErrOut: s.notes}, Namespace: "ns", Output: output}
	s.lister = newLister(options, nil)
	s.zone = time.UTC
	s.now = func(context.Context) time.Time { return s.at }
	p := s.picture
	p.signalbox, p.kueue, p.keeps = true, true, ptr.To(true)
	of := func(name string) *builder.TrainJobBuilder {
		return builder.TrainJob("ns", name).Created(created).Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Stamp(created)
	}
	was, is := torch("one"), torch("two")
	queued := of("queued").Suspended().Deadline(60).Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch").Label(kueue.LabelQueue, "team").Obj()
	delete(queued.Annotations, v1alpha1.AnnotationResumedAt)
	fill(t, &p.jobs,
		of("limited").Deadline(3600).Annotations(sealOf(t, was)).Annotation(v1alpha1.AnnotationActiveDeadlineSource, "LifecyclePolicy/night").Obj(),
		of("free").Annotations(sealOf(t, is)).Obj(),
		queued,
		of("failed").DeadlineAnnotation("60").Annotations(sealOf(t, is)).Condition(trainer.ConditionFailed, "True", trainer.ReasonDeadlineExceeded, created.Add(time.Minute)).Obj())
	p.jobs.end()
	fill(t, &p.workloads, queuedIn(builder.Workload(queued).Created(created).Obj(), "team"))
	p.workloads.end()
	fill(t, &p.runtimes[0], is)
	p.runtimes[0].end()
	return s
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTable(t *testing.T) {
	s := newScene(t, "")
	if err := once(s.options, s.lister, s.at); err != nil {
		t.Fatal(err)
	}
	same(t, "table", `
NAME     STATE             SINCE     DEADLINE  LEFT  OF LIMIT    LIMIT  FROM                   RUNTIME  CHANGED  QUEUE  POSITION
limited  Running           12:00:00  13:00:00  15m   ###.......  60m    LifecyclePolicy/night  torch    yes      -      -
free     Running           12:00:00  -         -     -           -      -                      torch    no       -      -
queued   Queued            -         -         -     -           60s    spec                   torch    -        team   1
failed   DeadlineExceeded  12:00:00  -         -     -           60s    annotation             torch    no       -      -
`, s.out.String())
}

// What is missed least gives way first, and no cell is empty.
func TestNarrowTable(t *testing.T) {
	s := newScene(t, "")
	rows := s.picture.rows(s.at)
	for width, want := range map[int]string{
		110: `
NAME     STATE             DEADLINE  LEFT  OF LIMIT    FROM                   RUNTIME  CHANGED  QUEUE
limited  Running           13:00:00  15m   ###.......  LifecyclePolicy/night  torch    yes      -
`,
		80: `
NAME     STATE             DEADLINE  LEFT  OF LIMIT    RUNTIME  CHANGED
limited  Running           13:00:00  15m   ###.......  torch    yes
`,
		40: `
NAME     STATE             LEFT
limited  Running           15m
`,
		20: `
NAME     STATE
limited  Running
`,
	} {
		terminal := kubectl.Terminal{Width: width}
		lines := s.shape().grid(rows, s.look(terminal, s.at), nil).Lines(terminal)
		same(t, "narrow", want, strings.Join(lines[:2], "\n")+"\n")
	}
}

// Escape sequences of others do not reach a terminal, and colours do only where there are any.
func TestTableIsClean(t *testing.T) {
	s := newScene(t, "")
	rows := []Row{{Name: "a\x1b[31mred\nline", Queue: "q\u202e", Runtime: "x\u009b", State: kubectl.Failed}}
	for _, colour := range []bool{false, true} {
		terminal := kubectl.Terminal{Colour: colour}
		text := strings.Join(s.shape().grid(rows, s.look(terminal, s.at), nil).Lines(terminal)[1:], "\n")
		if n := strings.Count(text, "\x1b"); (n > 0) != colour || strings.ContainsAny(text, "\u202e\u009b\n") {
			t.Errorf("with colours %t: %q", colour, text)
		}
		if colour && !strings.Contains(text, "\x1b[31mFailed\x1b[0m") {
			t.Errorf("a failed one is not red: %q", text)
		}
	}
}

func TestOutputs(t *testing.T) {
	name := newScene(t, kubectl.OutputName)
	if err := once(name.options, name.lister, name.at); err != nil {
		t.Fatal(err)
	}
	same(t, "name", `
trainjob.trainer.kubeflow.org/limited
trainjob.trainer.kubeflow.org/free
trainjob.trainer.kubeflow.org/queued
trainjob.trainer.kubeflow.org/failed
`, name.out.String())

	for output, want := range map[string]string{
		kubectl.OutputJSON: `        {
            "namespace": "ns",
            "name": "queued",
            "uid": "uid-of-queued",
            "state": "Queued",
            "created": "2026-03-01T12:00:00Z",
            "limitSeconds": 60,
            "limitSource": "spec.activeDeadlineSeconds",
            "runtime": "ClusterTrainingRuntime/torch",
            "runsOn": "live",
            "revision": "REVISION",
            "liveRevision": "REVISION",
            "changed": "follows",
            "queue": "team",
            "position": 1
        },
`,
		kubectl.OutputYAML: `- activeSince: "2026-03-01T12:00:00Z"
  changed: "yes"
  created: "2026-03-01T12:00:00Z"
  deadline: "2026-03-01T13:00:00Z"
  limitBy: LifecyclePolicy/night
  limitSeconds: 3600
  limitSource: spec.activeDeadlineSeconds
  liveRevision: REVISION
  name: limited
  namespace: ns
`,
	} {
		s := newScene(t, output)
		s.lister.notes.Add("no right to read Workloads")
		if err := once(s.options, s.lister, s.at); err != nil {
			t.Fatal(err)
		}
		want = strings.ReplaceAll(want, "REVISION", revisionOf(torch("two")))
		if got := s.out.String(); !strings.Contains(got, want) || !strings.Contains(got, "no right") || !strings.Contains(got, "2026-03-01T12:45:00Z") {
			t.Errorf("%s lacks\n%s\n%s", output, want, got)
		}
	}
}

func TestNoTrainJobs(t *testing.T) {
	s := newScene(t, "")
	s.picture.jobs.begin()
	s.picture.jobs.end()
	if err := once(s.options, s.lister, s.at); err != nil || s.out.Len() > 0 {
		t.Errorf("%v, %q", err, s.out)
	}
	same(t, "none", "No TrainJobs found in namespace ns.\n", s.notes.String())
}

// A list that is drawn again covers what it drew before, and no more than there is room for.
func TestDrawn(t *testing.T) {
	s := newScene(t, "")
	terminal := kubectl.Terminal{Width: 44, Height: 20, Redraws: true}
	d := &drawn{options: s.options, terminal: func() kubectl.Terminal { return terminal }, screen: screen{out: s.out}}
	if err := d.show(s.at, s.lister, nil); err != nil {
		t.Fatal(err)
	}
	const end = "\x1b[K\n"
	same(t, "first", strings.ReplaceAll(`
^12:45:00  4 TrainJobs: 2 running, 1 queued,~
NAME     STATE             LEFT  OF LIMIT
limited  Running           15m   ###.......
free     Running           -     -
queued   Queued            -     -
failed   DeadlineExceeded  -     -
`, "\n", end)[len(end):]+"\x1b[J", strings.Replace(s.out.String(), "\r", "^", 1))

	s.out.Reset()
	terminal.Height = 7
	if err := d.show(s.at.Add(14*time.Minute), s.lister, []string{"TrainJobs cannot be followed since 12:50:00"}); err != nil {
		t.Fatal(err)
	}
	same(t, "second", strings.ReplaceAll(`
^12:59:00  4 TrainJobs: 2 running, 1 queued,~
NAME     STATE             LEFT  OF LIMIT
limited  Running           60s   #.........
... and 3 more
note: TrainJobs cannot be followed since
12:50:00
`, "\n", end)[len(end):]+"\x1b[J", strings.Replace(s.out.String(), "\x1b[6A\r", "^", 1))
}
