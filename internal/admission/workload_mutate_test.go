package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// The runtime as it was sealed, with image:1, and as it is now.
func liveTorch() *builder.RuntimeBuilder { return torch().Image("live") }

func sealedJob(t testing.TB) *builder.TrainJobBuilder {
	t.Helper()
	return builder.TrainJob("ns", "job").Created(now).Runtime("ClusterTrainingRuntime", "torch").Annotations(take(t, torch()).Pack().Seal(now))
}

// takenOver is a TrainJob that was there before, and what was filed of its runtime then.
func takenOver(t testing.TB) (*builder.TrainJobBuilder, *v1alpha1.TrainingRuntimeSnapshot) {
	t.Helper()
	job := builder.TrainJob("ns", "job").Created(now).Runtime("ClusterTrainingRuntime", "torch")
	return job, take(t, torch()).Object(job.Obj())
}

// Whom it does not concern, and where nothing has drifted, sees what it asked with, for as few
// reads as can be.
func TestWorkloadMutatorLeavesAlone(t *testing.T) {
	trainJob, filed, metadata, runtime := "TrainJob", "TrainingRuntimeSnapshot", "metadata of ClusterTrainingRuntime", "ClusterTrainingRuntime"
	for name, tc := range map[string]struct {
		job       *builder.TrainJobBuilder
		runtime   *builder.RuntimeBuilder
		change    func(*admission.Request, *view)
		wantReads []string
	}{
		"no dry run":             {job: sealedJob(t), runtime: liveTorch(), change: func(req *admission.Request, _ *view) { req.DryRun = ptr.To(false) }},
		"not told whether dry":   {job: sealedJob(t), runtime: liveTorch(), change: func(req *admission.Request, _ *view) { req.DryRun = nil }},
		"an update":              {job: sealedJob(t), runtime: liveTorch(), change: func(req *admission.Request, _ *view) { req.Operation = admissionv1.Update }},
		"another user":           {job: sealedJob(t), runtime: liveTorch(), change: func(req *admission.Request, _ *view) { req.UserInfo.Username = "jane" }},
		"a user that is like it": {job: sealedJob(t), runtime: liveTorch(), change: func(req *admission.Request, _ *view) { req.UserInfo.Username += "s" }},
		"nobody is Kueue":        {job: sealedJob(t), runtime: liveTorch(), change: func(_ *admission.Request, v *view) { v.KueueUser = "" }},
		"nobody is Kueue, and nobody asks": {job: sealedJob(t), runtime: liveTorch(), change: func(req *admission.Request, v *view) {
			v.KueueUser, req.UserInfo.Username = "", ""
		}},

		"no TrainJob":                    {runtime: liveTorch(), wantReads: []string{trainJob}},
		"a TrainJob of another name":     {job: builder.TrainJob("ns", "other").Runtime("ClusterTrainingRuntime", "torch"), runtime: liveTorch(), wantReads: []string{trainJob}},
		"a TrainJob of others":           {job: sealedJob(t).ManagedBy("example.com/other"), runtime: liveTorch(), wantReads: []string{trainJob}},
		"not sealed":                     {job: builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch").Suspended(), runtime: liveTorch(), wantReads: []string{trainJob, filed}},
		"sealed, and nothing drifted":    {job: sealedJob(t), runtime: torch(), wantReads: []string{trainJob, metadata, runtime}},
		"nothing drifted, 61 s ago":      {job: sealedJob(t), runtime: torch().Created(now.Add(-61 * time.Second)), wantReads: []string{trainJob, metadata, runtime}},
		"nothing drifted, of a finished": {job: sealedJob(t).Condition("Complete", metav1.ConditionTrue, "Done", now), runtime: torch(), wantReads: []string{trainJob, metadata, runtime}},
		"sealed, and the runtime gone":   {job: sealedJob(t), wantReads: []string{trainJob, metadata}},
		"sealed by something else":       {job: sealedJob(t).Annotation(v1alpha1.AnnotationRuntimeSnapshot, "*"), runtime: liveTorch(), wantReads: []string{trainJob, metadata, runtime}},
		"sealed with another revision":   {job: sealedJob(t).Annotation(v1alpha1.AnnotationRuntimeRevision, "0123456789abcdef"), runtime: liveTorch(), wantReads: []string{trainJob, metadata, runtime}},
		"sealed by a revision alone": {
			job:     builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch").Annotation(v1alpha1.AnnotationRuntimeRevision, "0123456789abcdef"),
			runtime: liveTorch(), wantReads: []string{trainJob, metadata, runtime},
		},
		"suspended, under a Trainer that goes by the runtime then": {
			job: sealedJob(t).Suspended(), runtime: liveTorch(), wantReads: []string{trainJob},
			change: func(_ *admission.Request, v *view) { v.KeepsSnapshots = func(context.Context) bool { return false } },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			if tc.job != nil {
				objects = append(objects, unstructuredOf(tc.job.Obj(), nil))
				// What they would show, were they asked.
				objects = append(objects, builder.Workload(tc.job.Obj()).PodSets(podSet("admitted")).Obj(), jobSetWith(builder.JobSet(tc.job.Obj()), "built"))
			}
			if tc.runtime != nil {
				objects = append(objects, tc.runtime.Obj())
			}
			v, req := newView(t, objects...), viewRequest(t, "v1beta2")
			if tc.change != nil {
				tc.change(&req, v)
			}
			if diff := cmp.Diff(judgedView{Image: "live"}, v.ask(t, req)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantReads, v.asked); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// Where the runtime has drifted, Kueue sees what the TrainJob lives on, as far as something
// tells.
func TestWorkloadMutatorShows(t *testing.T) {
	sealed := sealedJob(t)
	revision := take(t, torch()).Revision
	adopted, filed := takenOver(t)
	finished := sealedJob(t).Suspended().Condition("Failed", metav1.ConditionTrue, "DeadlineExceeded", now)
	namesake := builder.TrainJob("ns", "job").UID("uid-of-an-earlier-one").Obj()
	workload := func() *builder.WorkloadBuilder {
		return builder.Workload(sealed.Obj()).Created(now).PodSets(podSet("image:1"))
	}
	reserved := func() *builder.WorkloadBuilder {
		return workload().Condition("QuotaReserved", metav1.ConditionTrue, now)
	}
	jobSet := func() *builder.JobSetBuilder { return builder.JobSet(sealed.Obj()) }
	held := func(of string) *builder.JobSetBuilder {
		return jobSet().Suspended().Annotation(v1alpha1.AnnotationRuntimeRevision, of)
	}
	fromWorkload := judgedView{Image: "image:1", Source: "workload", Patched: true}
	fromJobSet := judgedView{Image: "built", Source: "jobset", Patched: true}
	refused := judgedView{Code: 403, Source: "refused", Text: fmt.Sprintf("TrainJob job runs on revision %s of ClusterTrainingRuntime/torch, of which there is no JobSet yet", revision)}
	suspended := func() *builder.TrainJobBuilder { return sealedJob(t).Suspended() }
	for name, tc := range map[string]struct {
		job *builder.TrainJobBuilder
		// there are the objects other than TrainJob and runtime.
		there []client.Object
		older bool
		want  judgedView
	}{
		"runs, with a Workload":                    {job: sealed, there: []client.Object{workload().Obj(), jobSetWith(jobSet(), "image:1")}, want: fromWorkload},
		"runs, the Workload of another image":      {job: sealed, there: []client.Object{workload().Obj(), jobSetWith(jobSet(), "built")}, want: fromJobSet},
		"runs, the one of another with quota":      {job: sealed, there: []client.Object{reserved().Obj(), jobSetWith(jobSet(), "built")}, want: fromWorkload},
		"runs, the one of no pods with quota":      {job: sealed, there: []client.Object{reserved().PodSets().Obj(), jobSetWith(jobSet(), "built")}, want: fromJobSet},
		"runs, without a Workload":                 {job: sealed, there: []client.Object{jobSetWith(jobSet(), "built")}, want: fromJobSet},
		"runs, the Workload is being deleted":      {job: sealed, there: []client.Object{workload().Deleting(now).Obj(), jobSetWith(jobSet(), "built")}, want: fromJobSet},
		"runs, the Workload is a namesake's":       {job: sealed, there: []client.Object{builder.Workload(namesake).PodSets(podSet("other")).Obj(), jobSetWith(jobSet(), "built")}, want: fromJobSet},
		"runs, the Workload is nobody's":           {job: sealed, there: []client.Object{workload().OwnedBy(metav1.OwnerReference{}).Obj(), jobSetWith(jobSet(), "built")}, want: fromJobSet},
		"runs, with two Workloads":                 {job: sealed, there: []client.Object{workload().Named("a").Created(now.Add(-time.Hour)).PodSets(podSet("old")).Obj(), workload().Named("b").Obj()}, want: fromWorkload},
		"runs, with two, the newer being deleted":  {job: sealed, there: []client.Object{workload().Named("a").Created(now.Add(-time.Hour)).Obj(), workload().Named("b").Deleting(now).PodSets(podSet("new")).Obj()}, want: fromWorkload},
		"runs, being deleted":                      {job: sealedJob(t).Deleting(now), there: []client.Object{workload().Obj(), jobSetWith(jobSet(), "image:1")}, want: fromWorkload},
		"runs, the JobSet a namesake's":            {job: sealed, there: []client.Object{jobSetWith(builder.JobSet(namesake), "built")}, want: refused},
		"runs, the JobSet gone":                    {job: sealed, there: []client.Object{workload().Obj()}, want: fromWorkload},
		"runs, JobSet and Workload gone":           {job: sealed, want: refused},
		"suspended, with a Workload":               {job: suspended(), there: []client.Object{workload().Obj(), jobSetWith(held(revision), "image:1")}, want: fromWorkload},
		"suspended, the Workload of another image": {job: suspended(), there: []client.Object{workload().Obj(), jobSetWith(held(revision), "built")}, want: fromJobSet},
		"suspended, the one of another with quota": {job: suspended(), there: []client.Object{reserved().Obj(), jobSetWith(held(revision), "built")}, want: fromWorkload},
		"suspended, without a Workload":            {job: suspended(), there: []client.Object{jobSetWith(held(revision), "built")}, want: fromJobSet},
		"suspended, the JobSet of another":         {job: suspended(), there: []client.Object{workload().Obj(), jobSetWith(held("0123456789abcdef"), "built")}, want: refused},
		"suspended, the JobSet of none":            {job: suspended(), there: []client.Object{workload().Obj(), jobSetWith(jobSet().Suspended(), "built")}, want: fromWorkload},
		"suspended, the JobSet of none, alone":     {job: suspended(), there: []client.Object{jobSetWith(jobSet().Suspended(), "built")}, want: refused},
		"suspended, the JobSet gone":               {job: suspended(), there: []client.Object{reserved().Obj()}, want: refused},
		"suspended, the JobSet gone, evicted":      {job: suspended(), there: []client.Object{reserved().Condition("Evicted", metav1.ConditionTrue, now).Obj()}, want: fromWorkload},
		"suspended, JobSet and Workload gone":      {job: suspended(), want: refused},
		"finished, the JobSet gone":                {job: finished, there: []client.Object{workload().Obj()}, want: fromWorkload},
		"taken over, with a Workload":              {job: adopted, there: []client.Object{filed, workload().Obj(), jobSetWith(jobSet(), "image:1")}, want: fromWorkload},
		"taken over, without a Workload":           {job: adopted, there: []client.Object{filed, jobSetWith(jobSet(), "built")}, want: fromJobSet},
		"taken over and suspended":                 {job: builder.TrainJob("ns", "job").Created(now).Runtime("ClusterTrainingRuntime", "torch").Suspended(), there: []client.Object{filed, jobSetWith(jobSet().Suspended(), "built")}, want: fromJobSet},
		"runs, under an older Trainer":             {job: sealed, older: true, there: []client.Object{workload().Obj(), jobSetWith(jobSet(), "image:1")}, want: fromWorkload},
		"finished, its Workload going":             {job: finished, there: []client.Object{workload().Deleting(now).Obj()}, want: fromWorkload},
		"finished, nothing there":                  {job: finished, want: judgedView{Image: "live"}},
		"resumed, its JobSet held back, older":     {job: sealed, older: true, there: []client.Object{reserved().Obj(), jobSetWith(held(revision), "built")}, want: fromWorkload},
		"resumed, the same without quota, older":   {job: sealed, older: true, there: []client.Object{workload().Obj(), jobSetWith(held(revision), "built")}, want: fromWorkload},
		"finished, under an older Trainer":         {job: finished, older: true, there: []client.Object{workload().Obj()}, want: fromWorkload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := append([]client.Object{unstructuredOf(tc.job.Obj(), nil), liveTorch().Obj()}, tc.there...)
			v := newView(t, objects...)
			v.KeepsSnapshots = func(context.Context) bool { return !tc.older }
			if diff := cmp.Diff(tc.want, v.ask(t, viewRequest(t, "v1beta2"))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// While Kueue's cache may hold the runtime as it was before, its view is not taken for right.
func TestWorkloadMutatorWaitsForKueuesCache(t *testing.T) {
	job := sealedJob(t)
	workload, jobSet := builder.Workload(job.Obj()).PodSets(podSet("image:1")).Obj(), jobSetWith(builder.JobSet(job.Obj()), "image:1")
	for name, tc := range map[string]struct {
		ago   time.Duration
		there []client.Object
		want  judgedView
	}{
		"written now":                    {there: []client.Object{workload, jobSet}, want: judgedView{Image: "image:1", Source: "workload", Patched: true}},
		"written 60 s ago":               {ago: 60 * time.Second, there: []client.Object{workload, jobSet}, want: judgedView{Image: "image:1", Source: "workload", Patched: true}},
		"written 61 s ago":               {ago: 61 * time.Second, there: []client.Object{workload, jobSet}, want: judgedView{Image: "live"}},
		"written a minute from now":      {ago: -time.Minute, there: []client.Object{workload, jobSet}, want: judgedView{Image: "image:1", Source: "workload", Patched: true}},
		"written now, without Workload":  {there: []client.Object{jobSet}, want: judgedView{Image: "live"}},
		"written now, without JobSet":    {there: []client.Object{workload}, want: judgedView{Image: "live"}},
		"written now, another Workload":  {there: []client.Object{builder.Workload(job.Obj()).PodSets(podSet("other")).Obj(), jobSet}, want: judgedView{Image: "live"}},
		"written now, and nothing tells": {want: judgedView{Image: "live"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := append([]client.Object{unstructuredOf(job.Obj(), nil), torch().Created(now.Add(-tc.ago)).Obj()}, tc.there...)
			if diff := cmp.Diff(tc.want, newView(t, objects...).ask(t, viewRequest(t, "v1beta2"))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// A runtime of the namespace is found there, and what was sealed of it.
func TestWorkloadMutatorOfANamespacedRuntime(t *testing.T) {
	runtime := func() *builder.RuntimeBuilder { return builder.TrainingRuntime("ns", "torch") }
	sealed, err := snapshot.Take(runtime().Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	job := builder.TrainJob("ns", "job").Runtime(trainer.TrainingRuntimeKind, "torch").Annotations(sealed.Pack().Seal(now))
	v := newView(t, unstructuredOf(job.Obj(), nil), runtime().Image("live").Obj(), torch().Obj(), builder.Workload(job.Obj()).PodSets(podSet("image:1")).Obj())
	if diff := cmp.Diff(judgedView{Image: "image:1", Source: "workload", Patched: true}, v.ask(t, viewRequest(t, "v1beta2"))); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// A TrainJob that runs on another cluster stays what it was admitted for.
func TestWorkloadMutatorOfMultiKueue(t *testing.T) {
	job := builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch").ManagedBy("kueue.x-k8s.io/multikueue")
	workload := func() *builder.WorkloadBuilder {
		return builder.Workload(job.Obj()).PodSets(podSet("image:1"))
	}
	own := judgedView{Image: "live"}
	for name, tc := range map[string]struct {
		there []client.Object
		fail  error
		want  judgedView
	}{
		"without a Workload":  {want: own},
		"waiting":             {there: []client.Object{workload().Obj()}, want: own},
		"with quota":          {there: []client.Object{workload().Condition("QuotaReserved", metav1.ConditionTrue, now).Obj()}, want: own},
		"admitted":            {there: []client.Object{workload().Condition("Admitted", metav1.ConditionTrue, now).Obj()}, want: judgedView{Image: "image:1", Source: "workload", Patched: true}},
		"admitted for that":   {there: []client.Object{workload().PodSets(podSet("live")).Condition("Admitted", metav1.ConditionTrue, now).Obj()}, want: own},
		"not any more":        {there: []client.Object{workload().Condition("Admitted", metav1.ConditionFalse, now).Obj()}, want: own},
		"that cannot be read": {fail: errors.New("etcd is away"), want: judgedView{Code: 500, Text: "list Workloads: etcd is away"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newView(t, append([]client.Object{unstructuredOf(job.Obj(), nil), liveTorch().Obj()}, tc.there...)...)
			if tc.fail != nil {
				v.fail = map[string]error{"v1beta2 WorkloadList": tc.fail}
			}
			if diff := cmp.Diff(tc.want, v.ask(t, viewRequest(t, "v1beta2"))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// How Kueue counts resources is told by each question for itself: nobody can have other TrainJobs
// taken for what they are not.
func TestWorkloadMutatorCountsAsKueueAsks(t *testing.T) {
	const (
		perNode = `{"requests":{"cpu":"1"}}`
		merged  = `{"limits":{"gpu":"2"},"requests":{"cpu":"1"}}`
	)
	// with has its container take resources.
	with := func(document, resources string) string {
		return strings.Replace(document, `"name":"node","resources":{}`, `"name":"node","resources":`+resources, 1)
	}
	object := func(object *unstructured.Unstructured, resources string) *unstructured.Unstructured {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		document := strings.Replace(string(raw), `"name":"node"}]`, `"name":"node","resources":{}}]`, 1)
		document = strings.Replace(document, `"name":"node","template":{`, `"name":"node","template":{"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},`, 1)
		out := &unstructured.Unstructured{}
		if err := out.UnmarshalJSON([]byte(with(document, resources))); err != nil {
			t.Fatal(err)
		}
		return out
	}
	taken, err := snapshot.Take(object(torch().Obj(), `{"limits":{"gpu":"2"}}`).Object)
	if err != nil {
		t.Fatal(err)
	}
	job := builder.TrainJob("ns", "job").Created(now).Runtime("ClusterTrainingRuntime", "torch").Annotations(taken.Pack().Seal(now))
	stored := unstructuredOf(job.Obj(), map[string]any{"resourcesPerNode": map[string]any{"requests": map[string]any{"cpu": "1"}}}, "spec", "trainer")
	v := newView(t, stored, object(torch().Obj(), `{}`), object(jobSetWith(builder.JobSet(job.Obj()), "image:1"), merged))
	for _, ask := range []struct{ with, want string }{
		{perNode, perNode},
		{`{"limits":{"gpu":"4"},"requests":{"cpu":"1"}}`, merged},
		{perNode, perNode},
	} {
		req := viewRequest(t, "v1beta2")
		req.Object.Raw = []byte(strings.Replace(string(req.Object.Raw), `"name":"node"}]`, `"name":"node","resources":`+ask.with+`}]`, 1))
		answer := v.Handle(t.Context(), req)
		if shown := apply(t, string(req.Object.Raw), answer.Patches); !strings.Contains(shown, `"resources":`+ask.want) {
			t.Errorf("asked with %s, shown %s, want %s", ask.with, shown, ask.want)
		}
	}
}
