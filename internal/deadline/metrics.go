package deadline

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Metrics are the figures of the deadline reconciler.
type Metrics struct {
	expirations *prometheus.CounterVec
	lag         prometheus.Histogram
}

// NewMetrics registers the figures. The number of TrainJobs with a running deadline is
// counted in the reader's cache at each scrape, so it is never stale; jobs and clock give
// what it counts.
func NewMetrics(registry prometheus.Registerer, jobs client.Reader, clock clock.PassiveClock) (*Metrics, error) {
	m := &Metrics{
		expirations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_deadline_expirations_total",
			Help: "Times that Failed was set on a TrainJob because its deadline was reached, by where the limit came from.",
		}, []string{"source"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "signalbox_deadline_enforcement_lag_seconds",
			Help:    "Time from a deadline to the moment at which Failed was stored.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300, 1800},
		}),
	}
	// All series exist from the start, so that a rate over them works from the first expiry.
	for _, source := range []string{"spec", "annotation", "runtime", "policy"} {
		m.expirations.WithLabelValues(source)
	}
	waiting := &waitingCollector{
		jobs:  jobs,
		clock: clock,
		desc: prometheus.NewDesc("signalbox_deadline_trainjobs",
			"TrainJobs whose deadline is counting. Every replica reports the same number.", nil, nil),
	}
	for _, collector := range []prometheus.Collector{m.expirations, m.lag, waiting} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// sourceLabel says in short where the limit comes from.
func sourceLabel(d Decision) string {
	switch {
	case strings.HasPrefix(d.By, v1alpha1.LifecyclePolicyKind+"/"):
		return "policy"
	case d.By != "":
		return "runtime"
	case d.Source == SourceAnnotation:
		return "annotation"
	}
	return "spec"
}

// expired counts a TrainJob for which Failed was stored at the instant stored.
func (m *Metrics) expired(decision Decision, stored time.Time) {
	m.expirations.WithLabelValues(sourceLabel(decision)).Inc()
	m.lag.Observe(stored.Sub(decision.Deadline).Seconds())
}

// waitingCollector counts the TrainJobs whose deadline is counting when it is asked.
type waitingCollector struct {
	jobs  client.Reader
	clock clock.PassiveClock
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *waitingCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector. Before the cache is there, the figure is left
// out: zero would be wrong.
func (c *waitingCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var list trainer.TrainJobList
	if err := c.jobs.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	now, waiting := c.clock.Now(), 0
	for i := range list.Items {
		if Evaluate(&list.Items[i], now).State != None {
			waiting++
		}
	}
	metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(waiting))
}
