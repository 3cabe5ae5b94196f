package ttl

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// Metrics are the figures of the clean-up.
type Metrics struct {
	deletions *prometheus.CounterVec
	lag       prometheus.Histogram
}

// NewMetrics registers the figures.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		deletions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_ttl_deletions_total",
			Help: "Finished TrainJobs that were removed, by where the time they stay came from.",
		}, []string{"source"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "signalbox_ttl_deletion_lag_seconds",
			Help:    "Time from the moment at which a finished TrainJob was to go to its deletion.",
			Buckets: []float64{.1, .5, 1, 2, 5, 10, 30, 60, 300, 1800, 86400},
		}),
	}
	for _, source := range []string{"annotation", "runtime", "policy"} {
		m.deletions.WithLabelValues(source)
	}
	for _, collector := range []prometheus.Collector{m.deletions, m.lag} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// removed counts a TrainJob that was removed at the instant now.
func (m *Metrics) removed(decision Decision, now time.Time) {
	source := "runtime"
	switch {
	case decision.By == own:
		source = "annotation"
	case strings.HasPrefix(decision.By, v1alpha1.LifecyclePolicyKind+"/"):
		source = "policy"
	}
	m.deletions.WithLabelValues(source).Inc()
	m.lag.Observe(now.Sub(decision.Expires).Seconds())
}
