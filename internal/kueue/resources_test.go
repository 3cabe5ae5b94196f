package kueue

import "testing"

// Kueue up to 0.19 takes the resources of the TrainJob in the place of the runtime's, where
// Trainer 2.3 adds them: of what the runtime has besides, it counts nothing. One that adds them
// too shows by what it asks.
func TestShowResourcesAsKueueCountsThem(t *testing.T) {
	const (
		node   = "/template/spec/containers/0/resources"
		inJob  = "/replicatedJobs/0/template/spec/template/spec/containers/0/resources"
		own    = `{"requests":{"cpu":"1"}}`
		merged = `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`
		other  = `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"4"}}`
	)
	for name, tc := range map[string]struct {
		// asked and workload are the resources of the node there; "" for no Workload.
		asked, workload string
		hasQuota        bool
		want            string
		wantSource      string
	}{
		"it replaces, without a Workload":      {asked: own, want: own, wantSource: FromJobSet},
		"it replaces":                          {asked: own, workload: own, want: own, wantSource: FromWorkload},
		"it replaces, of more":                 {asked: own, workload: merged, want: own, wantSource: FromJobSet},
		"it replaces, of more with quota":      {asked: own, workload: merged, hasQuota: true, want: merged, wantSource: FromWorkload},
		"it asks for others, of another label": {asked: `{"requests":{"cpu":"2"},"limits":{"nvidia.com/gpu":"4"}}`, workload: own, want: own, wantSource: FromWorkload},
		"it adds, without a Workload":          {asked: other, want: merged, wantSource: FromJobSet},
		"it adds":                              {asked: other, workload: merged, want: merged, wantSource: FromWorkload},
		"it adds, of less":                     {asked: other, workload: own, want: merged, wantSource: FromJobSet},
		"it adds, of less with quota":          {asked: other, workload: own, hasQuota: true, want: merged, wantSource: FromJobSet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := load(t, "plain")
			resources := func(of string) []Object { return changed(t, e.PodSets, []string{"add /0" + node + " " + of}) }
			pods := Pods{
				Drifted:  true,
				Template: changed(t, e.Template, []string{"add " + inJob + ` {"requests":{"cpu":"500m"},"limits":{"nvidia.com/gpu":"2"}}`}),
				TrainJob: changed(t, e.TrainJob, []string{`add /spec/trainer {"resourcesPerNode":{"requests":{"cpu":"1000m"}}}`}),
				JobSet:   changed(t, e.JobSet, []string{"add /spec" + inJob + " " + merged}),
				HasQuota: tc.hasQuota,
			}
			if tc.workload != "" {
				pods.Workload = resources(tc.workload)
			}
			asked := changed(t, resources(tc.asked), []string{`replace /0/template/spec/containers/0/image "live"`})
			got, source, err := Show(asked, pods)
			if err != nil || source != tc.wantSource {
				t.Fatalf("from %q, %v; want %q", source, err, tc.wantSource)
			}
			if diff := differ(t, resources(tc.want), got); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

// It adds where it asks for what the TrainJob says, and for more.
func TestAddsTellsOfTheNodeAlone(t *testing.T) {
	e := load(t, "plain")
	const resources = "add /0/template/spec/containers/0/resources "
	pods := Pods{TrainJob: changed(t, e.TrainJob, []string{`add /spec/trainer {"resourcesPerNode":{"requests":{"cpu":"1"}}}`})}
	for name, tc := range map[string]struct {
		asked string
		want  bool
	}{
		"nothing":                   {asked: resources + `{}`},
		"what it says":              {asked: resources + `{"requests":{"cpu":"1"}}`},
		"in another spelling":       {asked: resources + `{"requests":{"cpu":"1000m"},"limits":{}}`},
		"with a limit besides":      {asked: resources + `{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}`, want: true},
		"with a request besides":    {asked: resources + `{"requests":{"cpu":"1000m","memory":"1Gi"}}`, want: true},
		"as a limit, not asked":     {asked: resources + `{"limits":{"cpu":"1"}}`},
		"another quantity":          {asked: resources + `{"requests":{"cpu":"2","memory":"1Gi"}}`},
		"of another container":      {asked: `replace /0/template/spec/containers/0/name "other"`},
		"without containers at all": {asked: "remove /0/template/spec/containers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pods.adds(changed(t, e.PodSets, []string{tc.asked})[0]); got != tc.want {
				t.Errorf("adds = %v, want %v", got, tc.want)
			}
		})
	}
}

// A Workload with quota stands for what takes a claim only when it has the same.
func TestShowClaims(t *testing.T) {
	e := load(t, "plain")
	e.JobSet = changed(t, e.JobSet, []string{`add /spec/replicatedJobs/0/template/spec/template/spec/containers/0/resources {"claims":[{"name":"gpu"}]}`})
	for want, workload := range map[string][]Object{
		FromJobSet:   changed(t, e.PodSets, []string{`replace /0/template/spec/containers/0/image "before"`}),
		FromWorkload: changed(t, e.PodSets, []string{`replace /0/template/spec/containers/0/image "before"`, `add /0/template/spec/containers/0/resources {"claims":[{"name":"gpu"}]}`}),
	} {
		if _, source, err := Show(e.PodSets, Pods{Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet, Workload: workload, HasQuota: true}); err != nil || source != want {
			t.Errorf("from %q, %v; want %q", source, err, want)
		}
	}
}

// Variables of the TrainJob are its own also where Kueue does not ask with them.
func TestShowKeepsTheVariablesOfTheTrainJob(t *testing.T) {
	e := load(t, "torch")
	asked := changed(t, e.PodSets, []string{"remove /0/template/spec/containers/0/env"})
	pods := Pods{Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet}
	got, source, err := Show(asked, pods)
	if err != nil || source != FromJobSet {
		t.Fatalf("Show: from %q, %v", source, err)
	}
	if diff := differ(t, e.PodSets, got); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// Where nothing has drifted, Kueue's own view stands, but for a Workload of what was built, which
// Kueue may not find right for a moment.
func TestShowWhereNothingDrifted(t *testing.T) {
	e := load(t, "torch")
	other := func(path, value string) []Object {
		return changed(t, e.PodSets, []string{"replace /0" + path + " " + value})
	}
	stale := other("/template/spec/containers/0/image", `"before"`)
	for name, tc := range map[string]struct {
		pods Pods
		want string
	}{
		"a Workload of what was built":   {Pods{JobSet: e.JobSet, Workload: e.PodSets}, FromWorkload},
		"with quota":                     {Pods{JobSet: e.JobSet, Workload: e.PodSets, HasQuota: true}, FromWorkload},
		"a Workload of another image":    {Pods{JobSet: e.JobSet, Workload: stale, HasQuota: true}, ""},
		"a Workload of other args":       {Pods{JobSet: e.JobSet, Workload: other("/template/spec/containers/0/args", `["x"]`), HasQuota: true}, ""},
		"a Workload of more pods":        {Pods{JobSet: e.JobSet, Workload: other("/count", "9"), HasQuota: true}, ""},
		"a Workload, and no JobSet":      {Pods{Workload: e.PodSets, HasQuota: true}, ""},
		"no Workload":                    {Pods{JobSet: e.JobSet}, ""},
		"neither a Workload nor JobSet":  {Pods{}, ""},
		"a Workload without its pod set": {Pods{JobSet: e.JobSet, Workload: e.PodSets[:0], HasQuota: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.pods.Template, tc.pods.TrainJob = e.Template, e.TrainJob
			got, source, err := Show(stale, tc.pods)
			if err != nil || source != tc.want {
				t.Fatalf("from %q, %v; want %q", source, err, tc.want)
			}
			if source == FromWorkload {
				if diff := differ(t, e.PodSets, got); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
			}
		})
	}
}
