package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const trainerNamespace = "kubeflow-system"

func (c *Cluster) newTrainer(webhookPort int, urls []string) (*Process, error) {
	probe := address(c.ports.take())
	config, err := c.writeConfig(binaries.Trainer, c.rateConfig(object{
		"apiVersion":     "config.trainer.kubeflow.org/v1alpha1",
		"kind":           "Configuration",
		"health":         object{"healthProbeBindAddress": probe},
		"metrics":        object{"bindAddress": "0"},
		"webhook":        object{"host": "127.0.0.1", "port": webhookPort},
		"certManagement": object{"enable": false},
		"statusServer":   object{"port": c.ports.take()},
		// It looks for the lease often, so that it acts at once when a test lets it.
		// The long duration keeps a busy machine from ending its leadership, and with
		// it the process.
		"leaderElection": object{
			"leaderElect": true, "resourceName": trainerLease.Name, "resourceNamespace": trainerLease.Namespace,
			"resourceLock": "leases", "leaseDuration": "60s", "renewDeadline": "40s", "retryPeriod": "500ms",
		},
		"controller": object{"groupKindConcurrency": object{"TrainJob.trainer.kubeflow.org": 5}},
	}))
	if err != nil {
		return nil, err
	}
	p := c.part(binaries.Trainer, c.binaries[binaries.Trainer], trainerUser, "--config="+config, "--zap-log-level=2")
	serves := c.serves("http://"+probe+"/readyz", urls)
	// The lease of a predecessor that was stopped or killed would hold it up for a
	// minute: Trainer does not give it back when it ends.
	p.before = func(ctx context.Context) error {
		if c.trainerPaused() {
			return nil
		}
		return c.setTrainerLease(ctx, "")
	}
	p.ready = func(ctx context.Context) error {
		if err := serves(ctx); err != nil || c.trainerPaused() {
			return err
		}
		return c.trainerLeads(ctx)
	}
	return p, nil
}

// newTrainJobObject returns the least that is a TrainJob.
func newTrainJobObject(name, runtime string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "trainer.kubeflow.org/v1alpha1",
		"kind":       "TrainJob",
		"metadata":   object{"name": name, "namespace": "default"},
		"spec":       object{"suspend": true, "runtimeRef": object{"name": runtime}},
	}}
}

// proveTrainer waits until the API server calls Trainer's webhooks and these
// know the built-in runtimes: one stamps the time of a runtime patch, the other
// refuses a TrainJob without a runtime.
func (c *Cluster) proveTrainer(ctx context.Context) error {
	return c.await(ctx, "Trainer's webhooks", func(ctx context.Context) error {
		if err := c.refused(ctx, newTrainJobObject("probe", "no-such-runtime"), "validator.trainjob.trainer.kubeflow.org"); err != nil {
			return err
		}
		o := newTrainJobObject("probe", "torch-distributed")
		o.Object["spec"].(object)["runtimePatches"] = []any{object{"manager": "example.com/probe"}}
		if err := c.Client.Create(ctx, o, client.DryRunAll); err != nil {
			return err
		}
		patches, _, _ := unstructured.NestedSlice(o.Object, "spec", "runtimePatches")
		if len(patches) == 0 || patches[0].(object)["time"] == nil { // Kueue adds another
			return fmt.Errorf("the time of a runtime patch was not set: %v", patches)
		}
		return nil
	})
}

// refused returns nil when the creation of the object is refused by the webhook
// of that name, which may use any code for it.
func (c *Cluster) refused(ctx context.Context, o *unstructured.Unstructured, webhook string) error {
	err := c.Client.Create(ctx, o, client.DryRunAll)
	if err == nil {
		return fmt.Errorf("%s did not refuse a bad %s", webhook, o.GetKind())
	}
	if _, isStatus := err.(apierrors.APIStatus); isStatus && strings.Contains(err.Error(), webhook) && strings.Contains(err.Error(), "denied the request") {
		return nil
	}
	return err
}
