package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Replica returns a further process of a part of signalbox, not yet started: the same
// program, rights and flags, then the flags given here (of two equal ones the last counts),
// as the pod of that name, with metrics and probes on ports of its own. It ends with the
// cluster at the latest.
func (c *Cluster) Replica(of *Process, pod string, flags ...string) *Process {
	metrics, probes := address(c.ports.take()), address(c.ports.take())
	p := c.part(pod, of.path, adminUser, slices.Concat(of.args, flags,
		[]string{"--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + probes})...)
	p.env = slices.DeleteFunc(slices.Clone(of.env), func(variable string) bool { return strings.HasPrefix(variable, "POD_NAME=") })
	p.env = append(p.env, "POD_NAME="+pod)
	p.MetricsURL = "http://" + metrics + "/metrics"
	p.ready = c.healthy("http://" + probes + "/readyz")
	return p
}

// WebhookReplica returns a further replica of the webhook, not yet started, that keeps its
// certificate itself as in a cluster, and the address (HOST:PORT) that it will serve on.
func (c *Cluster) WebhookReplica(pod string) (*Process, string) {
	port := c.ports.take()
	return c.Replica(c.Webhook, pod, "--cert-dir=", fmt.Sprintf("--webhook-port=%d", port)), address(port)
}
