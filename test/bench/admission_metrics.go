package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// spent is how often something happened, and how many seconds it took in all.
type spent struct{ count, seconds float64 }

// mean is how long it took once, in milliseconds; 0 where it did not happen.
func (s spent) mean() float64 {
	if s.count == 0 {
		return 0
	}
	return s.seconds / s.count * 1000
}

// reading is what API server and webhook have counted so far, or between two readings.
type reading struct {
	// hooks is what the API server spent on each webhook, by "TYPE NAME": the whole call.
	hooks map[string]spent
	// conditions is what it spent on the match conditions of each webhook, by "TYPE NAME".
	conditions map[string]spent
	// calls are the requests that Signalbox's webhook has answered, by path, and handlers what it
	// spent on them.
	calls    map[string]float64
	handlers map[string]spent
	// reads are the requests that Signalbox's webhook has sent to the API server.
	reads float64
}

func newReading() reading {
	return reading{map[string]spent{}, map[string]spent{}, map[string]float64{}, map[string]spent{}, 0}
}

// add adds times so much of another reading.
func (r *reading) add(other reading, times float64) {
	sum := func(to, from map[string]spent) {
		for key, value := range from {
			to[key] = spent{to[key].count + times*value.count, to[key].seconds + times*value.seconds}
		}
	}
	sum(r.hooks, other.hooks)
	sum(r.conditions, other.conditions)
	sum(r.handlers, other.handlers)
	for key, value := range other.calls {
		r.calls[key] += times * value
	}
	r.reads += times * other.reads
}

// since returns what was counted since an earlier reading.
func (r reading) since(earlier reading) reading {
	between := newReading()
	between.add(r, 1)
	between.add(earlier, -1)
	return between
}

// total is the number of calls of all webhooks of Signalbox.
func (r reading) total() float64 {
	sum := 0.0
	for _, count := range r.calls {
		sum += count
	}
	return sum
}

// counters reads the metrics of an API server and of Signalbox's webhook.
type counters struct {
	apiServer                *http.Client
	apiServerURL, webhookURL string
}

func newCounters(c *cluster.Cluster) (*counters, error) {
	authorized, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return nil, err
	}
	return &counters{authorized, c.Config.Host + "/metrics", c.Webhook.MetricsURL}, nil
}

// Metrics that are read.
const (
	hookSeconds      = "apiserver_admission_webhook_admission_duration_seconds"
	conditionSeconds = "apiserver_admission_match_condition_evaluation_seconds"
	handlerRequests  = "controller_runtime_webhook_requests_total"
	handlerSeconds   = "controller_runtime_webhook_latency_seconds"
	clientRequests   = "rest_client_requests_total"
)

func (c *counters) read(ctx context.Context) (reading, error) {
	r := newReading()
	server, err := metricsOf(ctx, c.apiServer, c.apiServerURL, hookSeconds, conditionSeconds)
	if err != nil {
		return r, err
	}
	webhook, err := metricsOf(ctx, http.DefaultClient, c.webhookURL, handlerRequests, handlerSeconds, clientRequests)
	if err != nil {
		return r, err
	}
	byName := func(labels map[string]string) string { return labels["type"] + " " + labels["name"] }
	r.hooks = histogramBy(server, hookSeconds, byName)
	r.conditions = histogramBy(server, conditionSeconds, byName)
	r.handlers = histogramBy(webhook, handlerSeconds, func(labels map[string]string) string { return labels["webhook"] })
	eachSeries(webhook, handlerRequests, func(labels map[string]string, value float64) { r.calls[labels["webhook"]] += value })
	eachSeries(webhook, clientRequests, func(_ map[string]string, value float64) { r.reads += value })
	return r, nil
}

// metricsOf reads the series of these metrics; of histograms the sums and the counts, as metrics of
// their own. To parse all that an API server says would take longer than what is measured.
func metricsOf(ctx context.Context, client *http.Client, url string, names ...string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: %s", response.Status)
	}
	var wanted bytes.Buffer
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, _, _ := bytes.Cut(lines.Bytes(), []byte("{"))
		name = bytes.TrimSuffix(bytes.TrimSuffix(name, []byte("_sum")), []byte("_count"))
		if slices.Contains(names, string(name)) {
			wanted.Write(lines.Bytes())
			wanted.WriteByte('\n')
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(&wanted)
}

// eachSeries calls found for each series of a metric.
func eachSeries(metrics map[string]*dto.MetricFamily, name string, found func(labels map[string]string, value float64)) {
	for _, metric := range metrics[name].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		found(labels, metric.GetUntyped().GetValue())
	}
}

// histogramBy sums what a histogram says over all series that have the same key.
func histogramBy(metrics map[string]*dto.MetricFamily, name string, key func(labels map[string]string) string) map[string]spent {
	sums := map[string]spent{}
	eachSeries(metrics, name+"_count", func(labels map[string]string, value float64) {
		sum := sums[key(labels)]
		sum.count += value
		sums[key(labels)] = sum
	})
	eachSeries(metrics, name+"_sum", func(labels map[string]string, value float64) {
		sum := sums[key(labels)]
		sum.seconds += value
		sums[key(labels)] = sum
	})
	return sums
}
