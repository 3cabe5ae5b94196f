package certificate

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
)

// expiry tells when the certificate that is served ends; nothing while there is none.
type expiry struct {
	serving func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	desc    *prometheus.Desc
}

// RegisterExpiry registers signalbox_certificate_expiry_timestamp_seconds, the end of the
// certificate that serving returns, in seconds since 1970.
func RegisterExpiry(registry prometheus.Registerer, serving func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	return registry.Register(&expiry{serving: serving, desc: prometheus.NewDesc(
		"signalbox_certificate_expiry_timestamp_seconds",
		"When the certificate that the webhook serves ends, in seconds since 1970.", nil, nil)})
}

// Describe implements prometheus.Collector.
func (e *expiry) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiry) Collect(metrics chan<- prometheus.Metric) {
	if pair, err := e.serving(&tls.ClientHelloInfo{}); err == nil && pair.Leaf != nil {
		metrics <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(pair.Leaf.NotAfter.Unix()))
	}
}
