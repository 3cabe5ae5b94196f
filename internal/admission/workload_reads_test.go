package admission

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/builder"
)

// allViews are the objects of a TrainJob that lives on what its runtime no longer is, or of one
// that was taken over, which is not sealed.
func allViews(t testing.TB, sealed bool) []client.Object {
	t.Helper()
	job, filed := takenOver(t)
	if sealed {
		job = sealedJob(t)
	}
	return []client.Object{
		unstructuredOf(job.Obj(), nil), filed, liveTorch().Obj(),
		jobSetWith(builder.JobSet(job.Obj()), "image:1"), builder.Workload(job.Obj()).PodSets(podSet("image:1")).Obj(),
	}
}

var shownWorkload = judgedView{Image: "image:1", Source: "workload", Patched: true}

// What decides the answer is read live each time, but for the content of the runtime.
func TestWorkloadMutatorReads(t *testing.T) {
	const trainJob, filed, metadata, runtime, jobSet, workloads = "TrainJob", "TrainingRuntimeSnapshot", "metadata of ClusterTrainingRuntime", "ClusterTrainingRuntime", "JobSet", "v1beta2 WorkloadList"
	for name, tc := range map[string]struct {
		sealed       bool
		first, again []string
	}{
		"sealed":     {sealed: true, first: []string{trainJob, metadata, runtime, jobSet, workloads}, again: []string{trainJob, metadata, jobSet, workloads}},
		"taken over": {first: []string{trainJob, filed, metadata, runtime, jobSet, workloads}, again: []string{trainJob, filed, metadata, jobSet, workloads}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newView(t, allViews(t, tc.sealed)...)
			for i, want := range [][]string{tc.first, tc.again, tc.again} {
				v.asked = nil
				if got := v.Handle(t.Context(), viewRequest(t, "v1beta2")); !got.Allowed || len(got.Patches) != 1 {
					t.Errorf("answer %d: %+v", i, got)
				}
				if diff := cmp.Diff(want, v.asked); diff != "" {
					t.Errorf("reads of answer %d (-want +got):\n%s", i, diff)
				}
			}
			if diff := cmp.Diff(map[string]float64{"workload": 3}, results(t, v.registry)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}

// Kueue's Workloads are read in the version in which Kueue asks.
func TestWorkloadMutatorAsksInTheVersionOfTheRequest(t *testing.T) {
	for version, want := range map[string]judgedView{
		"v1beta1": {Image: "of v1beta1", Source: "workload", Patched: true},
		"v1beta2": {Image: "of v1beta2", Source: "workload", Patched: true},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			job := sealedJob(t)
			v := newView(t, unstructuredOf(job.Obj(), nil), liveTorch().Obj(),
				builder.Workload(job.Obj()).Version("v1beta1").PodSets(podSet("of v1beta1")).Obj(),
				builder.Workload(job.Obj()).Version("v1beta2").PodSets(podSet("of v1beta2")).Obj())
			if diff := cmp.Diff(want, v.ask(t, viewRequest(t, version))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if got := v.asked[len(v.asked)-1]; got != version+" WorkloadList" {
				t.Errorf("last read %s", got)
			}
		})
	}
}

// Asked again with the answer, it answers the same.
func TestWorkloadMutatorAskedAgain(t *testing.T) {
	v, req := newView(t, allViews(t, true)...), viewRequest(t, "v1beta2")
	once := apply(t, string(req.Object.Raw), v.Handle(t.Context(), req).Patches)
	req.Object.Raw = []byte(once)
	again := v.Handle(t.Context(), req)
	if !again.Allowed || len(again.Patches) != 0 {
		t.Errorf("asked again: %+v", again)
	}
	if diff := cmp.Diff(map[string]float64{"workload": 1}, results(t, v.registry)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestWorkloadMutatorFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Any"}, SearchedVersions: []string{"v1"}}
	for name, tc := range map[string]struct {
		takenOver bool
		read      string
		err       error
		want      judgedView
	}{
		"the TrainJob cannot be read":             {read: "TrainJob", err: broken, want: judgedView{Code: http.StatusInternalServerError, Text: "read TrainJob: etcd is away"}},
		"what was filed cannot be read":           {takenOver: true, read: "TrainingRuntimeSnapshot", err: broken, want: judgedView{Code: http.StatusInternalServerError, Text: "read TrainingRuntimeSnapshot: etcd is away"}},
		"what was filed is not asked of a sealed": {read: "TrainingRuntimeSnapshot", err: broken, want: shownWorkload},
		"the runtime's metadata cannot be read":   {read: "metadata of ClusterTrainingRuntime", err: broken, want: judgedView{Code: http.StatusInternalServerError, Text: "read runtime: etcd is away"}},
		"the runtime cannot be read":              {read: "ClusterTrainingRuntime", err: broken, want: judgedView{Code: http.StatusInternalServerError, Text: "read runtime: etcd is away"}},
		"the JobSet cannot be read":               {read: "JobSet", err: broken, want: judgedView{Code: http.StatusInternalServerError, Text: "read JobSet: etcd is away"}},
		"the Workloads cannot be read":            {read: "v1beta2 WorkloadList", err: broken, want: judgedView{Code: http.StatusInternalServerError, Text: "list Workloads: etcd is away"}},
		"no TrainJobs are installed":              {read: "TrainJob", err: noMatch, want: judgedView{Image: "live"}},
		"no snapshots are installed":              {takenOver: true, read: "TrainingRuntimeSnapshot", err: noMatch, want: judgedView{Image: "live"}},
		"no JobSets are installed":                {read: "JobSet", err: noMatch, want: shownWorkload},
		"no Workloads are installed": {read: "v1beta2 WorkloadList", err: noMatch, want: judgedView{
			Code: http.StatusInternalServerError, Text: "list Workloads: " + noMatch.Error(),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newView(t, allViews(t, !tc.takenOver)...)
			v.fail = map[string]error{tc.read: tc.err}
			if diff := cmp.Diff(tc.want, v.ask(t, viewRequest(t, "v1beta2"))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be understood is an error, and none of Kueue's doing is called right for it.
func TestWorkloadMutatorCannotRead(t *testing.T) {
	job := sealedJob(t)
	patch := func(containers any) []any {
		return []any{map[string]any{"manager": "example.com/user", "trainingRuntimeSpec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"replicatedJobs": []any{map[string]any{"name": "node", "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}}}},
		}}}}}
	}
	for name, tc := range map[string]struct {
		raw        string
		value      any
		path       string
		wantCode   int32
		wantPrefix string
	}{
		"no JSON":                  {raw: "{", wantCode: http.StatusBadRequest, wantPrefix: "decode Workload: "},
		"no object":                {raw: "[]", wantCode: http.StatusBadRequest, wantPrefix: "decode Workload: "},
		"a TrainJob of another":    {value: "text", path: "suspend", wantCode: http.StatusInternalServerError, wantPrefix: "read TrainJob: "},
		"patches that do not work": {value: patch([]any{int64(5)}), path: "runtimePatches", wantCode: http.StatusInternalServerError, wantPrefix: "runtimePatches of node: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := allViews(t, true)
			if tc.path != "" {
				objects[0] = unstructuredOf(job.Obj(), tc.value, "spec", tc.path)
			}
			req := viewRequest(t, "v1beta2")
			if tc.raw != "" {
				req.Object.Raw = []byte(tc.raw)
			}
			v := newView(t, objects...)
			got := v.ask(t, req)
			if got.Code != tc.wantCode || !strings.HasPrefix(got.Text, tc.wantPrefix) || got.Source != "" {
				t.Errorf("answer %+v, want %d %q", got, tc.wantCode, tc.wantPrefix)
			}
		})
	}
}

// Tolerations that the user gives while the TrainJob waits reach Kueue.
func TestWorkloadMutatorShowsTheUsersTolerations(t *testing.T) {
	tolerations := []any{map[string]any{"key": "spot", "operator": "Exists"}}
	patch := map[string]any{"trainingRuntimeSpec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"replicatedJobs": []any{map[string]any{"name": "node", "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": tolerations}}}}}},
	}}}}
	objects := allViews(t, true)
	objects[0] = unstructuredOf(sealedJob(t).Created(now.Add(-time.Second)).Obj(), []any{patch}, "spec", "runtimePatches")
	v, req := newView(t, objects...), viewRequest(t, "v1beta2")
	got := specOf(t, apply(t, string(req.Object.Raw), v.Handle(t.Context(), req).Patches))
	want := podSet("image:1")
	want["template"].(map[string]any)["spec"].(map[string]any)["tolerations"] = tolerations
	if diff := cmp.Diff([]any{want}, got["podSets"]); diff != "" {
		t.Errorf("pod sets (-want +got):\n%s", diff)
	}
}
