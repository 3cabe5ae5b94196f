package cluster

import (
	"slices"
	"strings"
)

// Replica returns a further process of a part of signalbox, not yet started: the same
// program, rights and flags, then the flags given here (of two equal ones the last counts),
// as the pod of that name, with metrics and probes on ports of its own. It ends with the
// cluster at the latest.
func (c *Cluster) Replica(of *Process, pod string, flags ...string) *Process {
	p := c.part(pod, of.path, adminUser, slices.Concat(of.args, flags)...)
	p.env = slices.DeleteFunc(slices.Clone(of.env), func(variable string) bool { return strings.HasPrefix(variable, "POD_NAME=") })
	p.env = append(p.env, "POD_NAME="+pod)
	p.serveOn(c.ports.take(), c.ports.take())
	p.ready = c.healthy(p.probe)
	return p
}
