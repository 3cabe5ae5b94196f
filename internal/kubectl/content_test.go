package kubectl

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestBuiltFrom(t *testing.T) {
	yes, no := ptr.To(true), ptr.To(false)
	started := func() *builder.TrainJobBuilder { return builder.TrainJob("team-a", "train") }
	waiting := func() *builder.TrainJobBuilder {
		return started().Suspended().Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch")
	}
	sealed := func(job *builder.TrainJobBuilder) *builder.TrainJobBuilder {
		return job.Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch").
			Annotation(v1alpha1.AnnotationRuntimeRevision, "sealed").Annotation(v1alpha1.AnnotationRuntimeSnapshot, "H4sI")
	}
	finished := func(job *builder.TrainJobBuilder) *trainer.TrainJob {
		return job.Condition(trainer.ConditionComplete, metav1.ConditionTrue, "JobsCompleted", time.Unix(0, 0)).Obj()
	}
	runs := func(revision string) *trainer.JobSet {
		jobSet := builder.JobSet(started().Obj())
		if revision != "" {
			jobSet.Annotation(v1alpha1.AnnotationRuntimeRevision, revision)
		}
		return jobSet.Obj()
	}
	held := builder.JobSet(started().Obj()).Suspended().Annotation(v1alpha1.AnnotationRuntimeRevision, "held").Obj()
	goes := runs("goes")
	goes.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(0, 0)))
	live := Live{Revision: "live"}
	for name, tc := range map[string]struct {
		facts Facts
		want  Built
		why   string // what Why contains
	}{
		"sealed and running": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: yes, JobSet: runs("sealed"), Live: live},
			want:  Built{From: FromSeal, Revision: "sealed", Next: FromSeal},
		},
		"sealed, its JobSet not there yet": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: yes, Live: live},
			want:  Built{From: FromSeal, Revision: "sealed", Next: FromSeal},
		},
		"sealed and paused": {
			facts: Facts{Job: sealed(started().Suspended()).Obj(), Keeps: yes, JobSet: held, Live: live},
			want:  Built{From: FromSeal, Revision: "sealed", Next: FromSeal},
		},
		"sealed, and a JobSet runs that no gate has seen": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: yes, JobSet: runs("other"), Live: live},
			want:  Built{From: FromJobSet, Revision: "other", Next: FromSeal, Mismatch: true},
		},
		"sealed, and a JobSet runs that does not say": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: yes, JobSet: runs(""), Live: live},
			want:  Built{From: FromSeal, Revision: "sealed", Next: FromSeal},
		},
		"sealed, and a JobSet of another owner runs": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: yes, JobSet: builder.JobSet(started().Obj()).Orphaned().Annotation(v1alpha1.AnnotationRuntimeRevision, "other").Obj()},
			want:  Built{From: FromSeal, Revision: "sealed", Next: FromSeal},
		},
		"sealed and finished": {
			facts: Facts{Job: finished(sealed(started())), Keeps: yes, Live: live},
			want:  Built{From: FromSeal, Revision: "sealed"},
		},
		"waits for its first start": {
			facts: Facts{Job: waiting().Obj(), Keeps: yes, Kept: "kept", JobSet: held, Live: live},
			want:  Built{From: FromLive, Revision: "live", Next: FromLive},
		},
		"waits for its first start, by whatever Trainer": {
			facts: Facts{Job: waiting().Obj(), Live: live},
			want:  Built{From: FromLive, Revision: "live", Next: FromLive},
		},
		"waits for its first start, its runtime gone": {
			facts: Facts{Job: waiting().Obj(), Keeps: yes, Live: Live{Gone: true}},
			want:  Built{From: FromLive, Next: FromLive},
			why:   "is gone",
		},
		"waits, its start was not seen": {
			facts: Facts{Job: waiting().Obj(), Keeps: yes, Filed: "filed", Live: live},
			want:  Built{From: FromSnapshot, Revision: "filed", Next: FromSnapshot},
		},
		"taken over": {
			facts: Facts{Job: started().Obj(), Keeps: yes, Filed: "filed", Kept: "kept", JobSet: runs("stale"), Live: live},
			want:  Built{From: FromSnapshot, Revision: "filed", Next: FromSnapshot},
		},
		"not sealed, as Trainer keeps it": {
			facts: Facts{Job: started().Obj(), Keeps: yes, Kept: "kept", JobSet: runs(""), Live: live},
			want:  Built{From: FromTrainer, Revision: "kept", Next: FromTrainer},
		},
		"not sealed, paused before Signalbox came": {
			facts: Facts{Job: started().Suspended().Obj(), Keeps: yes, Kept: "kept", JobSet: held, Live: live},
			want:  Built{From: FromTrainer, Revision: "kept", Next: FromTrainer},
		},
		"not sealed, and Trainer has not looked yet": {
			facts: Facts{Job: started().Obj(), Keeps: yes, Live: live},
			want:  Built{From: FromLive, Revision: "live", Next: FromLive},
		},
		"not sealed, and what is kept may not be read": {
			facts: Facts{Job: started().Obj(), Keeps: yes, KeptUnread: true, JobSet: runs(""), Live: live},
			want:  Built{From: FromUnknown, Next: FromTrainer},
			why:   "could not be read",
		},
		"not sealed, what is kept may not be read, but the JobSet tells": {
			facts: Facts{Job: started().Obj(), Keeps: yes, KeptUnread: true, JobSet: runs("built"), Live: live},
			want:  Built{From: FromJobSet, Revision: "built", Next: FromTrainer},
		},
		"not sealed, and nothing is kept of what runs": {
			facts: Facts{Job: started().Obj(), Keeps: yes, JobSet: runs(""), Live: live},
			want:  Built{From: FromUnknown, Next: FromUnknown},
			why:   "nothing is kept",
		},
		"not sealed and finished, nothing left": {
			facts: Facts{Job: finished(started()), Keeps: yes, Live: live},
			want:  Built{From: FromUnknown},
			why:   "nothing is kept",
		},
		"a Trainer that keeps nothing: runs on what is sealed": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: no, JobSet: runs("sealed"), Live: live},
			want:  Built{From: FromSeal, Revision: "sealed", Next: FromLive},
		},
		"a Trainer that keeps nothing: runs on the runtime of its last resume": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: no, JobSet: runs("live"), Live: live},
			want:  Built{From: FromLive, Revision: "live", Next: FromLive},
		},
		"a Trainer that keeps nothing: runs on neither": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: no, JobSet: runs("between"), Live: live},
			want:  Built{From: FromJobSet, Revision: "between", Next: FromLive},
		},
		"a Trainer that keeps nothing: a JobSet that does not say": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: no, JobSet: runs(""), Live: live},
			want:  Built{From: FromUnknown, Next: FromLive},
			why:   "does not tell its revision",
		},
		"a Trainer that keeps nothing: a JobSet that may not be read": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: no, JobSetUnread: true, Live: live},
			want:  Built{From: FromUnknown, Next: FromLive},
			why:   "could not be read",
		},
		"a Trainer that keeps nothing: paused": {
			facts: Facts{Job: sealed(started().Suspended()).Obj(), Keeps: no, JobSet: held, Live: live},
			want:  Built{From: FromLive, Revision: "live", Next: FromLive},
		},
		"a Trainer that keeps nothing: resumed, its JobSet goes": {
			facts: Facts{Job: sealed(started()).Obj(), Keeps: no, JobSet: goes, Live: live},
			want:  Built{From: FromLive, Revision: "live", Next: FromLive},
		},
		"a Trainer that keeps nothing: finished, its JobSet gone": {
			facts: Facts{Job: finished(sealed(started())), Keeps: no, Live: live},
			want:  Built{From: FromUnknown},
			why:   "tells which revision",
		},
		"a Trainer that keeps nothing: finished, its JobSet there": {
			facts: Facts{Job: finished(sealed(started())), Keeps: no, JobSet: runs("sealed"), Live: live},
			want:  Built{From: FromSeal, Revision: "sealed"},
		},
		"an unknown Trainer: the JobSet carries what is sealed": {
			facts: Facts{Job: sealed(started()).Obj(), JobSet: runs("sealed"), Live: live},
			want:  Built{From: FromSeal, Revision: "sealed", Next: FromUnknown},
		},
		"an unknown Trainer: sealed and paused": {
			facts: Facts{Job: sealed(started().Suspended()).Obj(), JobSet: held, Live: live},
			want:  Built{From: FromUnknown, Next: FromUnknown},
			why:   "CRD of TrainJobs",
		},
		"run by another controller": {
			facts: Facts{Job: sealed(started()).ManagedBy("kueue.x-k8s.io/multikueue").Obj(), Keeps: yes, JobSet: runs("sealed"), Live: live},
			want:  Built{From: FromElsewhere, Next: FromElsewhere},
			why:   "kueue.x-k8s.io/multikueue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := BuiltFrom(tc.facts)
			if (tc.why == "") != (got.Why == "") || !strings.Contains(got.Why, tc.why) {
				t.Errorf("why = %q, want %q in it", got.Why, tc.why)
			}
			if (got.Revision == "") != (got.Why != "") {
				t.Errorf("revision %q and why %q", got.Revision, got.Why)
			}
			got.Why = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		revision       string
		live           Live
		changed, known bool
	}{
		"the same":                {revision: "a", live: Live{Revision: "a"}, known: true},
		"another":                 {revision: "a", live: Live{Revision: "b"}, changed: true, known: true},
		"gone":                    {revision: "a", live: Live{Gone: true}},
		"not read":                {revision: "a"},
		"content that is unknown": {live: Live{Revision: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if changed, known := (Built{Revision: tc.revision}).Changed(tc.live); changed != tc.changed || known != tc.known {
				t.Errorf("changed %v, known %v; want %v, %v", changed, known, tc.changed, tc.known)
			}
		})
	}
}

// Every way in which a TrainJob can be built has words of its own.
func TestFromText(t *testing.T) {
	seen := map[string]From{}
	for _, from := range []From{FromSeal, FromSnapshot, FromTrainer, FromLive, FromJobSet, FromElsewhere, FromUnknown} {
		if other, found := seen[from.Text()]; found || from.Text() == "" {
			t.Errorf("%q of %s is that of %s", from.Text(), from, other)
		}
		seen[from.Text()] = from
	}
}
