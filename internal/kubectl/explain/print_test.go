package explain

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// told makes the report of a TrainJob about which there is much to say.
func told(t *testing.T) Report {
	t.Helper()
	s := newScene(t, sealed(t, job().Stamp(at(10)).Deadline(28800).Annotation(v1alpha1.AnnotationActiveDeadlineSource, "LifecyclePolicy/research").
		Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", at(10)), 10)).
		jobSet(func(jobSet *trainer.JobSet) { jobSet.CreationTimestamp = metav1.NewTime(at(10)) }).
		live(torch().Image("image:2"))
	s.facts.TTL.Succeeded = &ttl.Limit{After: 24 * time.Hour, By: "LifecyclePolicy/clean-up"}
	s.facts.Pods = append(s.facts.Pods, pod("Unschedulable", "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."))
	return s.report(130)
}

func printed(t *testing.T, report Report, terminal kubectl.Terminal, wide bool) string {
	t.Helper()
	var out strings.Builder
	if err := Print(&out, report, terminal, wide); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPrint(t *testing.T) {
	want := `TrainJob team-a/tune
State    Running, active since 2026-03-01T12:10:00Z (120m ago)

Timeline
  2026-03-01T12:00:00Z  130m ago   created
  2026-03-01T12:10:00Z  120m ago   resumed
  2026-03-01T12:10:00Z  120m ago   sealed on ClusterTrainingRuntime/torch, revision REVISION
  2026-03-01T12:10:00Z  120m ago   Trainer made its JobSet
  2026-03-01T14:10:00Z  now
  2026-03-01T20:10:00Z  in 6h      deadline: it fails with DeadlineExceeded

What stops it
  deadline       2026-03-01T20:10:00Z, in 6h: it fails with DeadlineExceeded
                 8h, decided by LifecyclePolicy/research, in spec.activeDeadlineSeconds
  after its end  deleted 24h after it has succeeded
                 24h, decided by LifecyclePolicy/clean-up, in spec.ttlAfterFinished
  after its end  stays for good, once it has failed

What it runs on
  runtime        ClusterTrainingRuntime/torch
  revision       REVISION
  content        what is sealed into it, at 2026-03-01T12:10:00Z
  runtime now    changed since: revision ANOTHER
  images         node/node  image:1

What looks wrong
  warning  no pod was ready yet, 120m after it became active; 1 pod: Unschedulable: 0/5 nodes are available: 5 Insufficient nvidia.com/gpu.
           to do: see kubectl describe pods -l jobset.sigs.k8s.io/jobset-name=tune
  note     ClusterTrainingRuntime/torch has changed since; the TrainJob keeps what is sealed into it
           to do: see what: kubectl signalbox diff tune
`
	report := told(t)
	got := printed(t, report, kubectl.Terminal{}, false)
	got = strings.NewReplacer(report.Content.Revision, "REVISION", report.Content.LiveRevision, "ANOTHER").Replace(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

// On a narrow terminal nothing is cut off: lines are broken between words.
func TestPrintNarrow(t *testing.T) {
	report := told(t)
	words := func(page string) string { return strings.Join(strings.Fields(page), " ") }
	whole := printed(t, report, kubectl.Terminal{}, true)
	for _, width := range []int{20, 40, 60, 80, 100, 200} {
		page := printed(t, report, kubectl.Terminal{Width: width}, true)
		if diff := cmp.Diff(words(whole), words(page)); diff != "" {
			t.Errorf("%d columns (-whole +broken):\n%s", width, diff)
		}
		for line := range strings.Lines(page) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > width && len(strings.Fields(line)) > 2 && width >= 60 {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

// Where there are no colours there are no escape sequences; where there are, the text is the same.
func TestPrintColours(t *testing.T) {
	report := told(t)
	plainly := printed(t, report, kubectl.Terminal{}, false)
	coloured := printed(t, report, kubectl.Terminal{Colour: true}, false)
	if strings.Contains(plainly, "\x1b") || !strings.Contains(coloured, "\x1b[1mTimeline\x1b[0m") {
		t.Errorf("without colours:\n%q\nwith:\n%q", plainly, coloured)
	}
	for _, style := range []string{string(kubectl.Bold), string(kubectl.Faint), string(kubectl.Red), string(kubectl.Green), string(kubectl.Yellow), "\x1b[0m"} {
		coloured = strings.ReplaceAll(coloured, style, "")
	}
	if diff := cmp.Diff(plainly, coloured); diff != "" {
		t.Errorf("with colours (-plain +coloured):\n%s", diff)
	}
}

// What others write into objects does not reach the terminal as it is.
func TestPrintCleans(t *testing.T) {
	const evil = "a\x1b]0;title\x07\x1b[2Jb\r\nc\u202ed"
	report := told(t)
	report.Why, report.Queue = evil, evil
	report.Name, report.Namespace = evil, evil
	report.Timeline[0].Text, report.Timeline[0].Where = evil, evil
	report.Limits[0] = Limit{Kind: ActiveDeadline, Text: evil, DecidedBy: evil, Where: evil}
	report.Content = Content{Runtime: evil, Text: evil, Revision: evil, LiveRevision: evil, Images: []Image{{evil, evil}}}
	report.Findings[0] = Finding{Level: Warning, Reason: evil, Text: evil, Do: evil}
	for _, width := range []int{0, 20, 80} {
		page := printed(t, report, kubectl.Terminal{Width: width}, true)
		if strings.ContainsAny(page, "\x1b\x07\r\u202e") || strings.Contains(page, "\nc") {
			t.Errorf("%d columns: %q", width, page)
		}
	}
}
