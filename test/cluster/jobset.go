package cluster

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const jobSetNamespace = "jobset-system"

func (c *Cluster) newJobSet(webhookPort int, urls []string) (*Process, error) {
	probe := address(c.ports.take())
	config, err := c.writeConfig(binaries.JobSet, c.rateConfig(object{
		"apiVersion":             "config.jobset.x-k8s.io/v1alpha1",
		"kind":                   "Configuration",
		"health":                 object{"healthProbeBindAddress": probe},
		"metrics":                object{"bindAddress": "0"},
		"webhook":                object{"host": "127.0.0.1", "port": webhookPort, "certDir": c.certs.dir},
		"leaderElection":         object{"leaderElect": false},
		"internalCertManagement": object{"enable": false},
	}))
	if err != nil {
		return nil, err
	}
	p := c.part(binaries.JobSet, c.binaries[binaries.JobSet], jobSetUser, "--config="+config, "--zap-log-level=2")
	p.ready = c.serves("http://"+probe+"/readyz", urls)
	return p, nil
}

// newJobSetObject returns the least that is a JobSet.
func newJobSetObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "jobset.x-k8s.io/v1alpha2",
		"kind":       "JobSet",
		"metadata":   object{"name": name, "namespace": "default"},
		"spec": object{
			"suspend": true,
			"replicatedJobs": []any{object{
				"name": "node",
				"template": object{"spec": object{"template": object{"spec": object{
					"containers": []any{object{"name": "node", "image": "example.com/image"}},
				}}}},
			}},
		},
	}}
}

// proveJobSet waits until the API server calls JobSet's webhooks: a JobSet then
// comes back with its defaults, and one with a bad name is refused.
func (c *Cluster) proveJobSet(ctx context.Context) error {
	return c.await(ctx, "JobSet's webhooks", func(ctx context.Context) error {
		o := newJobSetObject("probe")
		if err := c.Client.Create(ctx, o, client.DryRunAll); err != nil {
			return err
		}
		if _, ok, _ := unstructured.NestedString(o.Object, "spec", "successPolicy", "operator"); !ok {
			return errors.New("a JobSet was not defaulted")
		}
		o = newJobSetObject("probe")
		o.Object["spec"].(object)["managedBy"] = "not a domain"
		return c.refused(ctx, o, "vjobset.kb.io")
	})
}
