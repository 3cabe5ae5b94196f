package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatchop "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const (
	allow = v1alpha1.AnnotationAllowDisruption

	clusterKind    = trainer.ClusterTrainingRuntimeKind
	namespacedKind = trainer.TrainingRuntimeKind

	secondClock = "must not be set in a runtime: it is a second clock, by which pods end without their TrainJob; use spec.activeDeadlineSeconds of the TrainJob"
	secondTTL   = "must not be set in a runtime: it deletes what its TrainJob still counts; set lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished on the runtime"
	goOn        = "; Trainer refuses every change of a TrainJob whose runtime is gone, also to suspend it: " +
		"delete these TrainJobs or let them finish first, or annotate the runtime with lifecycle.trainer.kubeflow.org/allow-disruption=true to delete it all the same"
	beforeThat = `metadata.annotations[lifecycle.trainer.kubeflow.org/allow-disruption]: Required value: must be "true" before an edit that breaks unfinished TrainJobs: `
)

// runtimeCache is a cache of TrainJobs that keeps the index which it is told to.
type runtimeCache struct {
	cache.Cache
	store   client.WithWatch
	objects []client.Object
	// lists counts what is asked for, failure is the answer if it is set.
	lists   int
	failure error
}

func (c *runtimeCache) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	c.store = fake.NewClientBuilder().WithScheme(scheme()).WithObjects(builder.Copies(c.objects)...).WithIndex(object, field, extract).Build()
	return nil
}

func (c *runtimeCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	if c.failure != nil {
		return c.failure
	}
	return c.store.List(ctx, list, options...)
}

// runtimeBench is a validator of runtimes on a fake API server that has these objects; the
// index knows of the same TrainJobs.
type runtimeBench struct {
	*RuntimeValidator
	cache *runtimeCache
	// reads are the names of what was read live.
	reads []string
	// unreadable is the answer to a live read, by kind, if there is one.
	unreadable map[string]error
}

func newRuntimeBench(t testing.TB, objects ...client.Object) *runtimeBench {
	t.Helper()
	b := &runtimeBench{cache: &runtimeCache{}}
	for _, object := range objects {
		if job, ok := object.(*trainer.TrainJob); ok {
			b.cache.objects = append(b.cache.objects, job.DeepCopy())
		}
	}
	live := interceptor.NewClient(stored(objects...), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			if _, job := object.(*trainer.TrainJob); job {
				kind = trainer.TrainJobKind
			}
			b.reads = append(b.reads, kind+" "+strings.TrimPrefix(key.String(), "/"))
			if err := b.unreadable[kind]; err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	index := &guard.Index{Cache: b.cache, Live: live, Clock: clock.RealClock{}}
	if err := index.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.RuntimeValidator = &RuntimeValidator{Index: index, Live: live, InUse: guard.Deny}
	return b
}

// runtimeRequest makes the request for a runtime; its kind and name are those of the object.
func runtimeRequest(t testing.TB, operation admissionv1.Operation, before, after *builder.RuntimeBuilder) admission.Request {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation}}
	for _, side := range []struct {
		runtime *builder.RuntimeBuilder
		raw     *runtime.RawExtension
	}{{before, &req.OldObject}, {after, &req.Object}} {
		if side.runtime == nil {
			continue
		}
		object := side.runtime.Obj()
		encoded, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		side.raw.Raw = encoded
		req.Kind = metav1.GroupVersionKind{Group: trainer.GroupVersion.Group, Version: trainer.GroupVersion.Version, Kind: object.GetKind()}
		req.Namespace, req.Name = object.GetNamespace(), object.GetName()
	}
	return req
}

// judged is an answer as the user sees it.
type judged struct {
	Code     int32
	Message  string
	Causes   []string
	Warnings []string
}

func judge(t testing.TB, got admission.Response) judged {
	t.Helper()
	j := judged{Warnings: got.Warnings}
	if len(got.Patches) != 0 {
		t.Errorf("patches %v", got.Patches)
	}
	if got.Allowed {
		return j
	}
	j.Code, j.Message = got.Result.Code, got.Result.Message
	if details := got.Result.Details; details != nil {
		if details.Group != trainer.GroupVersion.Group {
			t.Errorf("details %+v", details)
		}
		for _, cause := range details.Causes {
			j.Causes = append(j.Causes, cause.Field)
		}
	}
	return j
}

// mine is the runtime of a namespace that most tests are about.
func mine() *builder.RuntimeBuilder { return builder.TrainingRuntime("ns", "mine") }

// user is a TrainJob on that runtime.
func user(name string) *builder.TrainJobBuilder {
	return builder.TrainJob("ns", name).Runtime(namespacedKind, "mine")
}

func renamed(b *builder.RuntimeBuilder) *builder.RuntimeBuilder {
	return b.Container("name", "renamed")
}

const renamedText = `spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[node]: Forbidden: cannot be removed or renamed`

// deadlineOf gives the JobSet template of a runtime a deadline, which later releases know.
func deadlineOf(b *builder.RuntimeBuilder, seconds int64) *builder.RuntimeBuilder {
	return b.Set(seconds, "spec", "template", "spec", "activeDeadlineSeconds")
}

func TestRuntimeValidatorOfClocks(t *testing.T) {
	ttl := func(b *builder.RuntimeBuilder) *builder.RuntimeBuilder {
		return b.Set(int64(7), "spec", "template", "spec", "ttlSecondsAfterFinished")
	}
	const (
		deadlinePath = "spec.template.spec.activeDeadlineSeconds"
		ttlPath      = "spec.template.spec.ttlSecondsAfterFinished"
	)
	both := deadlinePath + ": Invalid value: 5: " + secondClock + ", " + ttlPath + ": Invalid value: 7: " + secondTTL
	for name, tc := range map[string]struct {
		before, after *builder.RuntimeBuilder
		want          judged
	}{
		"created well": {nil, mine(), judged{}},
		"created with a clock": {nil, deadlineOf(mine(), 5), judged{
			Code: 422, Message: `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: ` + deadlinePath + ": Invalid value: 5: " + secondClock, Causes: []string{deadlinePath},
		}},
		"created with two": {nil, ttl(deadlineOf(builder.ClusterTrainingRuntime("torch"), 5)), judged{
			Code: 422, Message: `ClusterTrainingRuntime.trainer.kubeflow.org "torch" is invalid: [` + both + "]", Causes: []string{deadlinePath, ttlPath},
		}},
		"created where Trainer does not look": {nil, deadlineOf(mine().Label("trainer.kubeflow.org/webhook-validation", "disabled"), 5), judged{
			Code: 422, Message: `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: ` + deadlinePath + ": Invalid value: 5: " + secondClock, Causes: []string{deadlinePath},
		}},
		"created with a disruption allowed": {nil, deadlineOf(mine().Annotation(allow, "true"), 5), judged{
			Code: 422, Message: `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: ` + deadlinePath + ": Invalid value: 5: " + secondClock, Causes: []string{deadlinePath},
		}},
		"edited well":                 {mine(), mine().Image("image:2"), judged{}},
		"a bad one edited otherwise":  {deadlineOf(mine(), 5), deadlineOf(mine().Image("image:2").Label("a", "b"), 5), judged{}},
		"a bad one mended":            {ttl(deadlineOf(mine(), 5)), deadlineOf(mine(), 5), judged{}},
		"a bad one that changes":      {deadlineOf(mine(), 5), deadlineOf(mine(), 6), judged{Code: 422, Message: `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: ` + deadlinePath + ": Invalid value: 6: " + secondClock, Causes: []string{deadlinePath}}},
		"a bad one that gets another": {deadlineOf(mine(), 5), ttl(deadlineOf(mine(), 5)), judged{Code: 422, Message: `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: ` + ttlPath + ": Invalid value: 7: " + secondTTL, Causes: []string{ttlPath}}},
		"edited with a disruption allowed before": {mine().Annotation(allow, "true"), deadlineOf(mine(), 5), judged{
			Code: 422, Message: `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: ` + deadlinePath + ": Invalid value: 5: " + secondClock, Causes: []string{deadlinePath},
		}},
		"edited while it is being deleted": {mine().Set("2026-03-01T12:00:00Z", "metadata", "deletionTimestamp"), deadlineOf(mine().Set("2026-03-01T12:00:00Z", "metadata", "deletionTimestamp"), 5), judged{}},
		"left without a spec":              {mine(), mine().Without("spec"), judged{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operation := admissionv1.Create
			if tc.before != nil {
				operation = admissionv1.Update
			}
			b := newRuntimeBench(t)
			if diff := cmp.Diff(tc.want, judge(t, b.Handle(t.Context(), runtimeRequest(t, operation, tc.before, tc.after)))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if len(b.reads) != 0 {
				t.Errorf("read %v", b.reads)
			}
		})
	}
	t.Run("created with a generated name", func(t *testing.T) {
		t.Parallel()
		req := runtimeRequest(t, admissionv1.Create, nil, deadlineOf(mine().Without("metadata", "name").Set("mine-", "metadata", "generateName"), 5))
		got := judge(t, newRuntimeBench(t).Handle(t.Context(), req))
		if want := `TrainingRuntime.trainer.kubeflow.org "mine-" is invalid: `; !strings.HasPrefix(got.Message, want) {
			t.Errorf("message %q, want it to begin with %q", got.Message, want)
		}
	})
}

// The mode decides about what breaks TrainJobs, not about clocks.
func TestRuntimeValidatorRefusesClocksInEveryMode(t *testing.T) {
	for _, mode := range []guard.Mode{guard.Deny, guard.Warn, guard.Allow} {
		b := newRuntimeBench(t, user("job").Obj())
		b.InUse = mode
		for operation, before := range map[admissionv1.Operation]*builder.RuntimeBuilder{admissionv1.Create: nil, admissionv1.Update: mine()} {
			if got := judge(t, b.Handle(t.Context(), runtimeRequest(t, operation, before, deadlineOf(mine(), 5)))); got.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s in mode %s: %+v", operation, mode, got)
			}
		}
	}
}

func TestRuntimeValidatorOfDeletions(t *testing.T) {
	finished := user("finished").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "AllJobsCompleted", time.Now()).Obj()
	failed := user("failed").Condition(trainer.ConditionFailed, metav1.ConditionTrue, "DeadlineExceeded", time.Now()).Obj()
	many := func(n int) (jobs []client.Object) {
		for i := range n {
			jobs = append(jobs, user(fmt.Sprintf("job-%02d", i)).Obj())
		}
		return jobs
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	ending := namespace.DeepCopy()
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: time.Now()}, []string{"kubernetes"}
	ten := "ns/job-00, ns/job-01, ns/job-02, ns/job-03, ns/job-04, ns/job-05, ns/job-06, ns/job-07, ns/job-08, ns/job-09"
	one := "TrainingRuntime ns/mine is in use by 1 unfinished TrainJob: ns/job" + goOn
	for name, tc := range map[string]struct {
		runtime *builder.RuntimeBuilder
		objects []client.Object
		mode    guard.Mode
		want    judged
	}{
		"that nobody uses":         {runtime: mine(), objects: []client.Object{namespace}},
		"with finished TrainJobs":  {runtime: mine(), objects: []client.Object{namespace, finished, failed}},
		"with a running one":       {runtime: mine(), objects: []client.Object{namespace, user("job").Obj(), finished}, want: judged{Code: 403, Message: one}},
		"with a suspended one":     {runtime: mine(), objects: []client.Object{namespace, user("job").Suspended().Obj()}, want: judged{Code: 403, Message: one}},
		"with one that is deleted": {runtime: mine(), objects: []client.Object{namespace, user("job").Deleting(time.Now()).Obj()}, want: judged{Code: 403, Message: one}},
		"with one elsewhere":       {runtime: mine(), objects: []client.Object{namespace, user("job").ManagedBy("kueue.x-k8s.io/multikueue").Obj()}, want: judged{Code: 403, Message: one}},
		"with two":                 {runtime: mine(), objects: []client.Object{namespace, user("b").Obj(), user("a").Obj()}, want: judged{Code: 403, Message: "TrainingRuntime ns/mine is in use by 2 unfinished TrainJobs: ns/a, ns/b" + goOn}},
		"with ten":                 {runtime: mine(), objects: append(many(10), namespace), want: judged{Code: 403, Message: "TrainingRuntime ns/mine is in use by 10 unfinished TrainJobs: " + ten + goOn}},
		"with eleven":              {runtime: mine(), objects: append(many(11), namespace), want: judged{Code: 403, Message: "TrainingRuntime ns/mine is in use by 11 unfinished TrainJobs: " + ten + ", and 1 more" + goOn}},
		"with 25":                  {runtime: mine(), objects: append(many(25), namespace), want: judged{Code: 403, Message: "TrainingRuntime ns/mine is in use by 25 unfinished TrainJobs: " + ten + ", and 15 more" + goOn}},
		"of the cluster": {
			runtime: builder.ClusterTrainingRuntime("torch"),
			objects: []client.Object{builder.TrainJob("b", "job").Runtime(clusterKind, "torch").Obj(), builder.TrainJob("a", "job").Runtime(clusterKind, "torch").Obj()},
			want:    judged{Code: 403, Message: "ClusterTrainingRuntime torch is in use by 2 unfinished TrainJobs: a/job, b/job" + goOn},
		},
		"with one that does not say its kind": {
			runtime: builder.ClusterTrainingRuntime("torch"),
			objects: []client.Object{bareUser("torch")},
			want:    judged{Code: 403, Message: "ClusterTrainingRuntime torch is in use by 1 unfinished TrainJob: ns/bare" + goOn},
		},
		"of the cluster, used by its namesake's":  {runtime: builder.ClusterTrainingRuntime("mine"), objects: []client.Object{user("job").Obj()}},
		"used in the cluster under the same name": {runtime: mine(), objects: []client.Object{namespace, builder.TrainJob("ns", "job").Runtime(clusterKind, "mine").Obj()}},
		"used in another namespace":               {runtime: mine(), objects: []client.Object{namespace, builder.TrainJob("other", "job").Runtime(namespacedKind, "mine").Obj()}},
		"with an annotation that says so":         {runtime: mine().Annotation(allow, "true"), objects: []client.Object{namespace, user("job").Obj()}},
		"with an annotation that does not":        {runtime: mine().Annotation(allow, "false"), objects: []client.Object{namespace, user("job").Obj()}, want: judged{Code: 403, Message: one}},
		"with an annotation in other letters":     {runtime: mine().Annotation(allow, "True"), objects: []client.Object{namespace, user("job").Obj()}, want: judged{Code: 403, Message: one}},
		"that is being deleted":                   {runtime: mine().Set("2026-03-01T12:00:00Z", "metadata", "deletionTimestamp"), objects: []client.Object{namespace, user("job").Obj()}},
		"in a namespace that ends":                {runtime: mine(), objects: []client.Object{ending, user("job").Obj()}},
		"in a namespace that is gone":             {runtime: mine(), objects: []client.Object{user("job").Obj()}},
		"with a clock":                            {runtime: deadlineOf(mine(), 5), objects: []client.Object{namespace}},
		"where it only warns":                     {runtime: mine(), objects: []client.Object{namespace, user("job").Obj()}, mode: guard.Warn, want: judged{Warnings: []string{one}}},
		"where it only warns, that nobody uses":   {runtime: mine(), objects: []client.Object{namespace}, mode: guard.Warn},
		"where it only warns, with an annotation": {runtime: mine().Annotation(allow, "true"), objects: []client.Object{namespace, user("job").Obj()}, mode: guard.Warn},
		"where it is allowed":                     {runtime: mine(), objects: []client.Object{namespace, user("job").Obj()}, mode: guard.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRuntimeBench(t, tc.objects...)
			if tc.mode != "" {
				b.InUse = tc.mode
			}
			req := runtimeRequest(t, admissionv1.Delete, tc.runtime, nil)
			for _, asked := range []string{"", "by collection"} {
				if asked != "" {
					// A request for a collection has no name.
					req.Name = ""
				}
				if diff := cmp.Diff(tc.want, judge(t, b.Handle(t.Context(), req))); diff != "" {
					t.Errorf("answer %s (-want +got):\n%s", asked, diff)
				}
			}
		})
	}
}

// bareUser refers to a runtime by its name alone; the API's defaults say what kind it is.
func bareUser(name string) *trainer.TrainJob {
	job := builder.TrainJob("ns", "bare").Obj()
	job.Spec.RuntimeRef = trainer.RuntimeRef{Name: name}
	return job
}

// The index is behind what is stored: it is believed only when the API server says the same.
func TestRuntimeValidatorReadsBeforeItRefuses(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	live := func(t *testing.T, jobs ...client.Object) *runtimeBench {
		b := newRuntimeBench(t, append(jobs, namespace)...)
		b.cache.objects = []client.Object{user("a").Obj(), user("b").Obj()}
		if err := b.Index.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return b
	}
	deletion := runtimeRequest(t, admissionv1.Delete, mine(), nil)
	for name, tc := range map[string]struct {
		jobs  []client.Object
		want  string
		reads []string
	}{
		"both are gone":    {nil, "", []string{"TrainJob ns/a", "TrainJob ns/b"}},
		"one is gone":      {[]client.Object{user("b").Obj()}, "TrainingRuntime ns/mine is in use by 1 unfinished TrainJob: ns/b" + goOn, []string{"TrainJob ns/a", "TrainJob ns/b", "Namespace ns"}},
		"one has finished": {[]client.Object{user("a").Condition(trainer.ConditionFailed, metav1.ConditionTrue, "Failed", time.Now()).Obj(), user("b").Obj()}, "TrainingRuntime ns/mine is in use by 1 unfinished TrainJob: ns/b" + goOn, []string{"TrainJob ns/a", "TrainJob ns/b", "Namespace ns"}},
		"one is another":   {[]client.Object{builder.TrainJob("ns", "a").Runtime(clusterKind, "mine").Obj()}, "", []string{"TrainJob ns/a", "TrainJob ns/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := live(t, tc.jobs...)
			if got := judge(t, b.Handle(t.Context(), deletion)); got.Message != tc.want {
				t.Errorf("answer %+v, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.reads, b.reads); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an edit, when both are gone", func(t *testing.T) {
		t.Parallel()
		if got := judge(t, live(t).Handle(t.Context(), runtimeRequest(t, admissionv1.Update, mine(), renamed(mine())))); got.Code != 0 || len(got.Warnings) != 0 {
			t.Errorf("answer %+v", got)
		}
	})
}

// Where it cannot be found out what uses a runtime, the request passes, with a warning.
func TestRuntimeValidatorFailsOpen(t *testing.T) {
	const said = "Signalbox could not find out which TrainJobs use this runtime: "
	deletion := func(t *testing.T) admission.Request { return runtimeRequest(t, admissionv1.Delete, mine(), nil) }
	edit := func(t *testing.T) admission.Request {
		return runtimeRequest(t, admissionv1.Update, mine(), renamed(mine()))
	}
	for name, tc := range map[string]struct {
		break_ func(*runtimeBench)
		ask    func(*testing.T) admission.Request
		want   judged
	}{
		"a deletion without the index": {
			func(b *runtimeBench) { b.cache.failure = errors.New("no cache") }, deletion,
			judged{Warnings: []string{said + "list TrainJobs of TrainingRuntime ns/mine: no cache"}},
		},
		"an edit without the index": {
			func(b *runtimeBench) { b.cache.failure = errors.New("no cache") }, edit,
			judged{Warnings: []string{said + "list TrainJobs of TrainingRuntime ns/mine: no cache"}},
		},
		"a deletion without live reads": {
			func(b *runtimeBench) { b.unreadable = map[string]error{"TrainJob": errors.New("no API server")} }, deletion,
			judged{Warnings: []string{said + "read TrainJob: no API server"}},
		},
		"an edit without live reads": {
			func(b *runtimeBench) { b.unreadable = map[string]error{"TrainJob": errors.New("no API server")} }, edit,
			judged{Warnings: []string{said + "read TrainJob: no API server"}},
		},
		"an edit that adds a clock, without the index": {
			func(b *runtimeBench) { b.cache.failure = errors.New("no cache") },
			func(t *testing.T) admission.Request {
				return runtimeRequest(t, admissionv1.Update, mine(), deadlineOf(renamed(mine()), 5))
			},
			judged{
				Code: 422, Message: `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: spec.template.spec.activeDeadlineSeconds: Invalid value: 5: ` + secondClock,
				Causes:   []string{"spec.template.spec.activeDeadlineSeconds"},
				Warnings: []string{said + "list TrainJobs of TrainingRuntime ns/mine: no cache"},
			},
		},
		// A namespace that cannot be read is not being deleted.
		"a deletion without the namespace": {
			func(b *runtimeBench) { b.unreadable = map[string]error{"Namespace": errors.New("no API server")} }, deletion,
			judged{Code: 403, Message: "TrainingRuntime ns/mine is in use by 1 unfinished TrainJob: ns/job" + goOn},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRuntimeBench(t, user("job").Obj(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
			tc.break_(b)
			if diff := cmp.Diff(tc.want, judge(t, b.Handle(t.Context(), tc.ask(t)))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("before TrainJobs are indexed", func(t *testing.T) {
		t.Parallel()
		b := newRuntimeBench(t, user("job").Obj())
		b.Index = &guard.Index{Cache: b.cache, Live: b.Live, Clock: clock.RealClock{}}
		for _, ask := range []func(*testing.T) admission.Request{deletion, edit} {
			want := "Signalbox could not find out which TrainJobs use this runtime: the TrainJobs are not indexed yet"
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // else it waits for them
			defer cancel()
			if got := judge(t, b.Handle(ctx, ask(t))); got.Code != 0 || len(got.Warnings) != 1 || got.Warnings[0] != want {
				t.Errorf("answer %+v", got)
			}
		}
		if b.cache.lists != 0 {
			t.Errorf("%d lists", b.cache.lists)
		}
	})
}

func TestRuntimeValidatorOfEditsInUse(t *testing.T) {
	const container = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[node]"
	const annotationPath = "metadata.annotations[lifecycle.trainer.kubeflow.org/allow-disruption]"
	inUse := "TrainingRuntime ns/mine is in use by 1 unfinished TrainJob: ns/job"
	invalid := `TrainingRuntime.trainer.kubeflow.org "mine" is invalid: [`
	jobs := []client.Object{user("job").Obj()}
	many := func(n int) (jobs []client.Object) {
		for i := range n {
			jobs = append(jobs, user(fmt.Sprintf("job-%02d", i)).Obj())
		}
		return jobs
	}
	initializer := func(mount string) *builder.RuntimeBuilder {
		return mine().Set([]any{map[string]any{"name": "dataset-initializer", "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "dataset-initializer", "volumeMounts": []any{map[string]any{"name": mount, "mountPath": "/workspace"}}}},
		}}}}}}, "spec", "template", "spec", "replicatedJobs")
	}
	fetching := user("fetching").Obj()
	fetching.Spec.Initializer = &trainer.Initializer{Dataset: &trainer.Fetched{}}
	const mount = "spec.template.spec.replicatedJobs[dataset-initializer].template.spec.template.spec.containers[dataset-initializer].volumeMounts[initializer]"
	refused := judged{Code: 422, Message: invalid + renamedText + ", " + beforeThat + inUse + "]", Causes: []string{container, annotationPath}}
	for name, tc := range map[string]struct {
		before, after *builder.RuntimeBuilder
		jobs          []client.Object
		mode          guard.Mode
		want          judged
	}{
		"harmless": {before: mine(), after: mine().Image("image:2").Container("env", []any{map[string]any{"name": "A"}}).Set(int64(4), "spec", "mlPolicy", "numNodes"), jobs: jobs},
		"breaking": {before: mine(), after: renamed(mine()), jobs: jobs, want: refused},
		"breaking and a clock": {before: mine(), after: deadlineOf(renamed(mine()), 5), jobs: jobs, want: judged{
			Code: 422, Causes: []string{"spec.template.spec.activeDeadlineSeconds", container, annotationPath},
			Message: invalid + "spec.template.spec.activeDeadlineSeconds: Invalid value: 5: " + secondClock + ", " + renamedText + ", " + beforeThat + inUse + "]",
		}},
		"breaking, that nobody uses":        {before: mine(), after: renamed(mine())},
		"breaking, with a finished one":     {before: mine(), after: renamed(mine()), jobs: []client.Object{user("job").Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", time.Now()).Obj()}},
		"breaking, with a namesake in use":  {before: builder.ClusterTrainingRuntime("mine"), after: renamed(builder.ClusterTrainingRuntime("mine")), jobs: jobs},
		"breaking, allowed before":          {before: mine().Annotation(allow, "true"), after: renamed(mine()), jobs: jobs},
		"breaking, allowed before and kept": {before: mine().Annotation(allow, "true"), after: renamed(mine().Annotation(allow, "true")), jobs: jobs},
		"breaking, allowed in the same":     {before: mine(), after: renamed(mine().Annotation(allow, "true")), jobs: jobs, want: refused},
		"breaking, allowed wrongly":         {before: mine().Annotation(allow, "yes"), after: renamed(mine()), jobs: jobs, want: refused},
		"breaking, while it is deleted":     {before: mine().Set("2026-03-01T12:00:00Z", "metadata", "deletionTimestamp"), after: renamed(mine()), jobs: jobs},
		"breaking, where it only warns":     {before: mine(), after: renamed(mine()), jobs: jobs, mode: guard.Warn, want: judged{Warnings: []string{renamedText, beforeThat + inUse}}},
		"breaking, where it is allowed":     {before: mine(), after: renamed(mine()), jobs: jobs, mode: guard.Allow},
		"breaking, with eleven": {before: mine(), after: renamed(mine()), jobs: many(11), want: judged{
			Code: 422, Causes: []string{container, annotationPath},
			Message: invalid + renamedText + ", " + beforeThat + "TrainingRuntime ns/mine is in use by 11 unfinished TrainJobs: " +
				"ns/job-00, ns/job-01, ns/job-02, ns/job-03, ns/job-04, ns/job-05, ns/job-06, ns/job-07, ns/job-08, ns/job-09, and 1 more]",
		}},
		"a mount that nobody needs": {before: initializer("initializer"), after: initializer("other"), jobs: jobs},
		"a mount that one needs": {before: initializer("initializer"), after: initializer("other"), jobs: []client.Object{fetching, user("job").Obj()}, want: judged{
			Code: 422, Causes: []string{mount, annotationPath},
			Message: invalid + mount + ": Forbidden: cannot be removed, " + beforeThat + "TrainingRuntime ns/mine is in use by 2 unfinished TrainJobs: ns/fetching, ns/job]",
		}},
		"a mount that the last of many needs": {before: initializer("initializer"), after: initializer("other"), jobs: append(many(11), func() client.Object {
			job := fetching.DeepCopy()
			job.Name = "z"
			return job
		}()), want: judged{
			Code: 422, Causes: []string{mount, annotationPath},
			Message: invalid + mount + ": Forbidden: cannot be removed, " + beforeThat + "TrainingRuntime ns/mine is in use by 12 unfinished TrainJobs: " +
				"ns/job-00, ns/job-01, ns/job-02, ns/job-03, ns/job-04, ns/job-05, ns/job-06, ns/job-07, ns/job-08, ns/job-09, and 2 more]",
		}},
		"the spec goes": {before: mine(), after: mine().Without("spec"), jobs: jobs, want: judged{
			Code: 422, Causes: []string{"spec.template.spec.replicatedJobs[node]", annotationPath},
			Message: invalid + "spec.template.spec.replicatedJobs[node]: Forbidden: cannot be removed or renamed, " + beforeThat + inUse + "]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRuntimeBench(t, tc.jobs...)
			if tc.mode != "" {
				b.InUse = tc.mode
			}
			if diff := cmp.Diff(tc.want, judge(t, b.Handle(t.Context(), runtimeRequest(t, admissionv1.Update, tc.before, tc.after)))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// Harmless edits cost no look at TrainJobs, nor does anything where all is allowed.
func TestRuntimeValidatorLooksOnlyWhereItMatters(t *testing.T) {
	for name, tc := range map[string]struct {
		operation     admissionv1.Operation
		before, after *builder.RuntimeBuilder
		mode          guard.Mode
		lists         int
	}{
		"a creation":                           {admissionv1.Create, nil, mine(), guard.Deny, 0},
		"a harmless edit":                      {admissionv1.Update, mine(), mine().Image("image:2"), guard.Deny, 0},
		"a breaking edit":                      {admissionv1.Update, mine(), renamed(mine()), guard.Deny, 1},
		"a breaking edit that is allowed":      {admissionv1.Update, mine().Annotation(allow, "true"), renamed(mine()), guard.Deny, 0},
		"a breaking edit where all is allowed": {admissionv1.Update, mine(), renamed(mine()), guard.Allow, 0},
		"a deletion":                           {admissionv1.Delete, mine(), nil, guard.Deny, 1},
		"a deletion that is allowed":           {admissionv1.Delete, mine().Annotation(allow, "true"), nil, guard.Deny, 0},
		"a deletion where all is allowed":      {admissionv1.Delete, mine(), nil, guard.Allow, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRuntimeBench(t, user("job").Obj())
			b.InUse = tc.mode
			_ = b.Handle(t.Context(), runtimeRequest(t, tc.operation, tc.before, tc.after))
			if b.cache.lists != tc.lists || (tc.lists == 0 && len(b.reads) != 0) {
				t.Errorf("%d lists and reads of %v, want %d lists", b.cache.lists, b.reads, tc.lists)
			}
		})
	}
}

func TestRuntimeValidatorRefusesWhatItCannotRead(t *testing.T) {
	good := `{"metadata":{"name":"a"},"spec":{}}`
	for name, tc := range map[string]struct {
		operation     admissionv1.Operation
		before, after string
	}{
		"created as no JSON":     {admissionv1.Create, "", `{`},
		"created as nothing":     {admissionv1.Create, "", ``},
		"created as a list":      {admissionv1.Create, "", `[]`},
		"created with odd names": {admissionv1.Create, "", `{"metadata":{"name":5}}`},
		"edited to no JSON":      {admissionv1.Update, good, `{`},
		"edited from no JSON":    {admissionv1.Update, `{`, good},
		"deleted as no JSON":     {admissionv1.Delete, `{`, ``},
		"deleted as nothing":     {admissionv1.Delete, ``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(tc.before, tc.after)
			req.Operation = tc.operation
			got := newRuntimeBench(t).Handle(t.Context(), req)
			if got.Allowed || got.Result.Code != http.StatusBadRequest || !strings.HasPrefix(got.Result.Message, "decode runtime: ") {
				t.Errorf("answer %+v, want 400", got.Result)
			}
		})
	}
}

// The annotation that lets one edit through goes with that edit, and with no other.
func TestRuntimeMutatorSpendsTheAnnotation(t *testing.T) {
	const path = "/metadata/annotations/lifecycle.trainer.kubeflow.org~1allow-disruption"
	allowed := func() *builder.RuntimeBuilder { return mine().Annotation(allow, "true") }
	mounts := func(b *builder.RuntimeBuilder, name string) *builder.RuntimeBuilder {
		return b.Set([]any{map[string]any{"name": "model-initializer", "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "model-initializer", "volumeMounts": []any{map[string]any{"name": name}}}},
		}}}}}}, "spec", "template", "spec", "replicatedJobs")
	}
	for name, tc := range map[string]struct {
		before, after *builder.RuntimeBuilder
		spent         bool
	}{
		"created with it":                 {nil, allowed(), false},
		"set":                             {mine(), allowed(), false},
		"set with a breaking edit":        {mine(), renamed(allowed()), false},
		"left":                            {allowed(), allowed(), false},
		"left with a harmless edit":       {allowed(), allowed().Image("image:2"), false},
		"left with a breaking edit":       {allowed(), renamed(allowed()), true},
		"changed with a breaking edit":    {allowed(), renamed(mine().Annotation(allow, "later")), true},
		"removed with a breaking edit":    {allowed(), renamed(mine()), false},
		"removed, with others kept":       {allowed(), renamed(mine().Annotation("a", "b")), false},
		"not true, with a breaking edit":  {mine().Annotation(allow, "yes"), renamed(mine().Annotation(allow, "yes")), false},
		"set true with a breaking edit":   {mine().Annotation(allow, "yes"), renamed(allowed()), false},
		"with a mount that may be needed": {mounts(allowed(), "initializer"), mounts(allowed(), "other"), true},
		"with a mount that never is":      {mounts(allowed(), "first"), mounts(allowed(), "second"), false},
		"with others that are kept":       {allowed().Annotation("a", "b"), renamed(allowed().Annotation("a", "b")), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operation := admissionv1.Create
			if tc.before != nil {
				operation = admissionv1.Update
			}
			req := runtimeRequest(t, operation, tc.before, tc.after)
			got := (&RuntimeMutator{}).Handle(t.Context(), req)
			if !got.Allowed {
				t.Fatalf("answer %+v", got)
			}
			var own []jsonpatchop.Operation
			for _, operation := range got.Patches {
				if operation.Path == path {
					own = append(own, operation)
				}
			}
			var want []jsonpatchop.Operation
			if tc.spent {
				want = []jsonpatchop.Operation{jsonpatchop.NewOperation("remove", path, nil)}
			}
			if diff := cmp.Diff(want, own); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			// It applies, and when the webhook is invoked again there is nothing left to do.
			once := apply(t, string(req.Object.Raw), got.Patches)
			have := annotations(t, once)
			if _, kept := have[allow]; kept == tc.spent && tc.after.Obj().GetAnnotations()[allow] != "" {
				t.Errorf("annotations %v", have)
			}
			for key, value := range tc.after.Obj().GetAnnotations() {
				if key != allow && have[key] != value {
					t.Errorf("annotations %v, want %s=%s", have, key, value)
				}
			}
			req.Object.Raw = []byte(once)
			if second := (&RuntimeMutator{}).Handle(t.Context(), req); !second.Allowed || len(second.Patches) != 0 {
				t.Errorf("a second invocation: %v", second.Patches)
			}
		})
	}
	t.Run("what cannot be read", func(t *testing.T) {
		t.Parallel()
		good := `{"metadata":{"name":"a"},"spec":{"template":{}}}`
		for _, sides := range [][2]string{{`{`, good}, {good, `{"metadata":{"annotations":5},"spec":{"template":{}}}`}} {
			if got := (&RuntimeMutator{}).Handle(t.Context(), request(sides[0], sides[1])); got.Allowed || got.Result.Code != http.StatusBadRequest {
				t.Errorf("%v: %+v, want 400", sides, got.Result)
			}
		}
	})
}
