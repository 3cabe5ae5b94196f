package main

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figure reads a metric of a part at its MetricsURL and sums it over all series that have the
// given labels (NAME, VALUE, NAME, VALUE, ...): values of counters and gauges, and how often a
// histogram was observed. It is 0 where there is no such series.
func figure(ctx context.Context, url, name string, labels ...string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	sum := 0.0
	for _, metric := range families[name].GetMetric() {
		if hasLabels(metric, labels) {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return sum, nil
}

func hasLabels(metric *dto.Metric, labels []string) bool {
	have := map[string]string{}
	for _, label := range metric.GetLabel() {
		have[label.GetName()] = label.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if have[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
