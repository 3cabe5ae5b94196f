package multikueue_test

import (
	"net/http"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// figures are what Signalbox counts on a cluster, summed over all labels.
type figures struct {
	// Waiting is how many TrainJobs have a deadline that is counting.
	Waiting float64
	// Expired, Filed and Sealed are how often a TrainJob was failed by its deadline, the
	// snapshot of one was filed or corrected, and one became active for the first time.
	Expired, Filed, Sealed float64
}

func (s *side) figures() figures {
	s.Helper()
	return figures{
		Waiting: s.figure(s.cluster.Reconciler, "signalbox_deadline_trainjobs"),
		Expired: s.figure(s.cluster.Reconciler, "signalbox_deadline_expirations_total"),
		Filed:   s.figure(s.cluster.Reconciler, "signalbox_snapshot_writes_total", v1alpha1.TrainingRuntimeSnapshotKind, "ConfigMap"),
		Sealed:  s.figure(s.cluster.Webhook, "signalbox_runtime_seals_total"),
	}
}

// figure sums a metric of a part over all its series, or those with one of these kinds.
func (s *side) figure(part *cluster.Process, name string, kinds ...string) float64 {
	s.Helper()
	response, err := http.Get(part.MetricsURL)
	s.must(err)
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	s.must(err)
	sum := 0.0
	for _, metric := range families[name].GetMetric() {
		counts := len(kinds) == 0
		for _, label := range metric.GetLabel() {
			counts = counts || label.GetName() == "kind" && slices.Contains(kinds, label.GetValue())
		}
		if counts {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum
}
