package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

// pairOf is a pair of phases in which each write of a kind took so many milliseconds.
func pairOf(name string, off, on int) pair {
	phaseOf := func(took int, calls float64) phase {
		counted := newReading()
		counted.calls["/mutate-trainjob"] = calls
		return phase{
			times:   map[string]figures.Samples{name: {time.Duration(took) * time.Millisecond, time.Duration(took) * time.Millisecond}},
			counted: map[string]reading{name: counted},
		}
	}
	return pair{off: phaseOf(off, 0), on: phaseOf(on, 4)}
}

func TestCompare(t *testing.T) {
	c := compare([]pair{pairOf(writeCreate, 10, 12), pairOf(writeCreate, 20, 22), pairOf(writeCreate, 10, 13)}, writeCreate)
	if want := []float64{1.1, 1.2, 1.3}; !cmp.Equal(want, c.ratios) {
		t.Errorf("ratios %v, want %v", c.ratios, want)
	}
	if want := []float64{0.5, 2}; !cmp.Equal(want, c.noise) {
		t.Errorf("noise %v, want %v", c.noise, want)
	}
	if got := c.ratio(); got != 1.2 {
		t.Errorf("ratio %v, want 1.2", got)
	}
	// Of 10, 10, 10, 10, 20, 20 and 12, 12, 13, 13, 22, 22.
	if got := c.difference(); got != 3*time.Millisecond {
		t.Errorf("difference %s, want 3ms", got)
	}
	if got := c.calls(); got != 2 {
		t.Errorf("%v calls, want 2", got)
	}
	if !c.silent() {
		t.Error("1.2 is beyond a noise of 0.5 to 2")
	}
}

func TestSilent(t *testing.T) {
	for name, tc := range map[string]struct {
		ratio float64
		noise []float64
		want  bool
	}{
		"within the noise":               {1.01, []float64{0.98, 1.02}, true},
		"slower than the noise":          {1.03, []float64{0.98, 1.02}, false},
		"faster than the noise":          {0.97, []float64{0.98, 1.02}, false},
		"no more than an outlier":        {1.5, []float64{0.5, 0.98, 0.99, 1, 1, 1.01, 1.02, 2}, false},
		"no difference, and drift":       {1, []float64{1.1, 1.2}, true},
		"no difference, and none to say": {1, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (compared{ratios: []float64{tc.ratio}, noise: tc.noise}).silent(); got != tc.want {
				t.Errorf("silent = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMiddleAndAround(t *testing.T) {
	for name, tc := range map[string]struct {
		sorted            []float64
		middle, low, high float64
	}{
		"none":  {nil, 0, 0, 0},
		"one":   {[]float64{3}, 3, 3, 3},
		"two":   {[]float64{1, 3}, 2, 1, 3},
		"three": {[]float64{1, 2, 9}, 2, 1, 9},
		"eight": {[]float64{1, 2, 3, 4, 6, 7, 8, 9}, 5, 3, 7},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := around(tc.sorted)
			got, want := []float64{middle(tc.sorted), low, high}, []float64{tc.middle, tc.low, tc.high}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("middle, low, high (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathOf(t *testing.T) {
	for hook, want := range map[string]string{
		"admit trainjob.lifecycle.trainer.kubeflow.org":      "/mutate-trainjob",
		"validating jobset.lifecycle.trainer.kubeflow.org":   "/validate-jobset",
		"admit defaulter.trainjob.trainer.kubeflow.org":      "",
		"validating validator.trainjob.trainer.kubeflow.org": "",
	} {
		if got := pathOf(hook); got != want {
			t.Errorf("%s is served at %q, want %q", hook, got, want)
		}
	}
}

// The API server's and the webhook's counts, as both write them, between two readings.
func TestCounters(t *testing.T) {
	texts := map[string]string{
		"/apiserver": `# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{name="a",operation="CREATE",rejected="false",type="admit",le="+Inf"} 9
apiserver_admission_webhook_admission_duration_seconds_sum{name="a",operation="CREATE",rejected="false",type="admit"} 0.5
apiserver_admission_webhook_admission_duration_seconds_count{name="a",operation="CREATE",rejected="false",type="admit"} 2
apiserver_admission_webhook_admission_duration_seconds_sum{name="a",operation="UPDATE",rejected="false",type="admit"} 0.25
apiserver_admission_webhook_admission_duration_seconds_count{name="a",operation="UPDATE",rejected="false",type="admit"} 1
apiserver_admission_match_condition_evaluation_seconds_sum{kind="webhook",name="a",operation="UPDATE",type="admit"} 0.125
apiserver_admission_match_condition_evaluation_seconds_count{kind="webhook",name="a",operation="UPDATE",type="admit"} 4
apiserver_request_total{code="200"} 77
`,
		"/webhook": `controller_runtime_webhook_requests_total{code="200",webhook="/mutate-trainjob"} 5
controller_runtime_webhook_requests_total{code="500",webhook="/mutate-trainjob"} 1
controller_runtime_webhook_latency_seconds_sum{webhook="/mutate-trainjob"} 3
controller_runtime_webhook_latency_seconds_count{webhook="/mutate-trainjob"} 6
rest_client_requests_total{code="200",host="h",method="GET"} 7
`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(texts[r.URL.Path]))
	}))
	defer server.Close()
	c := &counters{server.Client(), server.URL + "/apiserver", server.URL + "/webhook"}
	got, err := c.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := reading{
		hooks:      map[string]spent{"admit a": {3, 0.75}},
		conditions: map[string]spent{"admit a": {4, 0.125}},
		calls:      map[string]float64{"/mutate-trainjob": 6},
		handlers:   map[string]spent{"/mutate-trainjob": {6, 3}},
		reads:      7,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(reading{}, spent{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	earlier := newReading()
	earlier.hooks["admit a"] = spent{1, 0.25}
	earlier.calls["/mutate-trainjob"] = 4
	between := got.since(earlier)
	if got, want := between.hooks["admit a"], (spent{2, 0.5}); got != want {
		t.Errorf("between two readings %v, want %v", got, want)
	}
	if got := between.hooks["admit a"].mean(); got != 250 {
		t.Errorf("mean %v ms, want 250", got)
	}
	if got := between.total(); got != 2 {
		t.Errorf("%v calls between two readings, want 2", got)
	}
}

// A target is met only where ratio and difference both are small enough, or nothing is called.
func TestAdmissionTargets(t *testing.T) {
	found := map[string]compared{}
	for _, name := range append(heldTo, untouched...) {
		p := pairOf(name, 100, 102)
		if name != writeLabel {
			p.on.counted[name] = newReading()
		}
		found[name] = compare([]pair{p, p}, name)
	}
	found[writeResume] = compare([]pair{pairOf(writeResume, 100, 104)}, writeResume)
	found[writeAgain] = compare([]pair{pairOf(writeAgain, 10, 12)}, writeAgain)
	met := map[string]bool{}
	for _, target := range admissionTargets(found) {
		met[target.What] = target.Met
	}
	want := map[string]bool{
		"p50 of " + writeCreate: true, "p50 of " + writeResume: false, "p50 of " + writeAgain: false,
		// 2 % slower, where phases that are alike are equal.
		writeLabel: false, writeStatus: false, writeConfigMap: false, writeJobSet: false,
	}
	if diff := cmp.Diff(want, met); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	same := pairOf(writeStatus, 100, 100)
	same.on.counted[writeStatus] = newReading()
	found[writeStatus] = compare([]pair{same, same}, writeStatus)
	found[writeLabel] = compare([]pair{pairOf(writeLabel, 100, 100), pairOf(writeLabel, 100, 100)}, writeLabel)
	for _, target := range admissionTargets(found) {
		if want := target.What == writeStatus; (target.What == writeStatus || target.What == writeLabel) && target.Met != want {
			t.Errorf("%s met = %v, want %v", target.What, target.Met, want)
		}
	}
}
