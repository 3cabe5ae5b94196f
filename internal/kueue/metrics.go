package kueue

import "github.com/prometheus/client_golang/prometheus"

// Refused is the label of the metric for what could not be shown.
const Refused = "refused"

// Metrics are the figures of what Kueue is shown. The zero value counts nothing.
type Metrics struct {
	shown *prometheus.CounterVec
}

// NewMetrics registers the figures.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{shown: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "signalbox_kueue_views_total",
		Help: "Dry runs in which Kueue asked for other pods of a TrainJob than run, or will, by where the answer came from.",
	}, []string{"source"})}
	for _, source := range []string{FromWorkload, FromJobSet, Refused} {
		m.shown.WithLabelValues(source)
	}
	return m, registry.Register(m.shown)
}

// Show counts one answer by its source.
func (m *Metrics) Show(source string) {
	if m != nil {
		m.shown.WithLabelValues(source).Inc()
	}
}
