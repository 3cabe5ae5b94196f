package policy

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	figures, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, decision := range []Decision{
		{What: Own}, {What: Own},
		{What: Defaulted, By: "ClusterTrainingRuntime/torch", Deadline: 1},
		// Users name these: they are one series.
		{What: Defaulted, By: "TrainingRuntime/one", Deadline: 1}, {What: Defaulted, By: "TrainingRuntime/two", Deadline: 1},
		{What: Limited, By: "LifecyclePolicy/a", Deadline: 1}, {What: OverMax, By: "LifecyclePolicy/a"},
	} {
		figures.Count(decision)
	}
	(*Metrics)(nil).Count(Decision{What: Own})
	want := strings.TrimLeft(`
# HELP signalbox_policy_decisions_total Creations of TrainJobs that were asked for, by what was decided of the deadline, and by which policy or runtime of the cluster, or a TrainingRuntime.
# TYPE signalbox_policy_decisions_total counter
signalbox_policy_decisions_total{by="",decision="own"} 2
signalbox_policy_decisions_total{by="ClusterTrainingRuntime/torch",decision="default"} 1
signalbox_policy_decisions_total{by="LifecyclePolicy/a",decision="max"} 1
signalbox_policy_decisions_total{by="LifecyclePolicy/a",decision="refused_max"} 1
signalbox_policy_decisions_total{by="TrainingRuntime",decision="default"} 2
`, "\n")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("registered twice")
	}
}
