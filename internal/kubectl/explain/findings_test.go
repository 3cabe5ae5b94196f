package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// absentBox and unreadBox are clusters without Signalbox, and where that cannot be told.
func absentBox(f *Facts) { f.Signalbox = kubectl.Installation{Known: true} }
func unreadBox(f *Facts) { f.Signalbox = kubectl.Installation{} }

func ran(jobSet *trainer.JobSet) {
	jobSet.Status.ReplicatedJobsStatus = []trainer.ReplicatedJobStatus{{Ready: 1}}
}

func TestFindings(t *testing.T) {
	const resumed = trainer.ConditionSuspended
	stale := func() *builder.TrainJobBuilder {
		return job().Condition(resumed, metav1.ConditionFalse, "Resumed", at(10))
	}
	waits := func() *builder.TrainJobBuilder {
		return job().Suspended().Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch")
	}
	byDeadline := func() *builder.TrainJobBuilder {
		return started(t, 0).Deadline(60).Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, at(1))
	}
	healthy := func(b *builder.TrainJobBuilder) *scene { return newScene(t, b).jobSet(ran) }
	inKueue := func(s *scene, change func(*unstructured.Unstructured)) *scene {
		return s.with(func(f *Facts) {
			f.Kueue.Installed = ptr.To(true)
			if change != nil {
				f.Kueue.Workload = builder.Workload(f.Job).Created(noon).Obj()
				change(f.Kueue.Workload)
			}
		})
	}
	for name, tc := range map[string]struct {
		scene *scene
		after float64  // minutes after noon
		want  []string // level and reason, and what the text contains after a colon
	}{
		"all is well":                            {scene: healthy(started(t, 0).Deadline(3600)), after: 30},
		"all is well in a queue":                 {scene: inKueue(newScene(t, waits().Label(kueue.LabelQueue, "team-a")), func(*unstructured.Unstructured) {}), after: 30},
		"run by another controller":              {scene: newScene(t, job().ManagedBy(kueue.MultiKueue).Deadline(5)), after: 30},
		"a deadline that is over":                {scene: healthy(started(t, 0).Deadline(60)), after: 5, want: []string{"warning Overdue: 4m ago, and it has not failed: the reconciler"}},
		"a deadline that is over for a moment":   {scene: healthy(started(t, 0).Deadline(60)), after: 1.4},
		"over, for Trainer alone":                {scene: healthy(job().Deadline(60)).with(absentBox), after: 5, want: []string{"warning Overdue: has not failed", "note NoSignalbox"}},
		"over, but by an annotation, without us": {scene: healthy(job().DeadlineAnnotation("60")).with(absentBox), after: 5, want: []string{"note NoSignalbox"}},
		"over, but suspended":                    {scene: newScene(t, waits().Deadline(5)), after: 30},
		"over, its JobSet has ended": {
			scene: healthy(started(t, 0).Deadline(60)).jobSet(func(jobSet *trainer.JobSet) {
				jobSet.Status.Conditions = []metav1.Condition{{Type: "Completed", Status: metav1.ConditionTrue}}
			}), after: 5, want: []string{"warning Overdue: ended by itself"},
		},
		"being deleted":    {scene: healthy(started(t, 0).Deleting(at(3))), after: 5, want: []string{"warning DeletionHeldUp: example.com/keep"}},
		"its deletion due": {scene: healthy(started(t, 0).Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(1))).with(func(f *Facts) { f.TTL.Succeeded = &ttl.Limit{After: time.Second, By: "LifecyclePolicy/x"} }), after: 5, want: []string{"warning NotRemoved: LifecyclePolicy/x"}},
		"no JobSet":        {scene: newScene(t, started(t, 0)), after: 5, want: []string{"warning NoJobSet: active for 5m and has no JobSet"}},
		"no JobSet, and why": {
			scene: newScene(t, started(t, 0)).with(func(f *Facts) { f.Events = []corev1.Event{event("Failed", "no quota", 4), event("Old", "old", 2)} }),
			after: 5, want: []string{"warning NoJobSet: the last warning: Failed: no quota"},
		},
		"no JobSet for a moment":      {scene: newScene(t, started(t, 0)), after: 0.5},
		"its JobSet may not be read":  {scene: newScene(t, started(t, 0)).with(func(f *Facts) { f.JobSetUnread = true }), after: 5},
		"its JobSet held back":        {scene: newScene(t, started(t, 0)).jobSet(func(jobSet *trainer.JobSet) { jobSet.Spec.Suspend = ptr.To(true) }), after: 5, want: []string{"warning JobSetHeld: active for 5m"}},
		"a JobSet of somebody else's": {scene: newScene(t, started(t, 0)).jobSet(func(jobSet *trainer.JobSet) { jobSet.OwnerReferences = nil; ran(jobSet) }), after: 5, want: []string{"warning OthersJobSet"}},
		"never ready, early":          {scene: newScene(t, started(t, 0)).jobSet(nil), after: 2, want: []string{"note NeverReady: 2m after it became active: it has no pods"}},
		"never ready, early, most of its time used": {
			scene: newScene(t, started(t, 0).Deadline(150)).jobSet(nil), after: 2, want: []string{"warning NeverReady"},
		},
		"never ready, and why": {
			scene: newScene(t, started(t, 0)).jobSet(nil).with(func(f *Facts) {
				f.Pods = []corev1.Pod{pod("Unschedulable", "no GPU"), pod("Unschedulable", "no GPU"), pod("Other", "why")}
			}), after: 9, want: []string{"warning NeverReady: 9m after it became active; 2 pods: Unschedulable: no GPU; 1 pod: Other: why"},
		},
		"ready, as a pod tells":     {scene: newScene(t, started(t, 0)).jobSet(nil).with(func(f *Facts) { f.Pods = []corev1.Pod{running(1)} }), after: 9},
		"pods that may not be read": {scene: newScene(t, started(t, 0)).jobSet(nil).with(func(f *Facts) { f.PodsUnread = true }), after: 9},
		"failed, never ready": {
			scene: newScene(t, byDeadline()).with(func(f *Facts) { f.Job.Status.Conditions[0].Message = "active since; no pod was ever ready" }),
			after: 9, want: []string{"warning NeverReady: no pod of it was ever ready"},
		},
		"failed, its JobSet left":           {scene: newScene(t, byDeadline()).jobSet(ran), after: 9, want: []string{"warning JobSetLeft: 8m ago"}},
		"failed, and nothing left":          {scene: newScene(t, byDeadline()), after: 9},
		"restarted":                         {scene: healthy(started(t, 0)).jobSet(func(jobSet *trainer.JobSet) { ran(jobSet); jobSet.Status.Restarts = 2 }), after: 9, want: []string{"note Restarted: 2 times"}},
		"the webhook away":                  {scene: healthy(stale()), after: 30, want: []string{"warning WebhookAway: was resumed, which Trainer reports at 2026-03-01T12:10:00Z", "warning NotSealed: away when it started"}},
		"away at creation":                  {scene: healthy(job()), after: 30, want: []string{"warning WebhookAway: was created", "warning NotSealed: away when it started"}},
		"from before Signalbox":             {scene: healthy(stale()).with(func(f *Facts) { f.Signalbox.Since = at(20) }), after: 30, want: []string{"warning NotSealed: there before Signalbox was installed"}},
		"since when is not known":           {scene: healthy(stale()).with(func(f *Facts) { f.Signalbox.Since = time.Time{} }), after: 30, want: []string{"warning NotSealed: which of these could not be read"}},
		"whether is not known":              {scene: healthy(stale()).with(unreadBox), after: 30, want: []string{"note NotSealed: or Signalbox is not installed"}},
		"without Signalbox":                 {scene: healthy(stale()).with(absentBox), after: 30, want: []string{"note NoSignalbox"}},
		"a namespace left alone":            {scene: healthy(stale()).with(func(f *Facts) { f.LeavesAlone = ptr.To(true) }), after: 30, want: []string{"warning NotSealed: leaves this namespace alone"}},
		"a namespace left alone or not":     {scene: healthy(stale()).with(func(f *Facts) { f.LeavesAlone = nil }), after: 30, want: []string{"warning NotSealed: or leaves this namespace alone"}},
		"over, it may be for Trainer alone": {scene: healthy(started(t, 0).Deadline(60)).with(unreadBox), after: 5, want: []string{"warning Overdue: has not failed"}},
		"its deletion due, perhaps":         {scene: newScene(t, started(t, 0).Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(1))).with(unreadBox).with(func(f *Facts) { f.TTL.Succeeded = &ttl.Limit{After: time.Second, By: "LifecyclePolicy/x"} }), after: 5, want: []string{"note NotRemoved: or Signalbox is not installed"}},
		"a finished JobSet of somebody else's": {scene: newScene(t, started(t, 0).Deadline(60)).jobSet(func(jobSet *trainer.JobSet) {
			jobSet.OwnerReferences = nil
			jobSet.Status.Conditions = []metav1.Condition{{Type: "Completed", Status: metav1.ConditionTrue}}
		}), after: 5, want: []string{"warning Overdue: the reconciler seems to be away", "warning OthersJobSet"}},
		"a stamp of the future":      {scene: healthy(started(t, 30)), after: 1, want: []string{"warning StampAhead: 2026-03-01T12:30:00Z"}},
		"reported late":              {scene: healthy(started(t, 0).Condition(resumed, metav1.ConditionFalse, "Resumed", at(10))), after: 30, want: []string{"note ReportedLate: 12:00:00Z, and Trainer reported one only at 2026-03-01T12:10:00Z"}},
		"a resume not seen":          {scene: healthy(sealed(t, job(), 0).Condition(resumed, metav1.ConditionTrue, "Suspended", at(10))), after: 30, want: []string{"warning ResumeNotSeen: since 2026-03-01T12:10:00Z, and it is not any more: its time does not count yet; no webhook saw its resume"}},
		"resumed a moment ago":       {scene: newScene(t, sealed(t, job(), 0).Stamp(at(20)).Condition(resumed, metav1.ConditionTrue, "Suspended", at(10))), after: 20.1},
		"no number in an annotation": {scene: healthy(started(t, 0).DeadlineAnnotation("1h")), after: 30, want: []string{`warning AnnotationInvalid: active-deadline-seconds is "1h": it must be a whole number`}},
		"an annotation that loses":   {scene: healthy(started(t, 0).Deadline(3600).DeadlineAnnotation("60")), after: 30, want: []string{"note AnnotationIgnored"}},
		"a TTL that is none":         {scene: healthy(started(t, 0).TTL("soon")), after: 30, want: []string{"warning AnnotationInvalid: ttl-seconds-after-finished is \"soon\""}},
		"opted out":                  {scene: healthy(started(t, 0).TTL("none").DeadlineAnnotation("none")), after: 30},
		"sealing was off":            {scene: healthy(job().Stamp(at(0))), after: 30, want: []string{"warning NotSealed: the webhook saw it start"}},
		"not sealed and finished":    {scene: newScene(t, job().Stamp(at(0)).Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(1))), after: 30, want: []string{"note NotSealed: saw it start"}},
		"too large": {
			scene: healthy(job().Stamp(at(0)).Annotation("large", strings.Repeat("x", 200<<10))), after: 30,
			want: []string{"warning NotSealed: too large: the annotations of the TrainJob would be"},
		},
		"a seal that cannot be read": {scene: healthy(started(t, 0).Annotation(v1alpha1.AnnotationRuntimeSnapshot, "garbage")), after: 30, want: []string{"warning SealUnreadable"}},
		"the runtime changed":        {scene: healthy(started(t, 0)).live(torch().Set("2", "spec", "x")), after: 30, want: []string{"note RuntimeChanged: ClusterTrainingRuntime/torch has changed since; the TrainJob keeps what is sealed into it"}},
		"the runtime gone":           {scene: healthy(started(t, 0)).gone(), after: 30, want: []string{"warning RuntimeGone"}},
		"a Trainer that keeps nothing": {
			scene: healthy(started(t, 0)).with(func(f *Facts) { f.Trainer.RuntimeSnapshot = false }).live(torch().Set("2", "spec", "x")).
				jobSet(func(jobSet *trainer.JobSet) {
					ran(jobSet)
					jobSet.Annotations = map[string]string{v1alpha1.AnnotationRuntimeRevision: take(t, torch()).Revision}
				}), after: 30,
			want: []string{"warning RuntimeChanged: keeps none", "note SealIsRecord"},
		},
		"another content runs": {
			scene: healthy(started(t, 0)).jobSet(func(jobSet *trainer.JobSet) {
				ran(jobSet)
				jobSet.Annotations = map[string]string{v1alpha1.AnnotationRuntimeRevision: "0123456789abcdef"}
			}), after: 30, want: []string{"warning OtherContent: 0123456789abcdef"},
		},
		"a clock of its runtime": {
			scene: newScene(t, job().Stamp(at(0)).Annotations(take(t, torch().Set(int64(5), "spec", "template", "spec", "activeDeadlineSeconds")).Pack().Seal(at(0)))).
				jobSet(ran).live(torch().Set(int64(5), "spec", "template", "spec", "activeDeadlineSeconds")),
			after: 30, want: []string{"warning SecondClock: spec.template.spec.activeDeadlineSeconds (5)"},
		},
		"a queue without Kueue": {scene: newScene(t, waits().Label(kueue.LabelQueue, "team-a")), after: 30, want: []string{"warning NoKueue: queue team-a"}},
		"no Workload":           {scene: inKueue(newScene(t, waits().Label(kueue.LabelQueue, "team-a")), nil), after: 30, want: []string{"warning NoWorkload"}},
		"out of its queue": {
			scene: inKueue(newScene(t, waits().Label(kueue.LabelQueue, "team-a")), func(w *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(w.Object, false, "spec", "active")
			}), after: 30, want: []string{"warning Deactivated: spec.active of Workload trainjob-tune-1f2e3 is false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := tc.scene.report(tc.after)
			var got, want []string
			for i, finding := range report.Findings {
				said := fmt.Sprintf("%s %s", finding.Level, finding.Reason)
				got = append(got, said)
				if i < len(tc.want) {
					head, text, _ := strings.Cut(tc.want[i], ": ")
					if head == said && !strings.Contains(finding.Text, text) {
						t.Errorf("%s says %q, not %q", said, finding.Text, text)
					}
				}
			}
			for _, line := range tc.want {
				head, _, _ := strings.Cut(line, ": ")
				want = append(want, head)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, report.Findings)
			}
		})
	}
}
