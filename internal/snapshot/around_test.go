package snapshot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const torchID = "ClusterTrainingRuntime/torch"

// A TrainJob that may have run before has its JobSet kept for as long as Trainer may still put
// the revision on it.
func TestReconcileGivesTrainerItsTurn(t *testing.T) {
	w := newWorld(t)
	at := func(after time.Duration) time.Time { return w.s.SealedAt.Add(after) }
	const deleted, kept = "none", "there"
	for name, tc := range map[string]struct {
		resumed, after time.Duration
		filedBefore    bool
		filedForOther  bool
		want           string
		wantWait       time.Duration
	}{
		"started for the first time":            {resumed: 999 * time.Millisecond, after: 2 * time.Second, want: deleted},
		"started again, 2 s ago":                {resumed: time.Hour, after: time.Hour + 2*time.Second, want: kept, wantWait: 3 * time.Second},
		"started again, 5 s ago":                {resumed: time.Hour, after: time.Hour + 5*time.Second, want: deleted},
		"started again in the next second":      {resumed: 1001 * time.Millisecond, after: 2001 * time.Millisecond, want: kept, wantWait: 4 * time.Second},
		"from before us, started 1 s ago":       {resumed: 999 * time.Millisecond, after: 1999 * time.Millisecond, filedBefore: true, want: kept, wantWait: 4 * time.Second},
		"from before us, started 5 s ago":       {resumed: 999 * time.Millisecond, after: 5999 * time.Millisecond, filedBefore: true, want: deleted},
		"an earlier one was from before us":     {resumed: 999 * time.Millisecond, after: 1999 * time.Millisecond, filedBefore: true, filedForOther: true, want: deleted},
		"sealed 2 s ago, without a time of it":  {after: 2 * time.Second, want: kept, wantWait: 3 * time.Second},
		"started in the future of another host": {resumed: time.Hour, after: time.Second, want: kept, wantWait: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := sealedJob(w.s)
			if tc.resumed != 0 {
				job.Stamp(at(tc.resumed))
			}
			r := row{job: job, after: tc.after, want: state{"right", "right", tc.want}, wantWait: tc.wantWait}
			filed := w.filed()
			if tc.filedBefore {
				filed.Spec.SealedAt, r.want.Snapshot = metav1.NewTime(at(-time.Hour)), "wrong [time]"
			}
			if tc.want == deleted {
				r.wantWrites = []string{deleteJobSet}
			}
			if tc.filedForOther {
				filed.OwnerReferences[0].UID, r.want.Snapshot = "earlier", "right"
				r.wantWrites = append(r.wantWrites, deleteFiled, createFiled)
			}
			r.objects = []client.Object{w.config().Obj(), filed, w.jobSet("0123456789abcdef").Obj()}
			r.run(t, w.s)
		})
	}
}

// Where a TrainJob has no snapshot yet, what an earlier one of its name left is in Trainer's way.
func TestReconcileClearsLeftovers(t *testing.T) {
	w := newWorld(t)
	job := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch")
	}
	waiting := func() *builder.TrainJobBuilder {
		return job().Suspended().Annotation(v1alpha1.AnnotationRuntimeSource, torchID)
	}
	earlier := ownerRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "earlier")
	const cleared = "none"
	for name, tc := range map[string]struct {
		job    *builder.TrainJobBuilder
		config *builder.ConfigMapBuilder
		want   string
	}{
		"waiting, of an earlier TrainJob":             {job: waiting(), config: w.config().OwnedBy(earlier), want: cleared},
		"waiting, orphaned":                           {job: waiting(), config: w.config().OwnedBy(metav1.OwnerReference{}), want: cleared},
		"active without a seal, of an earlier one":    {job: job(), config: w.config().OwnedBy(earlier), want: cleared},
		"waiting, of an earlier TrainJob, no label":   {job: waiting(), config: builder.ConfigMap(w.job, toYAML(t, w.s)).OwnedBy(earlier), want: "wrong [owner label immutable source]"},
		"waiting, its own":                            {job: waiting(), config: w.config(), want: "right"},
		"waiting, of somebody else":                   {job: waiting(), config: w.config().OwnedBy(ownerRef("apps/v1", "Deployment", "d")), want: "wrong [owner]"},
		"being deleted, of an earlier TrainJob":       {job: waiting().Deleting(sealTime), config: w.config().OwnedBy(earlier), want: "wrong [owner]"},
		"managed by MultiKueue, of an earlier one":    {job: waiting().ManagedBy("kueue.x-k8s.io/multikueue"), config: w.config().OwnedBy(earlier), want: "wrong [owner]"},
		"active without a seal, nothing of it can be": {job: job(), config: w.config().OwnedBy(ownerRef("apps/v1", "Deployment", "d")), want: "wrong [owner]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := row{job: tc.job, objects: []client.Object{tc.config.Obj()}, want: state{tc.want, "none", "none"}}
			if tc.want == cleared {
				r.wantWrites = []string{deleteConfig}
			}
			r.run(t, w.s)
		})
	}
	t.Run("that of a TrainJob that is not in the cache yet stays", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, waiting().UID("next").Obj(), w.config().OwnedBy(ownerRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "next")).Obj())
		b.cachedJob = waiting().Obj()
		if result, err := b.reconcile(t); err != nil || result != (reconcile.Result{}) {
			t.Errorf("Reconcile = %v, %v", result, err)
		}
		b.wantWrites(t)
	})
}

// A snapshot that must go and is held by a finalizer is waited for.
func TestReconcileWaitsForTheEndOfASnapshot(t *testing.T) {
	w := newWorld(t)
	b := newBench(t, sealedJob(w.s).Obj(), w.config().Obj(), w.filed(func(o *v1alpha1.TrainingRuntimeSnapshot) {
		o.OwnerReferences[0].UID = "earlier"
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: sealTime}, []string{"example.com/keep"}
	}))
	for range 2 {
		if result, err := b.reconcile(t); err != nil || result != (reconcile.Result{}) {
			t.Errorf("Reconcile = %v, %v", result, err)
		}
		b.wantWrites(t)
	}
	going := b.filed(t)
	going.Finalizers = nil
	if err := b.store.Update(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(t); err != nil {
		t.Error(err)
	}
	b.wantWrites(t, createFiled)
}
