package policy

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Metrics are the figures of what policies and defaults decide.
type Metrics struct {
	decisions *prometheus.CounterVec
}

// NewMetrics registers the figures.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "signalbox_policy_decisions_total",
		Help: "Creations of TrainJobs that were asked for, by what was decided of the deadline, and by which policy or runtime of the cluster, or a TrainingRuntime.",
	}, []string{"decision", "by"})}
	return m, registry.Register(m.decisions)
}

// Count counts a decision about a new TrainJob; nil counts nothing.
func (m *Metrics) Count(decision Decision) {
	if m == nil {
		return
	}
	by := decision.By
	if kind, _, _ := strings.Cut(by, "/"); kind == trainer.TrainingRuntimeKind {
		// Users make these: their names would be series without end.
		by = kind
	}
	m.decisions.WithLabelValues(decision.What, by).Inc()
}
