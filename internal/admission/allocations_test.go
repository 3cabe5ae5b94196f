package admission

import "testing"

// How often a webhook allocates memory for the ordinary requests does not depend on the sizes of
// TrainJob and runtime. To decode an object once more takes more than the two that each bound has to
// spare.
func TestAllocations(t *testing.T) {
	d := onDesk(t, runtimeSized(2*kilobyte))
	m := quick(t, d)
	validator := &TrainJobValidator{Policies: m.Policies, Runtimes: m.Runtimes}
	waiting := map[string]string{source: torchID}
	sized := func(suspend bool, annotations map[string]string) string {
		return trainJobSized(t, 2*kilobyte, suspend, annotations)
	}
	active, suspended := sized(false, nil), sized(true, nil)
	for name, tc := range map[string]struct {
		measured
		want float64
	}{
		"TrainJob created":        {measured{handler: m, request: sealRequest("", active), patches: 1}, 76},
		"TrainJob created, large": {measured{handler: m, request: sealRequest("", trainJobSized(t, 200*kilobyte, false, nil)), patches: 1}, 76},
		"TrainJob created on a large runtime": {
			measured{handler: quick(t, onDesk(t, runtimeSized(300*kilobyte))), request: sealRequest("", active), patches: 1}, 76,
		},
		"TrainJob created suspended": {measured{handler: m, request: sealRequest("", suspended), patches: 1}, 69},
		"TrainJob resumed": {
			measured{handler: m, request: sealRequest(sized(true, waiting), sized(false, waiting)), patches: 3}, 152,
		},
		"TrainJob suspended": {
			measured{handler: m, request: sealRequest(sized(false, d.job.Annotations), sized(true, d.job.Annotations)), patches: 1}, 158,
		},
		"TrainJob validated": {measured{handler: validator, request: sealRequest("", active)}, 55},
	} {
		t.Run(name, func(t *testing.T) {
			tc.allowed = true
			ctx := t.Context()
			if got := testing.AllocsPerRun(20, func() { tc.ask(t, ctx) }); got > tc.want {
				t.Errorf("%v allocations, want at most %v", got, tc.want)
			}
		})
	}
}
