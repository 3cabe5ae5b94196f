package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const (
	signalboxNamespace = "signalbox-system"
	resumedAt          = "lifecycle.trainer.kubeflow.org/resumed-at"
)

var (
	webhookUser    = serviceAccount(signalboxNamespace, "signalbox-webhook")
	reconcilerUser = serviceAccount(signalboxNamespace, "signalbox-reconciler")
)

// renderSignalbox renders the chart as `helm install` would, with the namespace
// that an admin would have made.
func (c *Cluster) renderSignalbox(ctx context.Context) ([]*unstructured.Unstructured, error) {
	version, err := binaries.Version(c.root, "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	args := []string{"template", "signalbox", "charts/signalbox", "--namespace", signalboxNamespace, "--include-crds", "--kube-version", version}
	for _, value := range c.options.HelmValues {
		args = append(args, "--set", value)
	}
	out, err := binaries.Helm(ctx, c.root, c.log, args...)
	if err != nil {
		return nil, err
	}
	objects, err := decode(bytes.NewReader(out))
	if err != nil {
		return nil, err
	}
	namespace := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(signalboxNamespace)
	return append(objects, namespace), nil
}

// newWebhook returns the webhook process that the chart's Deployment describes,
// moved to this machine by flags at the end: the last of two equal flags counts.
func (c *Cluster) newWebhook(chart []*unstructured.Unstructured, port int, urls []string) (*Process, error) {
	p, health, err := c.fromDeployment(chart, "webhook", c.signalbox.webhook, webhookUser,
		"--webhook-host=127.0.0.1", fmt.Sprintf("--webhook-port=%d", port), "--cert-dir="+c.certs.dir)
	if err != nil {
		return nil, err
	}
	p.ready = c.serves(health, urls)
	return p, nil
}

func (c *Cluster) newReconciler(chart []*unstructured.Unstructured) (*Process, error) {
	p, health, err := c.fromDeployment(chart, "reconciler", c.signalbox.reconciler, reconcilerUser)
	if err != nil {
		return nil, err
	}
	p.ready = c.healthy(health)
	return p, nil
}

// fromDeployment returns the process of a component of the chart and the URL of
// its readiness probe. It takes the args and the environment of the Deployment's
// container, as the kubelet would.
func (c *Cluster) fromDeployment(chart []*unstructured.Unstructured, component, path, user string, flags ...string) (*Process, string, error) {
	deployment, err := findDeployment(chart, component)
	if err != nil {
		return nil, "", err
	}
	pod := deployment.Spec.Template.Spec
	if account := serviceAccount(deployment.Namespace, pod.ServiceAccountName); account != user {
		return nil, "", fmt.Errorf("the chart's %s runs as %s, the cluster knows only %s", component, account, user)
	}
	if len(pod.Containers) != 1 {
		return nil, "", fmt.Errorf("the chart's %s has %d containers, want 1", component, len(pod.Containers))
	}
	variables, err := environment(deployment)
	if err != nil {
		return nil, "", err
	}
	var expand []string
	env := c.env(user)
	for name, value := range variables {
		expand = append(expand, "$("+name+")", value)
		env = append(env, name+"="+value)
	}
	replacer := strings.NewReplacer(expand...)
	var args []string
	for _, arg := range pod.Containers[0].Args {
		args = append(args, replacer.Replace(arg))
	}
	metrics, probes := address(c.ports.take()), address(c.ports.take())
	args = append(args, flags...)
	args = append(args, "--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes, "--kubeconfig="+c.kubeconfig(user))
	p := c.part("signalbox-"+component, path, user, args...)
	p.env = env
	p.MetricsURL = "http://" + metrics + "/metrics"
	return p, "http://" + probes + "/readyz", nil
}

func findDeployment(chart []*unstructured.Unstructured, component string) (*appsv1.Deployment, error) {
	for _, o := range chart {
		if o.GetKind() == "Deployment" && o.GetLabels()["app.kubernetes.io/component"] == component {
			deployment := &appsv1.Deployment{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment)
			return deployment, err
		}
	}
	return nil, fmt.Errorf("the chart has no Deployment with the label app.kubernetes.io/component=%s", component)
}

// environment returns the variables that the kubelet would set for the only
// replica of the Deployment.
func environment(deployment *appsv1.Deployment) (map[string]string, error) {
	variables := map[string]string{}
	for _, e := range deployment.Spec.Template.Spec.Containers[0].Env {
		value := e.Value
		if e.ValueFrom != nil {
			field := ""
			if e.ValueFrom.FieldRef != nil {
				field = e.ValueFrom.FieldRef.FieldPath
			}
			switch field {
			case "metadata.name":
				value = deployment.Name + "-0"
			case "metadata.namespace":
				value = deployment.Namespace
			default:
				return nil, fmt.Errorf("environment variable %s of %s has a source that a test cluster does not know", e.Name, deployment.Name)
			}
		}
		variables[e.Name] = value
	}
	return variables, nil
}

// proveSignalbox waits until the API server calls the TrainJob webhook: a new
// TrainJob that is active then comes back with the time of its start.
func (c *Cluster) proveSignalbox(ctx context.Context) error {
	return c.await(ctx, "signalbox's webhook", func(ctx context.Context) error {
		o := newTrainJobObject("probe", "torch-distributed")
		o.Object["spec"].(object)["suspend"] = false
		if err := c.Client.Create(ctx, o, client.DryRunAll); err != nil {
			return err
		}
		if o.GetAnnotations()[resumedAt] == "" {
			return errors.New("an active TrainJob was not given the annotation " + resumedAt)
		}
		return nil
	})
}

// races returns an error when a part of signalbox that was built with -race has
// reported a data race.
func (c *Cluster) races() error {
	for _, p := range []*Process{c.Webhook, c.Reconciler} {
		if p == nil {
			continue
		}
		log, err := os.ReadFile(p.LogPath)
		if err != nil {
			continue // it was never started
		}
		if i := bytes.Index(log, []byte("WARNING: DATA RACE")); i >= 0 {
			return fmt.Errorf("%s has a data race:\n%s", p.Name, log[i:min(len(log), i+4000)])
		}
	}
	return nil
}
