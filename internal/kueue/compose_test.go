package kueue

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatchop "gomodules.xyz/jsonpatch/v2"
)

// shown returns what Show makes of an example, as JSON decodes.
func shown(t *testing.T, asked []Object, pods Pods) []Object {
	t.Helper()
	got, source, err := Show(asked, pods)
	if err != nil || source == "" {
		t.Fatalf("Show: from %q, %v", source, err)
	}
	return decode[[]Object](t, encode(t, got))
}

// Where a pod may run is for the snapshot and the user to say, what it runs for Kueue's
// Workload, or the JobSet; and fields that these sources do not know come along.
func TestShowWholePods(t *testing.T) {
	e := load(t, "torch")
	e.Template = changed(t, e.Template, []string{
		"add " + sealedPod + `/affinity {"nodeAffinity":{}}`,
		"add " + sealedPod + `/future {"of":"the snapshot"}`,
		"add /replicatedJobs/0/template/spec/template/metadata/annotations " + `{"kueue.x-k8s.io/podset-preferred-topology":"rack"}`,
	})
	other := []string{
		`add /0/template/metadata/labels/other "1"`, `replace /0/template/spec/nodeSelector {"zone":"b"}`,
		`add /0/template/spec/affinity {"podAffinity":{}}`, `add /0/template/spec/priorityClassName "low"`,
	}
	admitted := changed(t, e.PodSets, append(other, `add /0/future "of the Workload"`, "add "+containers+`/0/future "of the container"`, "add /0/minCount 2"))
	asked := changed(t, e.PodSets, append(other, "replace /0/count 9"))
	want := func(changes ...string) []Object {
		return changed(t, e.PodSets, append([]string{
			`add /0/template/metadata/annotations {"kueue.x-k8s.io/podset-preferred-topology":"rack"}`,
			`add /0/template/spec/affinity {"nodeAffinity":{}}`, `add /0/template/spec/future {"of":"the snapshot"}`,
		}, changes...))
	}
	for name, tc := range map[string]struct {
		pods Pods
		want []Object
	}{
		"of the Workload": {
			pods: Pods{Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet, Workload: admitted},
			want: want(`add /0/future "of the Workload"`, "add "+containers+`/0/future "of the container"`, "add /0/minCount 2"),
		},
		"of the JobSet": {
			pods: Pods{Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet},
			want: want("add " + containers + `/0/env/2/value ""`),
		},
		"of a replicatedJob that the snapshot does not have": {
			pods: Pods{Drifted: true, TrainJob: e.TrainJob, Workload: admitted},
			want: admitted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, shown(t, asked, tc.pods)); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

// The topology that a pod set asks for is its own, or else what Kueue has found now.
func TestShowTopologyRequests(t *testing.T) {
	const request = "/0/topologyRequest"
	rack, block := `{"preferred":"rack","podIndexLabel":"index"}`, `{"required":"block"}`
	for name, tc := range map[string]struct {
		admitted, asked []string
		noWorkload      bool
		want            string
	}{
		"none":                            {want: "null"},
		"of the Workload":                 {admitted: []string{"add " + request + " " + rack}, want: rack},
		"of the Workload, and asked":      {admitted: []string{"add " + request + " " + rack}, asked: []string{"add " + request + " " + block}, want: rack},
		"asked":                           {asked: []string{"add " + request + " " + block}, want: block},
		"null in the Workload, and asked": {admitted: []string{"add " + request + " null"}, asked: []string{"add " + request + " " + block}, want: block},
		"asked, of the JobSet":            {asked: []string{"add " + request + " " + block}, noWorkload: true, want: block},
		"asked for another pod set":       {asked: []string{`replace /0/name "other"`, "add " + request + " " + block}, noWorkload: true, want: "null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := load(t, "torch")
			pods := Pods{Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet}
			if !tc.noWorkload {
				pods.Workload = changed(t, e.PodSets, tc.admitted)
			}
			got := shown(t, changed(t, e.PodSets, tc.asked), pods)
			if diff := cmp.Diff(decode[any](t, tc.want), got[0]["topologyRequest"]); diff != "" {
				t.Errorf("topologyRequest (-want +got):\n%s", diff)
			}
		})
	}
}

// Each pod set is composed of what is of its own name.
func TestShowSeveralPodSets(t *testing.T) {
	e := load(t, "torchtune")
	tolerations := `[{"key":"model","operator":"Exists"}]`
	e.TrainJob = changed(t, e.TrainJob, []string{"add /spec/runtimePatches [" + patchOf("example.com/user", "model-initializer", tolerations) + "]"})
	for name, pods := range map[string]Pods{
		FromWorkload: {Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet, Workload: e.PodSets},
		FromJobSet:   {Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet},
	} {
		asked := changed(t, e.PodSets, []string{"move /2 /0", "replace /0/count 7"})
		want := changed(t, e.PodSets, []string{"add /1/template/spec/tolerations " + tolerations})
		if diff := differ(t, want, shown(t, asked, pods)); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestShowCannotPatch(t *testing.T) {
	e := load(t, "torch")
	e.TrainJob = changed(t, e.TrainJob, []string{"add " + patches + "/- " + strings.Replace(patchOf("example.com/broken", "node", "[5]"), "tolerations", "containers", 1)})
	got, source, err := Show(e.PodSets, Pods{Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet, Workload: e.PodSets})
	if got != nil || source != "" || err == nil || !strings.HasPrefix(err.Error(), "runtimePatches of node: ") {
		t.Errorf("Show = %v, %q, %v", got, source, err)
	}
}

func TestPatch(t *testing.T) {
	e := load(t, "torch")
	if got := Patch(e.PodSets, load(t, "torch").PodSets); got != nil {
		t.Errorf("of the same: %v", got)
	}
	want := changed(t, e.PodSets, []string{"replace /0/count 9"})
	if diff := cmp.Diff([]jsonpatchop.Operation{{Operation: "replace", Path: "/spec/podSets", Value: want}}, Patch(e.PodSets, want)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestPodSets(t *testing.T) {
	e := load(t, "torch")
	for name, tc := range map[string]struct {
		workload string
		want     []Object
	}{
		"of a Workload":    {workload: `{"spec":{"podSets":` + encode(t, e.PodSets) + `}}`, want: e.PodSets},
		"none":             {workload: `{"spec":{"podSets":[]}}`, want: []Object{}},
		"null":             {workload: `{"spec":{"podSets":null}}`, want: []Object{}},
		"without a spec":   {workload: `{}`, want: []Object{}},
		"a spec of text":   {workload: `{"spec":"text"}`, want: []Object{}},
		"pod sets of text": {workload: `{"spec":{"podSets":["text",null,{"name":"a"}]}}`, want: []Object{nil, nil, {"name": "a"}}},
	} {
		if diff := cmp.Diff(tc.want, PodSets(decode[Object](t, tc.workload))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
