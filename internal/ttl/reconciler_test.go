package ttl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// bench is a reconciler on a fake API server, whose clock stands 60.25 s after the TrainJobs
// finished.
type bench struct {
	*Reconciler
	t     *testing.T
	store client.WithWatch
	// cached is the TrainJob that the cache has, if it is not that of the API server.
	cached *trainer.TrainJob
	// steps are what was done, in order.
	steps []string
	// rules are what is said elsewhere; asked counts how often that was asked for.
	rules Rules
	asked int
	// unruly, unprepared, unread and undeleted are answers to the steps, if they are set.
	unruly, unprepared, unread, undeleted error
	// deletion is how the deletion was asked for.
	deletion client.DeleteOptions
	logged   []string
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(trainer.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	figures, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: fake.NewClientBuilder().WithScheme(scheme).WithObjects(builder.Copies(objects)...).Build()}
	cached := interceptor.NewClient(b.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if job, ok := object.(*trainer.TrainJob); ok && b.cached != nil {
				b.cached.DeepCopyInto(job)
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			b.steps = append(b.steps, "event")
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			b.steps = append(b.steps, "delete")
			b.deletion.ApplyOptions(options)
			if b.undeleted != nil {
				return b.undeleted
			}
			return c.Delete(ctx, object, options...)
		},
	})
	live := interceptor.NewClient(b.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			b.steps = append(b.steps, "read")
			if b.unread != nil {
				return b.unread
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	b.Reconciler = &Reconciler{
		Client: cached, Live: live, Clock: clocktesting.NewFakePassiveClock(at(60.25)), Metrics: figures,
		Rules: func(context.Context, *trainer.TrainJob) (Rules, error) {
			b.asked++
			return b.rules, b.unruly
		},
		Before: func(_ context.Context, job *trainer.TrainJob) error {
			b.steps = append(b.steps, "before "+job.Name)
			return b.unprepared
		},
	}
	return b
}

func (b *bench) reconcile() (reconcile.Result, error) {
	b.t.Helper()
	ctx := log.IntoContext(b.t.Context(), funcr.New(func(_, args string) { b.logged = append(b.logged, args) }, funcr.Options{}))
	return b.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "job"}})
}

// there tells whether the API server still has the TrainJob.
func (b *bench) there() bool {
	b.t.Helper()
	err := b.store.Get(b.t.Context(), client.ObjectKey{Namespace: "ns", Name: "job"}, &trainer.TrainJob{})
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}

// events are those that there are, as TYPE REASON MESSAGE.
func (b *bench) events() []string {
	b.t.Helper()
	list := &corev1.EventList{}
	if err := b.store.List(b.t.Context(), list, client.InNamespace("ns")); err != nil {
		b.t.Fatal(err)
	}
	var events []string
	for _, event := range list.Items {
		events = append(events, event.Type+" "+event.Reason+" "+event.Message)
		want := corev1.ObjectReference{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Namespace: "ns", Name: "job", UID: "uid-of-job"}
		if diff := cmp.Diff(want, event.InvolvedObject); diff != "" {
			b.t.Errorf("event is about (-want +got):\n%s", diff)
		}
		if event.FirstTimestamp.IsZero() || event.Count != 1 {
			b.t.Errorf("first time stamp %v, count %d", event.FirstTimestamp, event.Count)
		}
	}
	return events
}

// removals is how many TrainJobs were counted as removed, by any source.
func (b *bench) removals() float64 {
	sum := 0.0
	for _, source := range []string{"annotation", "runtime", "policy"} {
		sum += testutil.ToFloat64(b.Metrics.deletions.WithLabelValues(source))
	}
	return sum
}

// stays checks that nothing was removed, nor said to be.
func (b *bench) stays() {
	b.t.Helper()
	if slices.Contains(b.steps, "event") || b.removals() != 0 {
		b.t.Errorf("steps %q, %v removals counted", b.steps, b.removals())
	}
}

func TestReconcileRemoves(t *testing.T) {
	b := newBench(t, complete().TTL("60").Obj())
	stored := &trainer.TrainJob{}
	if err := b.store.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "job"}, stored); err != nil {
		t.Fatal(err)
	}
	if result, err := b.reconcile(); err != nil || result != (reconcile.Result{}) {
		t.Fatalf("Reconcile = %v, %v", result, err)
	}
	if b.there() {
		t.Error("the TrainJob is still there")
	}
	if diff := cmp.Diff([]string{"read", "before job", "delete", "event"}, b.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	want := client.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	}
	if diff := cmp.Diff(want, b.deletion); diff != "" {
		t.Errorf("deleted with (-want +got):\n%s", diff)
	}
	const text = "finished at 2026-03-01T12:00:00Z, to stay 60 s (annotation lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished)"
	if diff := cmp.Diff([]string{"Normal TTLExpired " + text}, b.events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(b.Metrics.deletions.WithLabelValues("annotation")); got != 1 || b.removals() != 1 {
		t.Errorf("%v removals by annotation, %v in all", got, b.removals())
	}
	if len(b.logged) != 1 || !strings.Contains(b.logged[0], `"msg"="removed a finished TrainJob" "reason"="`+text+`"`) {
		t.Errorf("log: %q", b.logged)
	}
	if _, err := b.reconcile(); err != nil || b.removals() != 1 || len(b.events()) != 1 {
		t.Errorf("after another look: error %v, %v removals, events %q", err, b.removals(), b.events())
	}
}

func TestReconcileWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		job   *builder.TrainJobBuilder
		rules Rules
		want  time.Duration
		// wantAsked is how often what others say was asked for.
		wantAsked  int
		wantLogged int
	}{
		"for exactly the rest":            {job: complete().TTL("90"), want: 29750 * time.Millisecond, wantAsked: 1},
		"for the rest of a policy's":      {job: failed(), rules: Rules{Failed: limit(3600, "LifecyclePolicy/f")}, want: time.Hour - 60250*time.Millisecond, wantAsked: 1},
		"for a finish in the future":      {job: running().Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", at(100)).TTL("10"), want: 49750 * time.Millisecond, wantAsked: 1, wantLogged: 1},
		"for ever: nobody says anything":  {job: complete(), wantAsked: 1},
		"for ever: opted out":             {job: complete().TTL("none"), wantAsked: 1},
		"for ever: the runtime has its":   {job: complete().TTL("0"), rules: Rules{OwnTTL: true}, wantAsked: 1},
		"for ever: Trainer removes it":    {job: complete().TTL("0").RunPolicy(nil, &trainer.Setting{}), wantAsked: 1},
		"for the max: Trainer removes it": {job: complete().TTL("0").RunPolicy(nil, &trainer.Setting{}), rules: Rules{Max: limit(90, "LifecyclePolicy/m")}, want: 29750 * time.Millisecond, wantAsked: 1},
		"for an event: not finished":      {job: running().TTL("0")},
		"for an event: suspended":         {job: complete().TTL("0").Suspended()},
		"for an event: being deleted":     {job: complete().TTL("0").Deleting(at(1))},
		"for an event: managed elsewhere": {job: complete().TTL("0").ManagedBy("kueue.x-k8s.io/multikueue")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tc.job.Obj())
			b.rules = tc.rules
			if result, err := b.reconcile(); err != nil || result != (reconcile.Result{RequeueAfter: tc.want}) {
				t.Errorf("Reconcile = %v, %v; want to look again after %v", result, err, tc.want)
			}
			if len(b.steps) != 0 || b.asked != tc.wantAsked || len(b.logged) != tc.wantLogged || !b.there() {
				t.Errorf("steps %q, asked %d times, log %q, there %v", b.steps, b.asked, b.logged, b.there())
			}
		})
	}
}

// The cache may be old: what counts is the live TrainJob.
func TestReconcileTrustsTheLiveTrainJob(t *testing.T) {
	for name, tc := range map[string]struct {
		live  *builder.TrainJobBuilder
		want  time.Duration
		there bool
	}{
		"still due":            {live: complete().TTL("60")},
		"due by another limit": {live: complete().TTL("0")},
		"longer meanwhile":     {live: complete().TTL("90"), want: 29750 * time.Millisecond, there: true},
		"opted out meanwhile":  {live: complete().TTL("none"), there: true},
		"suspended meanwhile":  {live: complete().TTL("60").Suspended(), there: true},
		"being deleted":        {live: complete().TTL("60").Deleting(at(1)), there: true},
		"gone meanwhile":       {},
		// The cached one is gone, and another has its name: that one goes by what is said of itself.
		"another of its name, not finished": {live: running().UID("other").TTL("60"), there: true},
		"another of its name, not due":      {live: complete().UID("other").TTL("90"), want: 29750 * time.Millisecond, there: true},
		"another of its name, to stay":      {live: complete().UID("other"), there: true},
		"another of its name, due":          {live: failed().UID("other").TTL("30")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			if tc.live != nil {
				objects = append(objects, tc.live.Obj())
			}
			b := newBench(t, objects...)
			b.cached = complete().TTL("60").Obj()
			if result, err := b.reconcile(); err != nil || result != (reconcile.Result{RequeueAfter: tc.want}) {
				t.Errorf("Reconcile = %v, %v; want to look again after %v", result, err, tc.want)
			}
			if got := b.there(); got != tc.there {
				t.Errorf("there %v, want %v", got, tc.there)
			}
			if !tc.there && tc.live != nil {
				if uid := b.deletion.Preconditions.UID; uid == nil || *uid != tc.live.Obj().UID {
					t.Errorf("deleted by the UID %v, want %s", uid, tc.live.Obj().UID)
				}
			}
			if tc.there || tc.live == nil {
				b.stays()
				if diff := cmp.Diff([]string{"read"}, b.steps); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// One that somebody writes between the live read and the deletion stays: the write brings the next
// look.
func TestReconcileLosesARace(t *testing.T) {
	b := newBench(t, complete().TTL("60").Obj())
	b.Before = func(ctx context.Context, job *trainer.TrainJob) error {
		changed := job.DeepCopy()
		changed.Annotations["team"] = "x"
		return b.store.Update(ctx, changed)
	}
	if _, err := b.reconcile(); err != nil {
		t.Errorf("Reconcile: %v", err)
	}
	b.stays()
	if !b.there() {
		t.Error("the TrainJob is gone")
	}
}

func TestReconcileFailures(t *testing.T) {
	trainJobs := schema.GroupResource{Group: "trainer.kubeflow.org", Resource: "trainjobs"}
	broken := errors.New("etcd is away")
	for name, tc := range map[string]struct {
		unruly, unprepared, unread, undeleted error
		want                                  error
		wantSteps                             []string
	}{
		"the rules cannot be read":      {unruly: broken, want: broken},
		"the TrainJob cannot be read":   {unread: broken, want: broken, wantSteps: []string{"read"}},
		"it is gone when it is read":    {unread: apierrors.NewNotFound(trainJobs, "job"), wantSteps: []string{"read"}},
		"what comes before goes wrong":  {unprepared: broken, want: broken, wantSteps: []string{"read", "before job"}},
		"it cannot be deleted":          {undeleted: broken, want: broken, wantSteps: []string{"read", "before job", "delete"}},
		"it is gone when it is deleted": {undeleted: apierrors.NewNotFound(trainJobs, "job"), wantSteps: []string{"read", "before job", "delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, complete().TTL("60").Obj())
			b.unruly, b.unprepared, b.unread, b.undeleted = tc.unruly, tc.unprepared, tc.unread, tc.undeleted
			result, err := b.reconcile()
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || result != (reconcile.Result{}) {
				t.Errorf("Reconcile = %v, %v; want %v", result, err, tc.want)
			}
			if diff := cmp.Diff(tc.wantSteps, b.steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			b.stays()
			if tc.want == nil {
				return
			}
			b.unruly, b.unprepared, b.unread, b.undeleted = nil, nil, nil, nil
			if _, err := b.reconcile(); err != nil || b.there() || b.removals() != 1 {
				t.Errorf("the next time: %v, there %v, %v removals", err, b.there(), b.removals())
			}
		})
	}
}

// The rules are asked for again of what is read live; when they cannot be then, nothing goes.
func TestReconcileAsksAgain(t *testing.T) {
	b := newBench(t, complete().Obj())
	b.rules = Rules{Max: limit(60, "LifecyclePolicy/m")}
	rules := b.Rules
	b.Rules = func(ctx context.Context, job *trainer.TrainJob) (Rules, error) {
		if b.asked == 1 {
			b.unruly = errors.New("etcd is away")
		}
		return rules(ctx, job)
	}
	if _, err := b.reconcile(); !errors.Is(err, b.unruly) || b.unruly == nil || b.asked != 2 || !b.there() {
		t.Errorf("error %v, asked %d times, there %v", err, b.asked, b.there())
	}
	b.stays()
}

// An event that cannot be written is no failure: the TrainJob is gone.
func TestReconcileRemovesWithoutItsEvent(t *testing.T) {
	b := newBench(t, complete().TTL("60").Obj())
	b.Client = interceptor.NewClient(b.store, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("the namespace is terminating")
	}})
	if _, err := b.reconcile(); err != nil || b.there() || b.removals() != 1 {
		t.Errorf("error %v, there %v, %v removals", err, b.there(), b.removals())
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	figures, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for by, times := range map[string]int{own: 1, "LifecyclePolicy/a": 2, "ClusterTrainingRuntime/torch": 3, "TrainingRuntime/torch": 1} {
		for range times {
			figures.removed(due(60, by), at(62))
		}
	}
	want := "# HELP signalbox_ttl_deletions_total Finished TrainJobs that were removed, by where the time they stay came from.\n# TYPE signalbox_ttl_deletions_total counter\n"
	for _, of := range []string{`annotation"} 1`, `policy"} 2`, `runtime"} 4`} {
		want += fmt.Sprintf("signalbox_ttl_deletions_total{source=\"%s\n", of)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "signalbox_ttl_deletions_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if histogram := family.Metric[0].Histogram; histogram != nil && (histogram.GetSampleSum() != 14 || histogram.GetSampleCount() != 7) {
			t.Errorf("lag of %d = %v s, want 14 of 7", histogram.GetSampleCount(), histogram.GetSampleSum())
		}
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("registered twice")
	}
}
