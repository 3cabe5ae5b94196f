package policy

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the figures of what policies and defaults decide.
type Metrics struct {
	decisions *prometheus.CounterVec
}

// NewMetrics registers the figures.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "signalbox_policy_decisions_total",
		Help: "Creations of TrainJobs, as often as the webhook is asked about them, by what was decided of the deadline and by which runtime or policy.",
	}, []string{"decision", "by"})}
	return m, registry.Register(m.decisions)
}

// Count counts a decision about a new TrainJob; nil counts nothing.
func (m *Metrics) Count(decision Decision) {
	if m == nil {
		return
	}
	m.decisions.WithLabelValues(decision.What, decision.By).Inc()
}
