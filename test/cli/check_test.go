package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/builder"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// TestCLICheck walks one cluster, which Helm installs Signalbox into, through what `check` is to find:
// before Signalbox is there, with a runtime that breaks the rule, set up right, and with one thing wrong
// after the other.
func TestCLICheck(t *testing.T) {
	s := startCheck(t, cluster.Options{Pods: true, Kueue: true, Log: os.Stderr})
	s.ready("kubeflow-system", "kubeflow-trainer-controller-manager")
	s.ready("kueue-system", "kueue-controller-manager")
	s.golden("check-without-signalbox", 1)

	clocked := builder.ClusterTrainingRuntime("clocked").Obj()
	clocked.SetUID("")
	clocked.SetGeneration(0)
	template := child(clocked.Object, "spec", "template", "spec")
	template["replicatedJobs"].([]any)[0].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["activeDeadlineSeconds"] = int64(5)
	clocked.SetLabels(map[string]string{"trainer.kubeflow.org/framework": "torch", "trainer.kubeflow.org/webhook-validation": "disabled"})
	clocked.SetAnnotations(map[string]string{v1alpha1.AnnotationDefaultActiveDeadlineSeconds: "1h"})
	s.must(s.cluster.Client.Create(s.ctx, clocked))

	s.helm("install", "signalbox", "charts/signalbox", "--create-namespace", "--wait", "--timeout", patience.String())
	s.golden("check-runtime-with-a-clock", 0)
	s.must(s.cluster.Client.Delete(s.ctx, clocked))

	s.golden("check-right", 0)
	s.golden("check-right-json", 0, "-o", "json")
	s.apply("examples/plugin-reader.yaml")
	s.golden("check-reader", 0, "--as", "somebody", "--as-group", "trainjob-readers")
	s.golden("check-no-rights", 2, "--as", "somebody", "--as-group", "system:authenticated")
	s.policies()
	s.kueueAccount()
	s.staleLease()
	s.webhookAway()

	s.helm("uninstall", "signalbox", "--wait")
	s.golden("check-uninstalled", 1)
}

// policies has policies that select all, none, and nothing for a mistake.
func (s *checkScene) policies() {
	s.Helper()
	policy := func(name string, selector *metav1.LabelSelector) *unstructured.Unstructured {
		hours := &v1alpha1.Duration{Duration: metav1.Duration{Duration: 8 * time.Hour}}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.LifecyclePolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.LifecyclePolicySpec{NamespaceSelector: selector, ActiveDeadline: &v1alpha1.ActiveDeadlinePolicy{Default: hours}},
		})
		s.must(err)
		delete(object, "status")
		made := &unstructured.Unstructured{Object: object}
		made.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind))
		return made
	}
	where := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	all := []*unstructured.Unstructured{
		policy("everybody", nil), policy("nobody", where("team", metav1.LabelSelectorOpExists)), policy("typo", where("team", "Inside", "a")),
		policy("two", where(corev1.LabelMetadataName, metav1.LabelSelectorOpIn, "default", "kube-public")),
	}
	for _, one := range all {
		s.must(s.cluster.Client.Create(s.ctx, one))
	}
	s.golden("check-policies", 1)
	for _, one := range all {
		s.must(s.cluster.Client.Delete(s.ctx, one))
	}
}

// kueueAccount has the chart given another service account than Kueue has.
func (s *checkScene) kueueAccount() {
	s.Helper()
	s.upgrade("--set", "kueue.serviceAccount=queues/kueue")
	s.golden("check-kueue-account", 1)
	s.upgrade("--set", "kueue.showSnapshots=false")
	s.golden("check-kueue-not-shown", 0)
	s.upgrade()
}

// staleLease has no reconciler, and a Lease as one leaves it that vanished.
func (s *checkScene) staleLease() {
	s.Helper()
	s.scale("signalbox-reconciler", 0)
	lease := &coordinationv1.Lease{}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: checkNamespace, Name: "signalbox-reconciler"}, lease))
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To("signalbox-reconciler-gone"), ptr.To[int32](15)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-10 * time.Minute)}
	s.must(s.cluster.Client.Update(s.ctx, lease))
	s.golden("check-stale-lease", 1)
	s.scale("signalbox-reconciler", 2)
	s.eventually("a reconciler that acts", func() (bool, string) {
		text, _, _ := s.run("check")
		return strings.Contains(text, " acts, and has renewed"), text
	})
}

// webhookAway has no webhook, and then a certificate that has ended besides.
func (s *checkScene) webhookAway() {
	s.Helper()
	s.scale("signalbox-webhook", 0)
	s.golden("check-webhook-away", 1)
	secret := &corev1.Secret{}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: checkNamespace, Name: "signalbox-webhook-cert"}, secret))
	good := secret.Data["tls.crt"]
	secret.Data["tls.crt"] = s.ended(secret)
	s.must(s.cluster.Client.Update(s.ctx, secret))
	s.golden("check-certificate-ended", 1)
	secret.Data["tls.crt"] = good
	s.must(s.cluster.Client.Update(s.ctx, secret))
	s.scale("signalbox-webhook", 2)
}

// TestCLICheckWithoutNeighbours has the kinds of Trainer and JobSet at first, and neither Kueue nor
// Signalbox.
func TestCLICheckWithoutNeighbours(t *testing.T) {
	s := startCheck(t, cluster.Options{KindsOnly: true, Log: os.Stderr})
	// Nobody plays the pods of Trainer here.
	deployment := &appsv1.Deployment{}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: "kubeflow-system", Name: "kubeflow-trainer-controller-manager"}, deployment))
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 1, 1
	s.must(s.cluster.Client.Status().Update(s.ctx, deployment))
	s.golden("check-without-kueue", 1)

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	s.must(s.cluster.Client.List(s.ctx, list))
	for i := range list.Items {
		if crd := &list.Items[i]; crd.Spec.Group == "trainer.kubeflow.org" || crd.Spec.Group == "jobset.x-k8s.io" {
			s.must(s.cluster.Client.Delete(s.ctx, crd))
		}
	}
	s.eventually("the kinds to go", func() (bool, string) {
		var left apiextensionsv1.CustomResourceDefinitionList
		s.must(s.cluster.Client.List(s.ctx, &left))
		text, _, _ := s.run("check")
		return len(left.Items) == 0 && strings.Contains(text, "JobSet       not installed"), text
	})
	s.golden("check-without-trainer", 1)
}

// An API server that does not answer is no fault of the cluster.
func TestCLICheckWithoutACluster(t *testing.T) {
	s := &scene{T: t, ctx: t.Context(), namespace: "default", kubeconfig: nowhere(t), cache: t.TempDir()}
	out, complaint, code := s.run("check")
	if code != 2 || out != "" || !strings.HasPrefix(complaint, "error: ask the API server for its version: ") || strings.Count(complaint, "\n") != 1 {
		t.Errorf("exit code %d, %q, %q", code, out, complaint)
	}
}

// ready waits until all replicas of a Deployment are ready.
func (s *checkScene) ready(namespace, name string) {
	s.Helper()
	s.eventually(fmt.Sprintf("Deployment %s/%s", namespace, name), func() (bool, string) {
		deployment := &appsv1.Deployment{}
		err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment)
		status := deployment.Status
		return err == nil && status.ReadyReplicas == *deployment.Spec.Replicas && status.ObservedGeneration == deployment.Generation, fmt.Sprintf("%+v, %v", status, err)
	})
}

// scale waits until a Deployment of Signalbox has as many ready pods, and its Service as many endpoints.
func (s *checkScene) scale(name string, replicas int32) {
	s.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: checkNamespace, Name: name}}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	s.must(s.cluster.Client.Patch(s.ctx, deployment, client.RawPatch("application/merge-patch+json", patch)))
	s.eventually(fmt.Sprintf("%d replicas of %s", replicas, name), func() (bool, string) {
		pods := &corev1.PodList{}
		s.must(s.cluster.Client.List(s.ctx, pods, client.InNamespace(checkNamespace), client.MatchingLabels{"app.kubernetes.io/component": strings.TrimPrefix(name, "signalbox-")}))
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(deployment), deployment))
		return len(pods.Items) == int(replicas) && deployment.Status.ReadyReplicas == replicas, fmt.Sprintf("%d pods, %+v", len(pods.Items), deployment.Status)
	})
	if name != "signalbox-webhook" {
		return
	}
	s.eventually("the endpoints of the webhook", func() (bool, string) {
		n := s.endpoints()
		return n == int(replicas), fmt.Sprint(n)
	})
}
