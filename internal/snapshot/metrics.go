package snapshot

import "github.com/prometheus/client_golang/prometheus"

// AdmissionMetrics are the figures of the webhook. The zero value counts nothing.
type AdmissionMetrics struct {
	seals *prometheus.CounterVec
}

// NewAdmissionMetrics registers the figures.
func NewAdmissionMetrics(registry prometheus.Registerer) (*AdmissionMetrics, error) {
	m := &AdmissionMetrics{seals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "signalbox_runtime_seals_total",
		Help: "Writes that make a TrainJob active for the first time, by what became of its seal.",
	}, []string{"result"})}
	for _, result := range []string{Sealed, RuntimeMissing, TooLargeContent, TooLargeCompressed, TooLargeAnnotations, TooLargeTrainJob} {
		m.seals.WithLabelValues(result)
	}
	return m, registry.Register(m.seals)
}

// Seal counts one seal by its result.
func (m *AdmissionMetrics) Seal(result string) {
	if m != nil {
		m.seals.WithLabelValues(result).Inc()
	}
}

// Metrics are the figures of the reconciler.
type Metrics struct {
	writes *prometheus.CounterVec
}

// NewMetrics registers the figures.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "signalbox_snapshot_writes_total",
		Help: "Objects that were written or deleted to keep TrainJobs on their snapshot, by kind and what was done.",
	}, []string{"kind", "action"})}
	return m, registry.Register(m.writes)
}

// wrote counts one write.
func (m *Metrics) wrote(kind, action string) {
	if m != nil {
		m.writes.WithLabelValues(kind, action).Inc()
	}
}
