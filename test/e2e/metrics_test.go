package e2e_test

import (
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// figure sums a metric of a part over all series that have the given labels (NAME, VALUE,
// NAME, VALUE, ...).
func (s *scene) figure(part *cluster.Process, name string, labels ...string) float64 {
	s.Helper()
	response, err := http.Get(part.MetricsURL)
	s.must(err)
	defer func() { _ = response.Body.Close() }()
	return s.sum(response.Body, name, labels)
}

// sum reads metrics in Prometheus's text format and sums one as figure does.
func (s *scene) sum(from io.Reader, name string, labels []string) float64 {
	s.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(from)
	s.must(err)
	family, found := families[name]
	if !found {
		return 0
	}
	sum := 0.0
	for _, metric := range family.Metric {
		if hasLabels(metric, labels) {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

func hasLabels(metric *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, label := range metric.Label {
			found = found || label.GetName() == labels[i] && label.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// webhookCalls is how often the API server has called the webhook of this path.
func (s *scene) webhookCalls(path string) float64 {
	s.Helper()
	return s.figure(shared.Webhook, "controller_runtime_webhook_requests_total", "webhook", path)
}

// reconciles is how often the reconciler has looked at a TrainJob.
func (s *scene) reconciles() float64 {
	s.Helper()
	return s.figure(shared.Reconciler, "controller_runtime_reconcile_total", "controller", "deadline")
}
