package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const (
	signalboxNamespace = "signalbox-system"
	signalboxName      = "signalbox"
	nameLabel          = "app.kubernetes.io/name"
	componentLabel     = "app.kubernetes.io/component"
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
	p, err := c.fromDeployment(chart, "webhook", c.signalbox.webhook, webhookUser,
		"--webhook-host=127.0.0.1", fmt.Sprintf("--webhook-port=%d", port), "--cert-dir="+c.certs.dir,
		// Nobody else serves to whom it could turn callers.
		"--drain=0s")
	if err != nil {
		return nil, err
	}
	p.ready = c.serves(p.probe, urls)
	return p, nil
}

func (c *Cluster) newReconciler(chart []*unstructured.Unstructured) (*Process, error) {
	p, err := c.fromDeployment(chart, "reconciler", c.signalbox.reconciler, reconcilerUser)
	if err != nil {
		return nil, err
	}
	p.ready = c.healthy(p.probe)
	return p, nil
}

// fromDeployment returns the process of a component of the chart, as its only replica.
func (c *Cluster) fromDeployment(chart []*unstructured.Unstructured, component, path, user string, flags ...string) (*Process, error) {
	deployment, err := findDeployment(chart, component)
	if err != nil {
		return nil, err
	}
	if account := serviceAccount(deployment.Namespace, deployment.Spec.Template.Spec.ServiceAccountName); account != user {
		return nil, fmt.Errorf("the chart's %s runs as %s, the cluster knows only %s", component, account, user)
	}
	pod := &corev1.Pod{Spec: deployment.Spec.Template.Spec}
	pod.Namespace, pod.Name = deployment.Namespace, deployment.Name+"-0"
	return c.fromPod("signalbox-"+component, pod, path, user, c.ports.take(), c.ports.take(), flags...)
}

// fromPod returns a process that runs the only container of a pod of the chart, with its args
// and its environment, as the kubelet would, and then these flags.
func (c *Cluster) fromPod(name string, pod *corev1.Pod, path, user string, metrics, probes int, flags ...string) (*Process, error) {
	if len(pod.Spec.Containers) != 1 {
		return nil, fmt.Errorf("pod %s has %d containers, want 1", pod.Name, len(pod.Spec.Containers))
	}
	variables, err := environment(pod)
	if err != nil {
		return nil, err
	}
	var expand []string
	env := c.env(user)
	for name, value := range variables {
		expand = append(expand, "$("+name+")", value)
		env = append(env, name+"="+value)
	}
	replacer := strings.NewReplacer(expand...)
	var args []string
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, replacer.Replace(arg))
	}
	args = append(args, flags...)
	args = append(args, "--kubeconfig="+c.kubeconfig(user))
	p := c.part(name, path, user, args...)
	p.env = env
	p.serveOn(metrics, probes)
	return p, nil
}

// serveOn has a part of signalbox serve its metrics and its probes on ports of its own. Of two
// equal flags the last counts.
func (p *Process) serveOn(metrics, probes int) {
	p.args = append(p.args, "--metrics-bind-address="+address(metrics), "--health-probe-bind-address="+address(probes))
	p.MetricsURL = "http://" + address(metrics) + "/metrics"
	p.probe = "http://" + address(probes) + "/readyz"
}

func findDeployment(chart []*unstructured.Unstructured, component string) (*appsv1.Deployment, error) {
	for _, o := range chart {
		if o.GetKind() == "Deployment" && o.GetLabels()[componentLabel] == component {
			deployment := &appsv1.Deployment{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment)
			return deployment, err
		}
	}
	return nil, fmt.Errorf("the chart has no Deployment with the label %s=%s", componentLabel, component)
}

// environment returns the variables that the kubelet would set in the only container of the pod.
func environment(pod *corev1.Pod) (map[string]string, error) {
	variables := map[string]string{}
	for _, e := range pod.Spec.Containers[0].Env {
		value := e.Value
		if e.ValueFrom != nil {
			field := ""
			switch {
			case e.ValueFrom.FieldRef != nil:
				field = e.ValueFrom.FieldRef.FieldPath
			case e.ValueFrom.ResourceFieldRef != nil:
				field = e.ValueFrom.ResourceFieldRef.Resource
			}
			switch field {
			case "limits.memory":
				value = strconv.FormatInt(pod.Spec.Containers[0].Resources.Limits.Memory().Value(), 10)
			case "metadata.name":
				value = pod.Name
			case "metadata.namespace":
				value = pod.Namespace
			default:
				return nil, fmt.Errorf("environment variable %s of %s has a source that a test cluster does not know", e.Name, pod.Name)
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
	for _, p := range c.parts {
		if p.MetricsURL == "" {
			continue // no part of signalbox
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
