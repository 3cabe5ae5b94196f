package deadline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const wantMessage = "active since 2026-03-01T12:00:00Z, longer than the limit of 60 s (spec.activeDeadlineSeconds); no pod was ever ready"

// bench is a reconciler on fakes whose clock stands 60.25 s after the creation of the jobs.
type bench struct {
	*Reconciler
	store client.WithWatch
}

func newBench(t *testing.T, faults interceptor.Funcs, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(trainer.AddToScheme(scheme), corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(builder.Copies(objects)...).WithStatusSubresource(&trainer.TrainJob{}).Build()
	clock := clocktesting.NewFakePassiveClock(at(60.25))
	figures, err := NewMetrics(prometheus.NewRegistry(), store, clock)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{store: store, Reconciler: &Reconciler{
		Client: interceptor.NewClient(store, faults), Live: store, Clock: clock, Metrics: figures, WarnBefore: 10 * time.Minute,
	}}
}

// reconcile looks at the job, and again when that has written it: in a cluster the news of it
// brings it back.
func (b *bench) reconcile() (reconcile.Result, error) {
	before := b.version()
	result, err := b.look()
	if err != nil || b.version() == before {
		return result, err
	}
	return b.look()
}

// look looks at the job once.
func (b *bench) look() (reconcile.Result, error) {
	return b.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "job"}})
}

// version is the resourceVersion of the job; "" when it is not there.
func (b *bench) version() string {
	job := &trainer.TrainJob{}
	if err := b.store.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "job"}, job); err != nil {
		return ""
	}
	return job.ResourceVersion
}

func (b *bench) job(t *testing.T) *trainer.TrainJob {
	t.Helper()
	job := &trainer.TrainJob{}
	if err := b.store.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "job"}, job); err != nil {
		t.Fatal(err)
	}
	return job
}

// events lists the events of the job in the order of time, as TYPE REASON MESSAGE, and
// checks what the SDK and kubectl need of them.
func (b *bench) events(t *testing.T) []string {
	t.Helper()
	list := &corev1.EventList{}
	if err := b.store.List(context.Background(), list, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.FirstTimestamp.Compare(b.FirstTimestamp.Time) })
	var events []string
	for _, event := range list.Items {
		events = append(events, event.Type+" "+event.Reason+" "+event.Message)
		want := corev1.ObjectReference{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Namespace: "ns", Name: "job", UID: "uid-of-job"}
		if diff := cmp.Diff(want, event.InvolvedObject); diff != "" {
			t.Errorf("event is about (-want +got):\n%s", diff)
		}
		if event.FirstTimestamp.IsZero() || event.Count != 1 {
			t.Errorf("first time stamp %v, count %d", event.FirstTimestamp, event.Count)
		}
	}
	return events
}

func (b *bench) hasJobSet(t *testing.T) bool {
	t.Helper()
	err := b.store.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "job"}, jobSetOf(nil))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// jobSetOf makes the JobSet of the TrainJob, or one that nobody owns.
func jobSetOf(owner *trainer.TrainJob) *trainer.JobSet {
	jobSet := &trainer.JobSet{}
	jobSet.Namespace, jobSet.Name = "ns", "job"
	if owner != nil {
		jobSet.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, trainer.GroupVersion.WithKind(trainer.TrainJobKind))}
	}
	return jobSet
}

func dueJob() *builder.TrainJobBuilder {
	return builder.TrainJob("ns", "job").Created(created).Deadline(60).Stamp(created)
}

func TestReconcileExpires(t *testing.T) {
	job := dueJob().Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", created).Obj()
	b := newBench(t, interceptor.Funcs{}, job, jobSetOf(job))
	result, err := b.reconcile()
	if err != nil || result != (reconcile.Result{}) {
		t.Fatalf("Reconcile = %v, %v; want nothing more to do", result, err)
	}
	want := []metav1.Condition{job.Status.Conditions[0], {
		Type: "Failed", Status: metav1.ConditionTrue, Reason: "DeadlineExceeded", Message: wantMessage,
		LastTransitionTime: metav1.NewTime(at(60)),
	}}
	if diff := cmp.Diff(want, b.job(t).Status.Conditions, cmp.Comparer(sameTime)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if b.hasJobSet(t) {
		t.Error("the JobSet is still there")
	}
	if diff := cmp.Diff([]string{"Warning DeadlineExceeded " + wantMessage}, b.events(t)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(b.Metrics.expirations.WithLabelValues("spec")); got != 1 {
		t.Errorf("expirations = %v, want 1", got)
	}
	if _, err := b.reconcile(); err != nil || len(b.events(t)) != 1 {
		t.Errorf("after a second look: events %q, error %v", b.events(t), err)
	}
}

// Of many that are due at once each is ended before an event tells of the first.
func TestReconcileEndsBeforeItTells(t *testing.T) {
	job := dueJob().Obj()
	b := newBench(t, interceptor.Funcs{}, job, jobSetOf(job))
	if result, err := b.look(); err != nil || result != (reconcile.Result{}) {
		t.Fatalf("Reconcile = %v, %v; want nothing more to do", result, err)
	}
	if !b.job(t).DeadlineExceeded() || b.hasJobSet(t) || len(b.events(t)) != 0 {
		t.Errorf("conditions %v, has a JobSet %v, events %q; want Failed and nothing more", b.job(t).Status.Conditions, b.hasJobSet(t), b.events(t))
	}
}

// A deadline counts as much as news, also that of a TrainJob that was found at the start.
func TestReconcileWaitsForNobodyElse(t *testing.T) {
	for name, job := range map[string]*builder.TrainJobBuilder{
		"until its announcement": dueJob().Stamp(at(10.5)),
		"until its deadline":     dueJob().Stamp(at(5)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := newBench(t, interceptor.Funcs{}, job.Obj()).look()
			if diff := cmp.Diff(ptr.To(0), result.Priority); err != nil || result.RequeueAfter == 0 || diff != "" {
				t.Errorf("Reconcile = %v, %v; priority (-want +got):\n%s", result, err, diff)
			}
		})
	}
}

func sameTime(a, b metav1.Time) bool { return a.Equal(&b) }

func TestReconcileLeavesAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want time.Duration
	}{
		"waiting until exactly its announcement": {job: dueJob().Stamp(at(10.5)), want: 4250 * time.Millisecond},
		"suspended":                              {job: dueJob().Suspended()},
		"complete":                               {job: dueJob().Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(59))},
		"failed for another reason":              {job: dueJob().Condition(trainer.ConditionFailed, metav1.ConditionTrue, "Crashed", at(59))},
		"managed by MultiKueue":                  {job: dueJob().ManagedBy("kueue.x-k8s.io/multikueue")},
		"failed elsewhere by its deadline":       {job: dueJob().ManagedBy("kueue.x-k8s.io/multikueue").Condition(trainer.ConditionFailed, metav1.ConditionTrue, "DeadlineExceeded", at(59))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := tc.job.Obj()
			b := newBench(t, interceptor.Funcs{}, job, jobSetOf(job))
			before := b.job(t)
			result, err := b.reconcile()
			if err != nil || result.RequeueAfter != tc.want {
				t.Errorf("Reconcile = %v, %v; want to look again after %v", result, err, tc.want)
			}
			if diff := cmp.Diff(before, b.job(t)); diff != "" {
				t.Errorf("TrainJob changed (-before +after):\n%s", diff)
			}
			if !b.hasJobSet(t) {
				t.Error("the JobSet is gone")
			}
		})
	}
}

// The cache may be old: what counts is the live TrainJob.
func TestReconcileTrustsTheLiveTrainJob(t *testing.T) {
	for name, tc := range map[string]struct {
		live       *builder.TrainJobBuilder
		want       time.Duration
		wantFailed bool
	}{
		"completed meanwhile": {live: dueJob().Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(60))},
		"suspended meanwhile": {live: dueJob().Suspended()},
		"resumed meanwhile":   {live: dueJob().Stamp(at(30)), want: 23750 * time.Millisecond},
		"gone meanwhile":      {},
		"still due":           {live: dueJob(), wantFailed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stale := dueJob().Obj()
			behind := true
			old := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if job, ok := object.(*trainer.TrainJob); ok && behind {
					*job, behind = *stale, false
					return nil
				}
				return c.Get(ctx, key, object, options...)
			}}
			var objects []client.Object
			if tc.live != nil {
				objects = append(objects, tc.live.Obj(), jobSetOf(stale))
			}
			b := newBench(t, old, objects...)
			result, err := b.reconcile()
			if err != nil || result.RequeueAfter != tc.want {
				t.Errorf("Reconcile = %v, %v; want to look again after %v", result, err, tc.want)
			}
			if tc.live == nil {
				return
			}
			if got := b.job(t).DeadlineExceeded(); got != tc.wantFailed {
				t.Errorf("failed by its deadline = %v, want %v", got, tc.wantFailed)
			}
			if got := b.hasJobSet(t); got == tc.wantFailed {
				t.Errorf("has a JobSet = %v after failed = %v", got, tc.wantFailed)
			}
		})
	}
}

// What the API server answers once must not be the end of it.
func TestReconcileTriesAgain(t *testing.T) {
	jobSets := schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}
	for name, fault := range map[string]error{
		"500":       apierrors.NewInternalError(errors.New("etcd is away")),
		"409":       apierrors.NewConflict(jobSets, "job", errors.New("changed")),
		"timed out": context.DeadlineExceeded,
	} {
		t.Run("JobSet delete answers "+name, func(t *testing.T) {
			t.Parallel()
			job := dueJob().Obj()
			once := fault
			b := newBench(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if err := once; err != nil {
					once = nil
					return err
				}
				return c.Delete(ctx, object, options...)
			}}, job, jobSetOf(job))
			if _, err := b.reconcile(); !errors.Is(err, fault) {
				t.Errorf("first error = %v, want %v", err, fault)
			}
			if !b.job(t).DeadlineExceeded() {
				t.Error("not failed before its JobSet is deleted")
			}
			if _, err := b.reconcile(); err != nil || b.hasJobSet(t) {
				t.Errorf("after the second look: error %v, has a JobSet %v", err, b.hasJobSet(t))
			}
			if events := b.events(t); len(events) != 1 {
				t.Errorf("events = %q, want one", events)
			}
		})
		t.Run("status patch answers "+name, func(t *testing.T) {
			t.Parallel()
			job := dueJob().Obj()
			once := fault
			b := newBench(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				if err := once; err != nil {
					once = nil
					return err
				}
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			}}, job, jobSetOf(job))
			// A conflict is settled within one look, by reading again.
			if _, err := b.reconcile(); !apierrors.IsConflict(fault) && !errors.Is(err, fault) {
				t.Errorf("first error = %v, want %v", err, fault)
			}
			if _, err := b.reconcile(); err != nil || !b.job(t).DeadlineExceeded() || b.hasJobSet(t) {
				t.Errorf("after the second look: error %v, conditions %v, has a JobSet %v", err, b.job(t).Status.Conditions, b.hasJobSet(t))
			}
		})
	}
}

func TestReconcileBacksOffFromEndlessConflicts(t *testing.T) {
	job := dueJob().Obj()
	b := newBench(t, interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "trainjobs"}, "job", errors.New("changed"))
	}}, job, jobSetOf(job))
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter != MinRequeue {
		t.Errorf("Reconcile = %v, %v; want to look again after %v", result, err, MinRequeue)
	}
	if b.job(t).Terminal() || !b.hasJobSet(t) || len(b.events(t)) != 0 {
		t.Error("acted without the status being stored")
	}
}

// The patch holds only if nobody wrote the TrainJob since it was read.
func TestReconcileLosesToACompletionInBetween(t *testing.T) {
	job := dueJob().Obj()
	raced := false
	var b *bench
	b = newBench(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
		if !raced {
			raced = true
			other := b.job(t)
			meta.SetStatusCondition(&other.Status.Conditions, metav1.Condition{Type: "Complete", Status: metav1.ConditionTrue, Reason: "Done"})
			if err := b.store.Status().Update(ctx, other); err != nil {
				t.Fatal(err)
			}
		}
		return c.SubResource(sub).Patch(ctx, object, patch, options...)
	}}, job, jobSetOf(job))
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := b.job(t); got.DeadlineExceeded() || !got.Terminal() || !b.hasJobSet(t) || len(b.events(t)) != 0 {
		t.Errorf("conditions = %v, has a JobSet = %v, events %q; want Complete alone", got.Status.Conditions, b.hasJobSet(t), b.events(t))
	}
}

// The status is stored but the answer is lost: the next pass finds the job failed, and tells.
func TestReconcileTellsOfALostAnswer(t *testing.T) {
	job := dueJob().Obj()
	lost := errors.New("connection cut")
	b := newBench(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
		return errors.Join(c.SubResource(sub).Patch(ctx, object, patch, options...), lost)
	}}, job, jobSetOf(job))
	if _, err := b.reconcile(); !errors.Is(err, lost) || len(b.events(t)) != 0 {
		t.Fatalf("first look: error %v, events %q", err, b.events(t))
	}
	for range 2 {
		if _, err := b.reconcile(); err != nil || b.hasJobSet(t) {
			t.Errorf("later look: error %v, has a JobSet %v", err, b.hasJobSet(t))
		}
		if diff := cmp.Diff([]string{"Warning DeadlineExceeded " + wantMessage}, b.events(t)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

// What ended by itself before the deadline was enforced ended so, even if Trainer is away and
// has not said it yet.
func TestReconcileLeavesAFinishedJobSetToTrainer(t *testing.T) {
	for name, tc := range map[string]struct {
		condition  metav1.Condition
		owned      bool
		wantFailed bool
	}{
		"completed":                      {condition: metav1.Condition{Type: "Completed", Status: metav1.ConditionTrue}, owned: true},
		"failed":                         {condition: metav1.Condition{Type: "Failed", Status: metav1.ConditionTrue}, owned: true},
		"suspended once":                 {condition: metav1.Condition{Type: "Suspended", Status: metav1.ConditionTrue}, owned: true, wantFailed: true},
		"completed, of another TrainJob": {condition: metav1.Condition{Type: "Completed", Status: metav1.ConditionTrue}, wantFailed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := dueJob().Obj()
			jobSet := jobSetOf(nil)
			if tc.owned {
				jobSet = jobSetOf(job)
			}
			jobSet.Status.Conditions = []metav1.Condition{tc.condition}
			b := newBench(t, interceptor.Funcs{}, job, jobSet)
			result, err := b.reconcile()
			if err != nil || b.job(t).Terminal() != tc.wantFailed {
				t.Fatalf("error %v, conditions %v; want failed = %v", err, b.job(t).Status.Conditions, tc.wantFailed)
			}
			if !tc.wantFailed && (result.RequeueAfter != lookForTrainer || !b.hasJobSet(t) || len(b.events(t)) != 0) {
				t.Errorf("Reconcile = %v, has a JobSet = %v, events %q; want to look again after %v", result, b.hasJobSet(t), b.events(t), lookForTrainer)
			}
		})
	}
}

func TestReconcileCleansUpAfterStock(t *testing.T) {
	job := dueJob().Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, at(60)).Obj()
	for name, tc := range map[string]struct {
		jobSet *trainer.JobSet
		want   bool
	}{
		"its JobSet goes":                         {jobSet: jobSetOf(job), want: false},
		"a JobSet that it does not own stays":     {jobSet: jobSetOf(nil), want: true},
		"the JobSet of an earlier namesake stays": {jobSet: jobSetOf(builder.TrainJob("ns", "other").Obj()), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, interceptor.Funcs{}, job.DeepCopy(), tc.jobSet)
			if result, err := b.reconcile(); err != nil || result != (reconcile.Result{}) {
				t.Errorf("Reconcile = %v, %v", result, err)
			}
			if got := b.hasJobSet(t); got != tc.want {
				t.Errorf("has a JobSet = %v, want %v", got, tc.want)
			}
			want := []string{"Warning DeadlineExceeded active since 2026-03-01T12:00:00Z, longer than the limit of 60 s (spec.activeDeadlineSeconds)"}
			if diff := cmp.Diff(want, b.events(t)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReconcileAnnouncesTheEnd(t *testing.T) {
	// 60 s from 12:00:05 on; at 12:01:00.25 the last tenth has begun.
	b := newBench(t, interceptor.Funcs{}, dueJob().Stamp(at(5)).Obj())
	want := []string{"Warning DeadlineApproaching 5s left of the limit of 60 s (spec.activeDeadlineSeconds); active since 2026-03-01T12:00:05Z"}
	for range 2 {
		result, err := b.reconcile()
		if err != nil || result.RequeueAfter != 4750*time.Millisecond {
			t.Errorf("Reconcile = %v, %v; want to look again exactly at the deadline", result, err)
		}
		if diff := cmp.Diff(want, b.events(t)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	// A new active period has an end of its own.
	again := b.job(t)
	again.Annotations[v1alpha1.AnnotationResumedAt] = at(4).Format(time.RFC3339Nano)
	if err := b.store.Update(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil || len(b.events(t)) != 2 {
		t.Errorf("events of two periods = %q, error %v", b.events(t), err)
	}
	b.WarnBefore = 0
	again.Annotations[v1alpha1.AnnotationResumedAt] = at(3).Format(time.RFC3339Nano)
	if err := b.store.Update(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	if result, err := b.reconcile(); err != nil || len(b.events(t)) != 2 || result.RequeueAfter != 2750*time.Millisecond {
		t.Errorf("turned off: events = %q, %v, error %v", b.events(t), result, err)
	}
}

// An event that cannot be written holds nothing up.
func TestReconcileExpiresWithoutItsEvent(t *testing.T) {
	job := dueJob().Obj()
	b := newBench(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("the namespace is terminating")
	}}, job, jobSetOf(job))
	if _, err := b.reconcile(); err != nil || !b.job(t).DeadlineExceeded() || b.hasJobSet(t) {
		t.Errorf("error %v, conditions %v, has a JobSet %v", err, b.job(t).Status.Conditions, b.hasJobSet(t))
	}
}

// What expired long ago is no news: a restart looks at every TrainJob once.
func TestReconcileDoesNotTellOfOldExpiries(t *testing.T) {
	old := dueJob().Created(at(-1000)).Stamp(at(-1000)).Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, at(-900)).Obj()
	b := newBench(t, interceptor.Funcs{}, old)
	if _, err := b.reconcile(); err != nil || len(b.events(t)) != 0 {
		t.Errorf("error %v, events %q", err, b.events(t))
	}
}

func TestReconcileForgetsWhatIsGone(t *testing.T) {
	if result, err := newBench(t, interceptor.Funcs{}).reconcile(); err != nil || result != (reconcile.Result{}) {
		t.Errorf("Reconcile = %v, %v; want nothing", result, err)
	}
}

func TestMetrics(t *testing.T) {
	store := newBench(t, interceptor.Funcs{},
		dueJob().Obj(),
		builder.TrainJob("ns", "waiting").Created(at(60)).Deadline(60).Obj(),
		builder.TrainJob("ns", "suspended").Created(created).Deadline(60).Suspended().Obj(),
		builder.TrainJob("ns", "without").Created(created).Obj(),
	).store
	registry := prometheus.NewPedanticRegistry()
	figures, err := NewMetrics(registry, store, clocktesting.NewFakePassiveClock(at(60.25)))
	if err != nil {
		t.Fatal(err)
	}
	figures.expired(expired(at(0), SourceAnnotation), at(60.75))
	want := strings.TrimLeft(`
# HELP signalbox_deadline_expirations_total Times that Failed was set on a TrainJob because its deadline was reached, by where the limit came from.
# TYPE signalbox_deadline_expirations_total counter
signalbox_deadline_expirations_total{source="annotation"} 1
signalbox_deadline_expirations_total{source="policy"} 0
signalbox_deadline_expirations_total{source="runtime"} 0
signalbox_deadline_expirations_total{source="spec"} 0
# HELP signalbox_deadline_trainjobs TrainJobs whose deadline is counting. Every replica reports the same number.
# TYPE signalbox_deadline_trainjobs gauge
signalbox_deadline_trainjobs 2
`, "\n")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "signalbox_deadline_expirations_total", "signalbox_deadline_trainjobs"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "signalbox_deadline_enforcement_lag_seconds" {
			if got := family.Metric[0].Histogram.GetSampleSum(); got != 0.75 {
				t.Errorf("lag = %v s, want 0.75", got)
			}
		}
	}
}
