package explain

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestTimeline(t *testing.T) {
	const hour = 60
	revision := take(t, torch()).Revision
	workload := func(f *Facts) {
		f.Kueue.Installed = ptr.To(true)
		f.Kueue.Workload = builder.Workload(f.Job).Created(at(0)).Condition(kueue.QuotaReserved, metav1.ConditionTrue, at(9)).
			Condition(kueue.Admitted, metav1.ConditionTrue, at(10)).Condition(kueue.Evicted, metav1.ConditionFalse, at(8)).Obj()
		_ = unstructured.SetNestedField(f.Kueue.Workload.Object, "gpus", "status", "admission", "clusterQueue")
		_ = unstructured.SetNestedField(f.Kueue.Workload.Object, "team-a", "spec", "queueName")
	}
	suspended := func(b *builder.TrainJobBuilder, minutes float64) *builder.TrainJobBuilder {
		return b.Condition(trainer.ConditionSuspended, metav1.ConditionTrue, "Suspended", at(minutes))
	}
	complete := func(b *builder.TrainJobBuilder, minutes float64) *builder.TrainJobBuilder {
		return b.Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(minutes))
	}
	for name, tc := range map[string]struct {
		scene *scene
		after float64
		want  []string
	}{
		"created active": {
			scene: newScene(t, started(t, 0.01).Deadline(3600)).jobSet(nil).with(func(f *Facts) { f.Pods = []corev1.Pod{running(5), running(4), pod("x", "y")} }),
			after: 6,
			want: []string{
				"12:00:00 Created: created",
				"12:00:00 Resumed: active, from its creation on",
				"12:00:00 Sealed: sealed on ClusterTrainingRuntime/torch, revision " + revision,
				"12:01:00 Built: Trainer made its JobSet",
				"12:04:00 Started: the first pod ran",
				"13:00:00 Deadline: deadline: it fails with DeadlineExceeded (ahead)",
			},
		},
		"by a queue": {
			scene: newScene(t, started(t, 10).Deadline(3600).Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", at(10.01))).with(workload),
			after: 80,
			want: []string{
				"12:00:00 Created: created",
				"12:00:00 Queued: queued in LocalQueue team-a",
				"12:10:00 Admitted: admitted by ClusterQueue gpus",
				"12:10:00 Resumed: resumed",
				"12:10:00 Sealed: sealed on ClusterTrainingRuntime/torch, revision " + revision,
				"13:10:00 Deadline: deadline",
			},
		},
		"paused": {
			scene: newScene(t, suspended(sealed(t, job().Suspended().Deadline(60), 1), 30)), after: hour,
			want: []string{
				"12:00:00 Created: created",
				"12:01:00 Sealed: sealed on ClusterTrainingRuntime/torch, revision " + revision,
				"12:30:00 Suspended: suspended, as Trainer reports",
			},
		},
		"resumed while Trainer was away": {
			scene: newScene(t, started(t, 10).Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", at(20))), after: hour,
			want: []string{
				"12:00:00 Created: created",
				"12:10:00 Resumed: resumed, by the stamp of the webhook",
				"12:10:00 Sealed: sealed on ClusterTrainingRuntime/torch, revision " + revision,
				"12:20:00 Resumed: resumed, as Trainer reports",
			},
		},
		"without a stamp": {
			scene: newScene(t, job()), after: 1,
			want: []string{"12:00:00 Created: created", "12:00:00 Resumed: active, from its creation on"},
		},
		"run by another controller": {
			scene: newScene(t, job().ManagedBy("x").Deadline(60)), after: 1, want: []string{"12:00:00 Created: created"},
		},
		"finished, to be deleted": {
			scene: newScene(t, complete(job().Stamp(at(5)), 30)).with(func(f *Facts) { f.TTL.Succeeded = &ttl.Limit{After: time.Hour, By: "LifecyclePolicy/x"} }),
			after: hour,
			want: []string{
				"12:00:00 Created: created", "12:05:00 Resumed: resumed", "12:30:00 Finished: succeeded",
				"13:30:00 Deletion: deleted, 1h after its end (ahead)",
			},
		},
		"failed by its deadline": {
			scene: newScene(t, job().Stamp(at(0)).Deadline(90).Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, at(1.5))),
			after: hour,
			want: []string{
				"12:00:00 Created: created", "12:00:00 Resumed: active, from its creation on", "12:01:30 Deadline: deadline",
				"12:01:30 Finished: failed: DeadlineExceeded: as Trainer says",
			},
		},
		"warned": {
			scene: newScene(t, job()).with(func(f *Facts) {
				f.Events = []corev1.Event{event("DeadlineExceeded", "as the condition says", 1)}
				f.Events[0].Source.Component = v1alpha1.FieldManager
				for i := range 7 {
					f.Events = append(f.Events, event("Failed", fmt.Sprint("try ", i), float64(9-i)))
				}
				f.Events[1].Count = 3
				f.Events[2].Type = corev1.EventTypeNormal
			}),
			after: hour,
			want: []string{
				"12:00:00 Created: created", "12:00:00 Resumed: active, from its creation on",
				"12:04:00 Warned: Failed: try 5", "12:05:00 Warned: Failed: try 4", "12:06:00 Warned: Failed: try 3",
				"12:07:00 Warned: Failed: try 2", "12:09:00 Warned: Failed: try 0 (3 times)",
			},
		},
		"evicted, its pods started anew, and its JobSet ended": {
			scene: newScene(t, job()).jobSet(func(jobSet *trainer.JobSet) {
				jobSet.Status.Restarts = 1
				jobSet.Status.Conditions = []metav1.Condition{{Type: "Completed", Status: metav1.ConditionTrue, Reason: "AllJobsCompleted", LastTransitionTime: metav1.NewTime(at(9))}}
			}).with(func(f *Facts) {
				f.Pods = []corev1.Pod{running(5)}
				f.Kueue.Workload = builder.Workload(f.Job).Created(at(0)).Condition(kueue.Evicted, metav1.ConditionTrue, at(8)).Obj()
				_ = unstructured.SetNestedField(f.Kueue.Workload.Object, "team-a", "spec", "queueName")
			}),
			after: hour,
			want: []string{
				"12:00:00 Created: created", "12:00:00 Queued: queued in LocalQueue team-a", "12:00:00 Resumed: active, from its creation on",
				"12:01:00 Built: Trainer made its JobSet", "12:05:00 Started: the first pod ran, after 1 restart of all of them",
				"12:08:00 Evicted: evicted by Kueue: Evicted: as Kueue says", "12:09:00 Ended: its JobSet ended: AllJobsCompleted",
			},
		},
		"being deleted": {
			scene: newScene(t, complete(job().Deleting(at(40)), 30)), after: hour,
			want: []string{
				"12:00:00 Created: created", "12:00:00 Resumed: active, from its creation on", "12:30:00 Finished: succeeded",
				"12:40:00 Deletion: deletion asked for",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, entry := range tc.scene.report(tc.after).Timeline {
				line := fmt.Sprintf("%s %s: %s", entry.At.Format(time.TimeOnly), entry.What, entry.Text)
				if entry.Ahead {
					line += " (ahead)"
				}
				if entry.Where == "" {
					t.Errorf("%s: nobody says where", line)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	policy := &ttl.Limit{After: time.Hour, By: "LifecyclePolicy/x"}
	complete := func(b *builder.TrainJobBuilder) *builder.TrainJobBuilder {
		return b.Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(30))
	}
	execution := func(conditions ...string) func(*Facts) {
		return func(f *Facts) {
			f.Kueue.Installed = ptr.To(true)
			workload := builder.Workload(f.Job)
			for _, is := range conditions {
				workload.Condition(is, metav1.ConditionTrue, at(10))
			}
			f.Kueue.Workload = workload.Obj()
			_ = unstructured.SetNestedField(f.Kueue.Workload.Object, int64(3600), "spec", "maximumExecutionTimeSeconds")
			_ = unstructured.SetNestedField(f.Kueue.Workload.Object, int64(600), "status", "accumulatedPastExecutionTimeSeconds")
		}
	}
	const stays = "TimeToStay: stays for good: nobody says how long, once it has finished"
	clock := torch().Set(int64(5), "spec", "template", "spec", "activeDeadlineSeconds")
	for name, tc := range map[string]struct {
		scene *scene
		want  []string
	}{
		"none":          {scene: newScene(t, job()), want: []string{"ActiveDeadline: none: nobody gave it one", stays}},
		"its author's":  {scene: newScene(t, job().Stamp(at(1)).Deadline(3600)), want: []string{"ActiveDeadline 3600 at 13:01:00: it fails with DeadlineExceeded; its author; spec.activeDeadlineSeconds", stays}},
		"an annotation": {scene: newScene(t, job().DeadlineAnnotation("60")), want: []string{"ActiveDeadline 60 at 12:01:00: it fails with DeadlineExceeded; its author; annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds", stays}},
		"a policy's, not running": {
			scene: newScene(t, job().Suspended().Deadline(5400).Annotation(v1alpha1.AnnotationActiveDeadlineSource, "LifecyclePolicy/research")),
			want:  []string{"ActiveDeadline 5400: 1h30m after it is resumed it fails with DeadlineExceeded; it does not count while the TrainJob is suspended; LifecyclePolicy/research; spec.activeDeadlineSeconds", stays},
		},
		"opted out":              {scene: newScene(t, job().DeadlineAnnotation("none")), want: []string{"ActiveDeadline: none: its author opted out, by the annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds", stays}},
		"no number":              {scene: newScene(t, job().DeadlineAnnotation("1h")), want: []string{`ActiveDeadline: none: "1h", in the annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds, is no number of seconds`, stays}},
		"nobody looks after it":  {scene: newScene(t, job().DeadlineAnnotation("60")).with(absentBox), want: []string{"ActiveDeadline: none that counts: Signalbox, which looks after the annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds, is not installed"}},
		"perhaps somebody":       {scene: newScene(t, job().DeadlineAnnotation("60")).with(unreadBox), want: []string{"ActiveDeadline 60 at 12:01:00: it fails with DeadlineExceeded; its author; annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds", stays}},
		"by another controller":  {scene: newScene(t, job().ManagedBy(kueue.MultiKueue).Deadline(60)), want: []string{"ActiveDeadline: not decided here: it is run by kueue.x-k8s.io/multikueue"}},
		"not yet":                {scene: newScene(t, job().Deadline(60).Condition(trainer.ConditionSuspended, metav1.ConditionTrue, "Suspended", at(1))), want: []string{"ActiveDeadline 60: it does not count yet: Trainer still reports the TrainJob suspended; its author; spec.activeDeadlineSeconds", stays}},
		"finished, stays":        {scene: newScene(t, complete(job().Deadline(60))), want: []string{"ActiveDeadline 60: it counts no more: the TrainJob has finished; its author; spec.activeDeadlineSeconds", stays}},
		"finished, to go":        {scene: newScene(t, complete(job())).with(func(f *Facts) { f.TTL.Succeeded = policy }), want: []string{"ActiveDeadline: none: nobody gave it one", "TimeToStay 3600 at 13:30:00: it is deleted; LifecyclePolicy/x; spec.ttlAfterFinished"}},
		"finished and suspended": {scene: newScene(t, complete(job().Suspended())).with(func(f *Facts) { f.TTL.Succeeded = policy }), want: []string{"ActiveDeadline: none: nobody gave it one", "TimeToStay: stays as long as it is suspended"}},
		"finished the other way": {scene: newScene(t, complete(job())).with(func(f *Facts) { f.TTL.Failed = policy }), want: []string{"ActiveDeadline: none: nobody gave it one", "TimeToStay: stays for good: nobody says how long, as it finished"}},
		"to stay, by how it ends": {scene: newScene(t, job()).with(func(f *Facts) { f.TTL.Failed = policy }), want: []string{
			"ActiveDeadline: none: nobody gave it one", "TimeToStaySucceeded: stays for good, once it has succeeded",
			"TimeToStayFailed 3600: deleted 1h after it has failed; LifecyclePolicy/x; spec.ttlAfterFinished",
		}},
		"to stay, as its author says": {scene: newScene(t, job().TTL("0")), want: []string{
			"ActiveDeadline: none: nobody gave it one",
			"TimeToStay 0: deleted 0s after it has finished; its author; annotation lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished",
		}},
		"to stay, as its runtime says": {scene: newScene(t, job()).with(func(f *Facts) {
			f.TTL.Runtime = &ttl.Limit{After: 90 * time.Second, By: "ClusterTrainingRuntime/torch"}
		}), want: []string{
			"ActiveDeadline: none: nobody gave it one",
			"TimeToStay 90: deleted 1m30s after it has finished; ClusterTrainingRuntime/torch; annotation lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished",
		}},
		"to stay, not known": {scene: newScene(t, job()).with(func(f *Facts) { f.TTL = nil }), want: []string{"ActiveDeadline: none: nobody gave it one", "TimeToStay: not known: what is said of it could not be read"}},
		"Trainer's run policy": {
			scene: newScene(t, job().RunPolicy(&trainer.Setting{Seconds: ptr.To(int64(7))}, &trainer.Setting{})),
			want: []string{"ActiveDeadline: none: nobody gave it one", "RunPolicy 7: Trainer itself looks after it; its author; spec.runPolicy.activeDeadlineSeconds",
				"TimeToStay: Trainer itself removes it; its author; its spec"},
		},
		"a clock of its runtime": {
			scene: newScene(t, job()).live(clock), want: []string{
				"ActiveDeadline: none: nobody gave it one",
				"RuntimeClock 5: its pods end, and the TrainJob is not told why; ClusterTrainingRuntime/torch; spec.template.spec.activeDeadlineSeconds", stays,
			},
		},
		"Kueue's, admitted": {scene: newScene(t, job().Label(kueue.LabelMaxExecution, "3600")).with(execution(kueue.Admitted)), want: []string{
			"ActiveDeadline: none: nobody gave it one",
			"KueueExecution 3600 at 13:00:00: Kueue takes it out of its queue: it is suspended, and does not fail; its author; label kueue.x-k8s.io/max-exec-time-seconds", stays,
		}},
		"Kueue's, waiting": {scene: newScene(t, job()).with(execution()), want: []string{
			"ActiveDeadline: none: nobody gave it one",
			"KueueExecution 3600: 1h of all its admissions together; then Kueue takes it out of its queue: it is suspended, and does not fail; ; spec.maximumExecutionTimeSeconds of Workload trainjob-tune-1f2e3", stays,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, limit := range tc.scene.report(31).Limits {
				line := string(limit.Kind)
				if limit.Seconds != nil {
					line += fmt.Sprint(" ", *limit.Seconds)
				}
				if !limit.At.IsZero() {
					line += limit.At.Format(" at " + time.TimeOnly)
				}
				line += ": " + limit.Text
				if limit.DecidedBy != "" || limit.Where != "" {
					line += "; " + limit.DecidedBy + "; " + limit.Where
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExact(t *testing.T) {
	for want, after := range map[string]time.Duration{
		"0s": 0, "8h": 8 * time.Hour, "1h30m": 90 * time.Minute, "30m": 30 * time.Minute, "10s": 10 * time.Second, "1h0m10s": time.Hour + 10*time.Second,
		"10m": 10 * time.Minute, "20h": 20 * time.Hour, "1193046h28m15s": v1alpha1.MaxSeconds * time.Second,
	} {
		if got := exact(after); got != want {
			t.Errorf("exact(%v) = %q, want %q", after, got, want)
		}
	}
}
