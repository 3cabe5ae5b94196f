package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const (
	kueueNamespace = "kueue-system"
	kueueSecret    = "kueue-webhook-server-cert"
	queueNameLabel = "kueue.x-k8s.io/queue-name"

	// podsReadyTimeout is how long the pods of an admitted TrainJob may take to be ready,
	// and may then not be ready, before Kueue evicts it. Busy machines need some of it.
	podsReadyTimeout = time.Minute
)

func (c *Cluster) newKueue(webhookPort int, urls []string) (*Process, error) {
	probe := address(c.ports.take())
	config, err := c.writeConfig(binaries.Kueue, object{
		"apiVersion":       "config.kueue.x-k8s.io/v1beta2",
		"kind":             "Configuration",
		"namespace":        kueueNamespace,
		"health":           object{"healthProbeBindAddress": probe},
		"metrics":          object{"bindAddress": "0"},
		"webhook":          object{"host": "127.0.0.1", "port": webhookPort, "certDir": c.certs.dir},
		"leaderElection":   object{"leaderElect": false},
		"clientConnection": object{"qps": 300, "burst": 500},
		// Without its own management of certificates it reads one from a fixed folder
		// under /etc. With it, it takes those that fillKueueSecret puts in its Secret.
		"internalCertManagement": object{"enable": true, "webhookServiceName": "kueue-webhook-service", "webhookSecretName": kueueSecret},
		"integrations":           object{"frameworks": []string{"jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"}},
		// Kueue waits for pods by default too, but for half an hour, and then a minute until
		// it lets the TrainJob try again.
		"waitForPodsReady": object{
			"timeout":           podsReadyTimeout.String(),
			"requeuingStrategy": object{"timestamp": "Eviction", "backoffBaseSeconds": 2},
		},
	})
	if err != nil {
		return nil, err
	}
	p := c.part(binaries.Kueue, c.binaries[binaries.Kueue], kueueUser, "--config="+config, "--zap-log-level=2",
		"--feature-gates=VisibilityOnDemand=false")
	p.ready = c.serves("http://"+probe+"/readyz", urls)
	return p, nil
}

// fillKueueSecret puts the cluster's certificates in the Secret that Kueue's
// manifests create empty. Kueue finds them valid and keeps them.
func (c *Cluster) fillKueueSecret(objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetKind() == "Secret" && o.GetNamespace() == kueueNamespace && o.GetName() == kueueSecret {
			data := object{}
			for name, content := range c.certs.pems {
				data[name] = base64.StdEncoding.EncodeToString(content)
			}
			o.Object["data"] = data
		}
	}
}

// proveKueue waits until the API server calls Kueue's webhooks: an active
// TrainJob of a queue then comes back suspended.
func (c *Cluster) proveKueue(ctx context.Context) error {
	return c.await(ctx, "Kueue's webhooks", func(ctx context.Context) error {
		o := newTrainJobObject("probe", "torch-distributed")
		o.Object["spec"].(object)["suspend"] = false
		o.SetLabels(map[string]string{queueNameLabel: "probe"})
		if err := c.Client.Create(ctx, o, client.DryRunAll); err != nil {
			return err
		}
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); !suspended {
			return errors.New("a TrainJob of a queue was not suspended")
		}
		return nil
	})
}

// AddQueue creates a LocalQueue of that name in the namespace, which must exist,
// with a ClusterQueue NAMESPACE-NAME of its own, and waits until it admits jobs.
// cpuQuota, such as "4" or "500m", is all the CPU that admitted jobs may request
// together; memory and GPUs are in plenty. A Workload of higher priority preempts
// one of lower priority. Jobs join by the label kueue.x-k8s.io/queue-name: NAME.
// The cluster must have been started with Options.Kueue.
func (c *Cluster) AddQueue(ctx context.Context, namespace, name, cpuQuota string) error {
	if c.Kueue == nil {
		return errors.New("the cluster has no Kueue")
	}
	kueueObject := func(kind, namespace, name string, spec object) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: object{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "spec": spec}}
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	const flavor = "default"
	clusterQueue := namespace + "-" + name
	quota := func(resource, amount string) any { return object{"name": resource, "nominalQuota": amount} }
	queue := kueueObject("LocalQueue", namespace, name, object{"clusterQueue": clusterQueue})
	for _, o := range []*unstructured.Unstructured{
		kueueObject("ResourceFlavor", "", flavor, object{}),
		kueueObject("ClusterQueue", "", clusterQueue, object{
			"namespaceSelector": object{},
			"preemption":        object{"withinClusterQueue": "LowerPriority"},
			"resourceGroups": []any{object{
				"coveredResources": []any{"cpu", "memory", "nvidia.com/gpu"},
				"flavors": []any{object{"name": flavor, "resources": []any{
					quota("cpu", cpuQuota), quota("memory", "1Pi"), quota("nvidia.com/gpu", "1000000"),
				}}},
			}},
		}),
		queue,
	} {
		// The flavor is there already after the first call.
		if err := c.Client.Create(ctx, o); err != nil && (o.GetKind() != "ResourceFlavor" || !apierrors.IsAlreadyExists(err)) {
			return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return c.await(ctx, "the queue "+name, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(queue.Object, "status", "conditions")
		for _, condition := range conditions {
			if condition.(object)["type"] == "Active" && condition.(object)["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("it is not active: %v", conditions)
	})
}
