package list

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

var created = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// sealed is a TrainJob that runs on the revision "old" of the runtime torch.
func sealed() *builder.TrainJobBuilder {
	return builder.TrainJob("ns", "job").Created(created).Stamp(created).Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Annotations(map[string]string{
		v1alpha1.AnnotationRuntimeSource: "ClusterTrainingRuntime/torch", v1alpha1.AnnotationRuntimeRevision: "old", v1alpha1.AnnotationRuntimeSnapshot: "sealed",
	})
}

func TestRowOf(t *testing.T) {
	now := created.Add(15 * time.Minute)
	live := func(revision string) kubectl.Live { return kubectl.Live{Revision: revision} }
	base := Row{
		Namespace: "ns", Name: "job", UID: "uid-of-job", State: kubectl.Running, Created: created, ActiveSince: created,
		Runtime: "ClusterTrainingRuntime/torch", RunsOn: kubectl.FromSeal, Revision: "old", LiveRevision: "old", Changed: Unchanged,
	}
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		of   Beside
		live kubectl.Live
		want func(*Row)
	}{
		"without a deadline": {job: sealed(), live: live("old"), want: func(*Row) {}},
		"the runtime has changed": {job: sealed(), live: live("new"), want: func(r *Row) {
			r.LiveRevision, r.Changed = "new", HasChanged
		}},
		"the runtime is gone":           {job: sealed(), live: kubectl.Live{Gone: true}, want: func(r *Row) { r.LiveRevision, r.Changed = "", Gone }},
		"the runtime could not be read": {job: sealed(), want: func(r *Row) { r.LiveRevision, r.Changed = "", Unknown }},
		"with a deadline of a policy": {
			job: sealed().Deadline(3600).Annotation(v1alpha1.AnnotationActiveDeadlineSource, "LifecyclePolicy/night"), live: live("old"),
			want: func(r *Row) {
				r.Deadline, r.SecondsLeft = created.Add(time.Hour), ptr.To[int64](2700)
				r.LimitSeconds, r.LimitSource, r.LimitBy = 3600, "spec.activeDeadlineSeconds", "LifecyclePolicy/night"
			},
		},
		"past its deadline": {job: sealed().Deadline(60), live: live("old"), want: func(r *Row) {
			r.State = kubectl.Finishing
			r.Deadline, r.SecondsLeft = created.Add(time.Minute), ptr.To[int64](0)
			r.LimitSeconds, r.LimitSource = 60, "spec.activeDeadlineSeconds"
		}},
		"finished": {
			job: sealed().Deadline(60).Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, created.Add(time.Minute)), live: live("old"),
			want: func(r *Row) {
				r.State, r.Finished = kubectl.DeadlineExceeded, created.Add(time.Minute)
				r.LimitSeconds, r.LimitSource = 60, "spec.activeDeadlineSeconds"
			},
		},
		"in a queue": {
			job: builder.TrainJob("ns", "job").Created(created).Suspended().Deadline(60).Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch"),
			of:  Beside{Queued: true, Queue: "team", Position: 3}, live: live("new"),
			want: func(r *Row) {
				r.State, r.ActiveSince = kubectl.Queued, time.Time{}
				r.LimitSeconds, r.LimitSource = 60, "spec.activeDeadlineSeconds"
				r.RunsOn, r.Revision, r.LiveRevision, r.Changed = kubectl.FromLive, "new", "new", Follows
				r.Queue, r.Position = "team", 3
			},
		},
		"admitted": {job: sealed(), of: Beside{Queued: true, Queue: "team"}, live: live("old"), want: func(r *Row) { r.Queue = "team" }},
		"run by MultiKueue": {job: sealed().ManagedBy("kueue.x-k8s.io/multikueue").Deadline(60), live: live("old"), want: func(r *Row) {
			r.RunsOn, r.Revision, r.Changed = kubectl.FromElsewhere, "", Unknown
		}},
	} {
		t.Run(name, func(t *testing.T) {
			job := tc.job.Obj()
			tc.of.Signalbox = true
			tc.of.Facts = kubectl.Facts{Job: job, Keeps: ptr.To(true), Live: tc.live}
			want := base
			tc.want(&want)
			if diff := cmp.Diff(want, RowOf(job, tc.of, now), cmpopts.IgnoreUnexported(Row{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSort(t *testing.T) {
	at := func(minutes int) time.Time { return created.Add(time.Duration(minutes) * time.Minute) }
	sorted := []Row{
		{Name: "over", State: kubectl.Finishing, Deadline: at(-1)},
		{Name: "soon", State: kubectl.Running, Deadline: at(1)},
		{Name: "later", State: kubectl.Running, Deadline: at(2)},
		{Name: "ending", State: kubectl.Finishing},
		{Name: "long-running", State: kubectl.Running, ActiveSince: at(-9)},
		{Name: "running", State: kubectl.Running, ActiveSince: at(-1)},
		{Name: "a-second", State: kubectl.Queued, Queue: "a", Position: 2},
		{Name: "a-unplaced", State: kubectl.Queued, Queue: "a"},
		{Name: "b-first", State: kubectl.Queued, Queue: "b", Position: 1},
		{Name: "suspended", State: kubectl.Suspended, Queue: "a"},
		{Name: "failed", State: kubectl.Failed, Finished: at(-1)},
		{Name: "a", Namespace: "a", State: kubectl.Succeeded, Finished: at(-2)},
		{Name: "a", Namespace: "b", State: kubectl.Succeeded, Finished: at(-2)},
		{Name: "b", Namespace: "b", State: kubectl.Succeeded, Finished: at(-2)},
	}
	for range 20 {
		rows := append([]Row(nil), sorted...)
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		Sort(rows)
		if diff := cmp.Diff(sorted, rows, cmpopts.IgnoreUnexported(Row{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}
