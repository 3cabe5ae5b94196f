package kueue

import "testing"

// Kueue 0.19.2 takes the resources of the TrainJob in the place of the runtime's, Trainer 2.3
// adds them: of what the runtime has besides, Kueue counts nothing. What it asks tells that,
// unless the runtime as it is has nothing besides.
func TestShowResourcesAsKueueCountsThem(t *testing.T) {
	const node = "/template/spec/containers/0/resources"
	for name, tc := range map[string]struct {
		// asked and admitted are the resources of the node there; merged are the JobSet's.
		asked, admitted    string
		live               []string
		reserved, workload bool
		want               string
	}{
		"it replaces, without a Workload":             {want: `{"requests":{"cpu":"1"}}`},
		"it replaces, the Workload too":               {workload: true, want: `{"requests":{"cpu":"1"}}`},
		"it adds, without a Workload":                 {asked: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"4"}}`, want: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`},
		"it adds, the Workload is of less":            {asked: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"4"}}`, workload: true, want: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`},
		"it adds, the Workload of less has quota":     {asked: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"4"}}`, workload: true, reserved: true, want: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`},
		"untold, without a Workload":                  {live: []string{"remove " + liveNode + "/limits"}, want: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`},
		"untold, the Workload of less waits for room": {live: []string{"remove " + liveNode + "/limits"}, workload: true, want: `{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`},
		"untold, the Workload of less has quota":      {live: []string{"remove " + liveNode + "/limits"}, workload: true, reserved: true, want: `{"requests":{"cpu":"1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := load(t, "plain")
			e.TrainJob = changed(t, e.TrainJob, []string{`add /spec/trainer {"resourcesPerNode":{"requests":{"cpu":"1"}}}`})
			e.Template = changed(t, e.Template, []string{"add " + liveNode + ` {"requests":{"cpu":"500m"},"limits":{"nvidia.com/gpu":"2"}}`})
			e.JobSet = changed(t, e.JobSet, []string{"add /spec" + liveNode + ` {"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"2"}}`})
			own := changed(t, e.PodSets, []string{"add /0" + node + ` {"requests":{"cpu":"1000m"}}`})
			asked := changed(t, own, []string{`replace /0/template/spec/containers/0/image "live"`})
			if tc.asked != "" {
				asked = changed(t, asked, []string{"replace /0" + node + " " + tc.asked})
			}
			pods := Pods{Drifted: true, Template: e.Template, Live: changed(t, e.Template, tc.live), TrainJob: e.TrainJob, JobSet: e.JobSet, Reserved: tc.reserved}
			if tc.workload {
				pods.Admitted = own
			}
			if !pods.NeedsLive() {
				t.Error("it does not need the runtime")
			}
			got, _, err := Show(asked, pods)
			if err != nil {
				t.Fatal(err)
			}
			want := changed(t, own, []string{"replace /0" + node + " " + tc.want})
			if diff := differ(t, want, got); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

const liveNode = "/replicatedJobs/0/template/spec/template/spec/containers/0/resources"

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
		"a Workload of what was built":   {Pods{JobSet: e.JobSet, Admitted: e.PodSets}, FromWorkload},
		"with quota":                     {Pods{JobSet: e.JobSet, Admitted: e.PodSets, Reserved: true}, FromWorkload},
		"a Workload of another image":    {Pods{JobSet: e.JobSet, Admitted: stale, Reserved: true}, ""},
		"a Workload of other args":       {Pods{JobSet: e.JobSet, Admitted: other("/template/spec/containers/0/args", `["x"]`), Reserved: true}, ""},
		"a Workload of more pods":        {Pods{JobSet: e.JobSet, Admitted: other("/count", "9"), Reserved: true}, ""},
		"a Workload, and no JobSet":      {Pods{Admitted: e.PodSets, Reserved: true}, ""},
		"no Workload":                    {Pods{JobSet: e.JobSet}, ""},
		"neither a Workload nor JobSet":  {Pods{}, ""},
		"a Workload without its pod set": {Pods{JobSet: e.JobSet, Admitted: e.PodSets[:0], Reserved: true}, ""},
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
