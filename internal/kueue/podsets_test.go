package kueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Paths within the pod sets, the JobSet and the TrainJob of the example torch.
const (
	containers     = "/0/template/spec/containers"
	initContainers = "/0/template/spec/initContainers"
	built          = "/spec/replicatedJobs/0/template/spec"
	builtPod       = built + "/template/spec"
	sealedPod      = "/replicatedJobs/0/template/spec/template/spec"
	patches        = "/spec/runtimePatches"
)

// patchOf is a runtimePatches entry of a manager with tolerations for a replicatedJob.
func patchOf(manager, job, tolerations string) string {
	return `{"manager":"` + manager + `","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"` + job +
		`","template":{"spec":{"template":{"spec":{"tolerations":` + tolerations + `}}}}}]}}}}`
}

// asks is one question of Kueue about an example, and the answer: changes of what Kueue
// computes of it where nothing has drifted.
type asks struct {
	// of is the example; torch without one.
	of string
	// asked, admitted, jobSet, template and trainJob are changes of the parts of the example.
	asked, admitted, jobSet, template, trainJob []string
	noWorkload, noJobSet, reserved              bool
	want                                        []string
	wantSource                                  string
}

// check asks, and asks again with the answer: that is the same, and what was given is as it
// was before.
func (a asks) check(t *testing.T) {
	t.Helper()
	if a.of == "" {
		a.of = "torch"
	}
	e := load(t, a.of)
	pods := Pods{Drifted: true, Template: changed(t, e.Template, a.template), TrainJob: changed(t, e.TrainJob, a.trainJob), HasQuota: a.reserved}
	if !a.noWorkload {
		pods.Workload = changed(t, e.PodSets, a.admitted)
	}
	if !a.noJobSet {
		pods.JobSet = changed(t, e.JobSet, a.jobSet)
	}
	asked := changed(t, e.PodSets, a.asked)
	before := encode(t, []any{asked, pods})

	got, source, err := Show(asked, pods)
	if err != nil {
		t.Fatal(err)
	}
	if source != a.wantSource {
		t.Errorf("from %q, want %q", source, a.wantSource)
	}
	if source == "" {
		if got != nil {
			t.Errorf("from nothing: %s", encode(t, got))
		}
		return
	}
	if diff := differ(t, changed(t, e.PodSets, a.want), got); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	again, source, err := Show(decode[[]Object](t, encode(t, got)), pods)
	if err != nil || source != a.wantSource {
		t.Fatalf("asked again: from %q, %v", source, err)
	}
	if diff := cmp.Diff(encode(t, got), encode(t, again)); diff != "" {
		t.Errorf("asked again (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(before, encode(t, []any{asked, pods})); diff != "" {
		t.Errorf("what was given (-before +after):\n%s", diff)
	}
}

// Whatever becomes of the runtime, Kueue sees the pod sets of its Workload.
func TestShowOfARuntimeThatDrifted(t *testing.T) {
	for name, asked := range map[string][]string{
		"nothing":                    nil,
		"its image":                  {"replace " + containers + `/0/image "torch:2"`},
		"a value in its env":         {"replace " + containers + `/0/env/0/value "trace"`},
		"its env, by one more":       {"add " + containers + `/0/env/- {"name":"MORE","value":"1"}`},
		"its env, by one less":       {"remove " + containers + "/0/env/0"},
		"its env, without any":       {"remove " + containers + "/0/env"},
		"its args":                   {"replace " + containers + `/0/args ["--epochs","9"]`},
		"its command":                {"remove " + containers + "/0/command"},
		"its resources":              {"replace " + containers + `/0/resources {"limits":{"cpu":"8"}}`},
		"its count":                  {"replace /0/count 9"},
		"a sidecar more":             {"add " + containers + `/- {"name":"sidecar","image":"sidecar:1"}`},
		"a sidecar less":             {"remove " + containers + "/1"},
		"its containers, renamed":    {"replace " + containers + `/0/name "other"`},
		"its containers, all gone":   {"remove " + containers},
		"an initContainer more":      {"add " + initContainers + `/0 {"name":"first","image":"busybox:2"}`},
		"an initContainer less":      {"remove " + initContainers + "/1"},
		"its initContainers, gone":   {"remove " + initContainers},
		"its sidecar, which ends":    {"remove " + initContainers + "/1/restartPolicy"},
		"its tolerations":            {`replace /0/template/spec/tolerations [{"key":"drifted"}]`},
		"its tolerations, gone":      {"remove /0/template/spec/tolerations"},
		"its name":                   {`replace /0/name "worker"`},
		"a pod set more":             {`add /- {"name":"eval","count":1,"template":{"spec":{"containers":[{"name":"eval","image":"eval:1"}]}}}`},
		"a pod set before it":        {`add /0 {"name":"eval","count":1,"template":{"spec":{"containers":[{"name":"eval","image":"eval:1"}]}}}`},
		"its pod sets, gone":         {"remove /0"},
		"its pod template, gone":     {"remove /0/template"},
		"a least number of its pods": {"add /0/minCount 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asks{asked: asked, wantSource: FromWorkload}.check(t)
			asks{asked: asked, wantSource: FromWorkload, noJobSet: true}.check(t)
		})
	}
	t.Run("one of several, gone", func(t *testing.T) {
		t.Parallel()
		asks{of: "torchtune", asked: []string{"remove /1"}, wantSource: FromWorkload}.check(t)
	})
	t.Run("several, in another order", func(t *testing.T) {
		t.Parallel()
		asks{of: "torchtune", asked: []string{"move /2 /0"}, wantSource: FromWorkload}.check(t)
	})
}

// Tolerations are those that pods will have, which users may change while a TrainJob waits.
func TestShowTolerations(t *testing.T) {
	drifted := []string{`replace /0/template/spec/tolerations [{"key":"drifted"}]`}
	tolerate := func(tolerations string) []string {
		return []string{"replace /0/template/spec/tolerations " + tolerations}
	}
	const sealed = `[{"key":"gpu","operator":"Exists"}]`
	own := `[{"key":"spot","operator":"Exists"}]`
	for name, tc := range map[string]struct {
		trainJob, template, want []string
	}{
		"the user's, over those of the snapshot":    {},
		"those of the snapshot, without the user's": {trainJob: []string{"remove " + patches}, want: tolerate(sealed)},
		"those of the snapshot, without a TrainJob": {trainJob: []string{"remove /spec"}, want: tolerate(sealed)},
		"none, of neither":                          {trainJob: []string{"remove " + patches}, template: []string{"remove " + sealedPod + "/tolerations"}, want: tolerate("[]")},
		"the user's alone":                          {template: []string{"remove " + sealedPod + "/tolerations"}},
		"the last of the user's":                    {trainJob: []string{"add " + patches + "/- " + patchOf("example.com/later", "node", own)}, want: tolerate(own)},
		"the last that has any":                     {trainJob: []string{"add " + patches + `/- {"manager":"example.com/later","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node","template":{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}}]}}}}`}},
		"not Kueue's":                               {trainJob: []string{"add " + patches + "/- " + patchOf(PatchManager, "node", own)}},
		"not Kueue's, before the user's":            {trainJob: []string{"add " + patches + "/0 " + patchOf(PatchManager, "node", own)}},
		"not Kueue's, without the user's":           {trainJob: []string{"replace " + patches + "/0 " + patchOf(PatchManager, "node", own)}, want: tolerate(sealed)},
		"not of another replicatedJob":              {trainJob: []string{"add " + patches + "/- " + patchOf("example.com/later", "elsewhere", own)}},
		"not of an empty patch":                     {trainJob: []string{"add " + patches + "/- {}", "add " + patches + `/- {"trainingRuntimeSpec":null}`, "add " + patches + "/- null"}},
		"emptied by the user's":                     {trainJob: []string{"add " + patches + "/- " + patchOf("example.com/later", "node", "[]")}, want: tolerate("[]")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			common := asks{asked: drifted, trainJob: tc.trainJob, template: tc.template, want: tc.want}
			withWorkload := common
			withWorkload.wantSource = FromWorkload
			// Those that Kueue knew before count as little as those that it has found now.
			withWorkload.admitted = tolerate(`[{"key":"before"}]`)
			withWorkload.check(t)
			// Of the JobSet's, that Kueue added some to the pods does not matter.
			withJobSet := common
			withJobSet.wantSource, withJobSet.noWorkload = FromJobSet, true
			withJobSet.jobSet = []string{"replace " + builtPod + `/tolerations [{"key":"flavor"}]`}
			withJobSet.check(t)
		})
	}
}

// Where the Workload is of other pods than the JobSet has, Kueue sees those of the JobSet; but
// where there is quota for it, those that have it, as long as they are enough.
func TestShowWhereTheWorkloadDisagrees(t *testing.T) {
	drifted := []string{"replace " + containers + `/0/image "torch:3"`}
	requests, limits := containers+"/0/resources/requests", containers+"/0/resources/limits"
	for name, tc := range map[string]struct {
		admitted []string
		// enough: the pods of the JobSet take no more than is admitted.
		enough bool
	}{
		"fewer pods":                     {admitted: []string{"replace /0/count 3"}},
		"more pods":                      {admitted: []string{"replace /0/count 5"}, enough: true},
		"no number of pods":              {admitted: []string{"remove /0/count"}},
		"another image":                  {admitted: []string{"replace " + containers + `/0/image "torch:2"`}, enough: true},
		"another image of a sidecar":     {admitted: []string{"replace " + initContainers + `/1/image "proxy:2"`}, enough: true},
		"less of a resource":             {admitted: []string{"replace " + requests + `/cpu "1499m"`}},
		"more of a resource":             {admitted: []string{"replace " + requests + `/memory "4097Mi"`}, enough: true},
		"one resource less":              {admitted: []string{"remove " + limits}},
		"one resource more":              {admitted: []string{"add " + limits + `/cpu "2"`}, enough: true},
		"no resources":                   {admitted: []string{"remove " + containers + "/0/resources"}},
		"requests in place of limits":    {admitted: []string{"remove " + limits, "add " + requests + "/nvidia.com~1gpu 2"}, enough: true},
		"limits in place of requests":    {admitted: []string{"remove " + requests, "replace " + limits + ` {"nvidia.com/gpu":2,"cpu":"1500m","memory":"4Gi"}`}, enough: true},
		"limits without its requests":    {admitted: []string{"remove " + requests}},
		"higher limits, lower requests":  {admitted: []string{"replace " + requests + "/cpu 1", "add " + limits + "/cpu 8"}},
		"claims":                         {admitted: []string{"add " + containers + `/0/resources/claims [{"name":"gpu"}]`}, enough: true},
		"resources that are none":        {admitted: []string{"replace " + requests + `/cpu "much"`, "remove " + limits}},
		"a container less":               {admitted: []string{"remove " + containers + "/1"}},
		"a container more":               {admitted: []string{"add " + containers + `/- {"name":"sidecar","image":"sidecar:1"}`}, enough: true},
		"a container of another name":    {admitted: []string{"replace " + containers + `/1/name "reporter"`}},
		"an initContainer less":          {admitted: []string{"remove " + initContainers + "/1"}},
		"an initContainer more":          {admitted: []string{"add " + initContainers + `/- {"name":"late","image":"busybox:1"}`}, enough: true},
		"an initContainer of no sidecar": {admitted: []string{"remove " + initContainers + "/1/restartPolicy"}},
		"a sidecar that takes nothing":   {admitted: []string{"add " + initContainers + `/0/restartPolicy "Always"`}, enough: true},
		"a container as initContainer":   {admitted: []string{"move " + containers + "/1 " + initContainers + "/-"}},
		"a pod set of another name":      {admitted: []string{`replace /0/name "worker"`}},
		"a pod set more":                 {admitted: []string{`add /- {"name":"eval","count":1,"template":{"spec":{"containers":[{"name":"eval","image":"eval:1"}]}}}`}, enough: true},
		"a pod set before it":            {admitted: []string{`add /0 {"name":"eval","count":1,"template":{"spec":{"containers":[{"name":"eval","image":"eval:1"}]}}}`}, enough: true},
		"no pod set":                     {admitted: []string{"remove /0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := asks{asked: drifted, admitted: tc.admitted, wantSource: FromJobSet}
			waits.check(t)
			reserved := waits
			reserved.reserved = true
			if tc.enough {
				reserved.want, reserved.wantSource = tc.admitted, FromWorkload
			}
			reserved.check(t)
			// Without a JobSet, there is nothing to compare it with.
			alone := asks{asked: drifted, admitted: tc.admitted, noJobSet: true, want: tc.admitted, wantSource: FromWorkload}
			if name != "resources that are none" {
				alone.check(t)
			}
		})
	}
}

// A Workload of as many pods, images and resources is what Kueue computed of the same runtime,
// whatever else may differ from the JobSet, and also while it waits for quota.
func TestShowWhereTheWorkloadAgrees(t *testing.T) {
	for name, tc := range map[string]struct {
		admitted, jobSet, want []string
	}{
		"quantities in other words": {
			admitted: []string{"replace " + containers + `/0/resources/requests {"cpu":1.5,"memory":"4096Mi"}`, "replace " + containers + `/0/resources/limits {"nvidia.com/gpu":2}`},
		},
		"the JobSet's quantities in other words": {
			jobSet: []string{"replace " + builtPod + `/containers/1/resources {"limits":{"cpu":"0.1","memory":"67108864"},"requests":{}}`},
		},
		"resources that are nothing": {
			admitted: []string{"remove " + initContainers + "/0/resources"},
			jobSet:   []string{"replace " + builtPod + `/initContainers/0/resources {"limits":{},"requests":null,"claims":[]}`},
		},
		"other args and env": {
			admitted: []string{"replace " + containers + `/0/args ["--epochs","9"]`, "remove " + containers + "/0/env/0"},
			want:     []string{"replace " + containers + `/0/args ["--epochs","9"]`, "remove " + containers + "/0/env/0"},
		},
		"a container in the JobSet that neither runtime has": {
			jobSet: []string{"add " + builtPod + `/containers/0 {"name":"injected","image":"mesh:1"}`, "add " + builtPod + `/initContainers/- {"name":"injected","image":"mesh:1"}`},
		},
		"containers in another order": {
			jobSet: []string{"move " + builtPod + "/containers/1 " + builtPod + "/containers/0"},
		},
		"fewer pods at a time, but not in all": {
			jobSet: []string{"replace " + built + "/parallelism 2", "replace " + built + "/completions 2", "replace /spec/replicatedJobs/0/replicas 2"},
		},
		"a least number of pods": {
			admitted: []string{"add /0/minCount 2"},
			want:     []string{"add /0/minCount 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asks{asked: []string{"replace /0/count 9"}, admitted: tc.admitted, jobSet: tc.jobSet, want: tc.want, wantSource: FromWorkload}.check(t)
		})
	}
}

// Without a Workload, what runs is what the JobSet has, without what Trainer put there.
func TestShowOfTheJobSet(t *testing.T) {
	for name, tc := range map[string]asks{
		"as it was built": {},
		"another image":   {jobSet: []string{"replace " + builtPod + `/containers/0/image "torch:9"`}, want: []string{"replace " + containers + `/0/image "torch:9"`}},
		"a value that the runtime sets too": {
			template: []string{"add " + sealedPod + `/containers/0/env/- {"name":"PET_NNODES","value":"4"}`},
			want:     []string{"add " + containers + `/0/env/- {"name":"PET_NNODES","value":"4"}`},
		},
		"a value that Kueue computes": {
			asked: []string{"add " + containers + `/0/env/- {"name":"PET_MASTER_PORT","value":"29500"}`},
			want:  []string{"add " + containers + `/0/env/- {"name":"PET_MASTER_PORT","value":"29500"}`},
		},
		"a value of another container of the runtime": {
			template: []string{"add " + sealedPod + `/containers/1/env [{"name":"PET_NNODES","value":"1"}]`},
		},
		"a value of an initContainer of the name": {
			template: []string{"add " + sealedPod + `/initContainers/- {"name":"node","env":[{"name":"PET_NNODES","value":"1"}]}`},
		},
		"a port that the runtime has": {
			template: []string{"add " + sealedPod + `/containers/0/ports/- {"containerPort":29500,"protocol":"TCP"}`},
			want:     []string{"add " + containers + `/0/ports/- {"containerPort":29500,"protocol":"TCP"}`},
		},
		"a port that Trainer alone has": {
			jobSet: []string{"remove " + builtPod + "/containers/0/ports/0"},
			want:   []string{"remove " + containers + "/0/ports"},
		},
		"a mount of Trainer's":               {jobSet: []string{"add " + builtPod + `/containers/0/volumeMounts/- {"name":"ssh","mountPath":"/ssh"}`}},
		"a mount that the runtime has twice": {jobSet: []string{"add " + builtPod + `/containers/0/volumeMounts/- {"name":"ssh","mountPath":"/data"}`}, want: []string{"add " + containers + `/0/volumeMounts/- {"name":"ssh","mountPath":"/data"}`}},
		"a container of Trainer's":           {jobSet: []string{"add " + builtPod + `/initContainers/- {"name":"flux-installer","image":"flux:1"}`}},
		"a container of Trainer's that Kueue computes": {
			jobSet: []string{"add " + builtPod + `/initContainers/- {"name":"flux-installer","image":"flux:1"}`},
			asked:  []string{"add " + initContainers + `/- {"name":"flux-installer","image":"flux:1"}`},
			want:   []string{"add " + initContainers + `/- {"name":"flux-installer","image":"flux:1"}`},
		},
		"no initContainers": {
			jobSet: []string{"remove " + builtPod + "/initContainers"},
			want:   []string{"remove " + initContainers},
		},
		"a field that these sources do not know": {
			jobSet: []string{"add " + builtPod + `/containers/1/lifecycle {"preStop":{"sleep":{"seconds":5}}}`},
			want:   []string{"add " + containers + `/1/lifecycle {"preStop":{"sleep":{"seconds":5}}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.noWorkload, tc.wantSource = true, FromJobSet
			tc.asked = append([]string{"replace " + containers + `/0/args ["drifted"]`}, tc.asked...)
			tc.check(t)
		})
	}
}

// As many pods as all Jobs of a replicatedJob have together.
func TestShowCountsPods(t *testing.T) {
	for name, tc := range map[string]struct {
		jobSet []string
		want   string
	}{
		"one Job":                   {want: "4"},
		"several Jobs":              {jobSet: []string{"replace /spec/replicatedJobs/0/replicas 3"}, want: "12"},
		"no Job":                    {jobSet: []string{"replace /spec/replicatedJobs/0/replicas 0"}, want: "0"},
		"fewer completions":         {jobSet: []string{"replace " + built + "/completions 3"}, want: "3"},
		"more completions":          {jobSet: []string{"replace " + built + "/completions 5"}, want: "4"},
		"without completions":       {jobSet: []string{"remove " + built + "/completions"}, want: "4"},
		"without parallelism":       {jobSet: []string{"remove " + built + "/parallelism"}, want: "1"},
		"with neither":              {jobSet: []string{"remove " + built + "/parallelism", "remove " + built + "/completions"}, want: "1"},
		"without replicas":          {jobSet: []string{"remove /spec/replicatedJobs/0/replicas"}, want: "4"},
		"several with fewer":        {jobSet: []string{"replace /spec/replicatedJobs/0/replicas 2", "replace " + built + "/completions 1"}, want: "2"},
		"completions that are null": {jobSet: []string{"replace " + built + "/completions null"}, want: "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asks{noWorkload: true, asked: []string{"replace /0/count 9"}, jobSet: tc.jobSet, want: []string{"replace /0/count " + tc.want}, wantSource: FromJobSet}.check(t)
		})
	}
}

// Without Workload and JobSet, nothing tells what will run.
func TestShowNothing(t *testing.T) {
	asks{noWorkload: true, noJobSet: true}.check(t)
	asks{noWorkload: true, noJobSet: true, asked: []string{"replace /0/count 9"}}.check(t)
}
