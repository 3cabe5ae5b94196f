package chart_test

import (
	"maps"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// ownCertificate are values for a certificate that somebody else makes.
var ownCertificate = []string{
	"certificates.existingSecret=made-elsewhere",
	`webhook.configurationAnnotations.cert-manager\.io/inject-ca-from=signalbox-system/signalbox-webhook`,
}

// monitored are values for all that watches Signalbox.
var monitored = []string{
	"metrics.service.enabled=true", "metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=30s",
	"metrics.serviceMonitor.labels.release=prometheus", "metrics.prometheusRule.enabled=true",
	"metrics.prometheusRule.labels.release=prometheus", "metrics.grafanaDashboard.enabled=true",
	"metrics.grafanaDashboard.annotations.folder=Kubeflow",
}

// fenced are values for NetworkPolicies.
var fenced = []string{
	"networkPolicy.enabled=true", "networkPolicy.webhookFrom={10.0.0.0/8,fd00::/8}",
	"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=watch", "networkPolicy.apiServer.cidrs={10.96.0.1/32}",
	"networkPolicy.apiServer.ports={6443}",
}

// allOff are values that turn each feature off.
var allOff = []string{
	"snapshots.enabled=false", "snapshots.gate=false", "policies.enabled=false", "ttl.enabled=false", "runtimes.guard=false",
	"kueue.showSnapshots=false", "trainer.correctEarlyDeadlines=false",
}

// variants are sets of values that take each branch of the templates.
var variants = map[string][]string{
	"default values":           nil,
	"a certificate of its own": ownCertificate,
	"a CA in the values": {
		"certificates.existingSecret=made-elsewhere", "certificates.caBundle=Q0E=",
	},
	"one replica each, no metrics": {
		"webhook.replicas=1", "reconciler.replicas=1", "metrics.port=0",
	},
	"the CRDs come from elsewhere": {"crds.install=false"},
	"the CRDs go with the release": {"crds.keep=false"},
	"early deadlines are kept": {
		"trainer.correctEarlyDeadlines=false", "reconciler.warnBefore=0s",
	},
	"Kueue sees no snapshots": {"kueue.showSnapshots=false"},
	"runtimes in use may be disrupted, the API server refuses clocks": {
		"runtimes.inUse=Allow", "runtimes.admissionPolicy=true",
	},
	"no snapshots":                  {"snapshots.enabled=false"},
	"no gate":                       {"snapshots.gate=false"},
	"no policies":                   {"policies.enabled=false"},
	"nothing is removed":            {"ttl.enabled=false"},
	"runtimes are not guarded":      {"runtimes.guard=false"},
	"every feature is off":          allOff,
	"a certificate of cert-manager": {"certificates.certManager.enabled=true"},
	"an issuer of cert-manager": {
		"certificates.certManager.enabled=true", "certificates.certManager.issuerRef.name=ours",
		"certificates.certManager.issuerRef.kind=ClusterIssuer",
	},
	"watched and fenced in":  append(slices.Clone(monitored), fenced...),
	"fenced in, open to all": {"networkPolicy.enabled=true", "metrics.port=0"},
	"everything optional": {
		"imagePullSecrets={registry}", "log.level=debug", "log.format=text",
		"webhook.image.tag=1.2.3", "webhook.failurePolicy=Ignore", "webhook.timeoutSeconds=10",
		"webhook.runtimeFailurePolicy=Fail", "runtimes.inUse=Warn", "runtimes.admissionPolicy=true",
		"trainer.serviceAccount=team-a/my-trainer.v2", "kueue.serviceAccount=team-a/my-kueue.v2", "reconciler.warnBefore=1h30m",
		"webhook.excludedNamespaces={kube-system,other}", "webhook.jobSetFailurePolicy=Fail",
		"webhook.namespaceSelector.matchLabels.kind=training",
		"webhook.podLabels.mesh=off", "reconciler.podAnnotations.mesh=off",
		"webhook.priorityClassName=system-cluster-critical",
		"webhook.nodeSelector.pool=system",
		"webhook.tolerations[0].key=system", "webhook.tolerations[0].operator=Exists",
		"webhook.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=zone",
		"webhook.topologySpreadConstraints=null", "webhook.resources=null",
		"reconciler.workers=2000000", "reconciler.kubeAPI.qps=1000000", "reconciler.kubeAPI.burst=3000000",
		"global.of=another",
	},
}

func TestLint(t *testing.T) {
	if output, err := command(helm, "lint", "--strict", chart, "--namespace", namespace); err != nil {
		t.Errorf("helm lint: %v\n%s", err, output)
	}
}

func TestObjects(t *testing.T) {
	all := []string{
		"ClusterRole signalbox-reconciler", "ClusterRole signalbox-view", "ClusterRole signalbox-webhook",
		"ClusterRoleBinding signalbox-reconciler", "ClusterRoleBinding signalbox-webhook",
		"CustomResourceDefinition lifecyclepolicies.lifecycle.trainer.kubeflow.org",
		"CustomResourceDefinition trainingruntimesnapshots.lifecycle.trainer.kubeflow.org",
		"Deployment signalbox-reconciler", "Deployment signalbox-webhook",
		"MutatingWebhookConfiguration signalbox",
		"PodDisruptionBudget signalbox-reconciler", "PodDisruptionBudget signalbox-webhook",
		"Role signalbox-reconciler", "Role signalbox-webhook",
		"RoleBinding signalbox-reconciler", "RoleBinding signalbox-webhook",
		"Secret signalbox-webhook-cert", "Service signalbox-webhook",
		"ServiceAccount signalbox-reconciler", "ServiceAccount signalbox-webhook",
		"ValidatingAdmissionPolicy signalbox-runtime-clocks", "ValidatingAdmissionPolicyBinding signalbox-runtime-clocks",
		"ValidatingWebhookConfiguration signalbox",
	}
	ofPolicy := map[string]bool{
		"ValidatingAdmissionPolicy signalbox-runtime-clocks": true, "ValidatingAdmissionPolicyBinding signalbox-runtime-clocks": true,
	}
	keeping := map[string]bool{
		"Role signalbox-webhook": true, "RoleBinding signalbox-webhook": true,
		"Secret signalbox-webhook-cert": true,
	}
	budgets := map[string]bool{
		"PodDisruptionBudget signalbox-reconciler": true, "PodDisruptionBudget signalbox-webhook": true,
	}
	crds := map[string]bool{
		"CustomResourceDefinition lifecyclepolicies.lifecycle.trainer.kubeflow.org":        true,
		"CustomResourceDefinition trainingruntimesnapshots.lifecycle.trainer.kubeflow.org": true,
	}
	for name, tc := range map[string]struct {
		values  []string
		without map[string]bool
		with    []string
		policy  bool
	}{
		"default values give everything but the policy": {},
		"with the policy": {values: withPolicy, policy: true},
		"with the policy, runtimes in use may be disrupted": {
			values: append(withPolicy, "runtimes.inUse=Allow"), policy: true,
		},
		"a certificate of its own needs no Secret and no rights in the namespace": {
			values: ownCertificate, without: keeping,
		},
		"one replica has no budget": {
			values: []string{"webhook.replicas=1", "reconciler.replicas=1"}, without: budgets,
		},
		"CRDs from elsewhere": {values: []string{"crds.install=false"}, without: crds},
		"CRDs from elsewhere have nothing to keep": {
			values: []string{"crds.install=false", "crds.keep=true"}, without: crds,
		},
		"CRDs that are not kept are still there": {values: []string{"crds.keep=false"}},
		"features that are off":                  {values: allOff},
		"cert-manager": {
			values: variants["a certificate of cert-manager"], without: keeping,
			with: []string{"Certificate signalbox-ca", "Certificate signalbox-webhook", "Issuer signalbox-ca", "Issuer signalbox-self-signed"},
		},
		"cert-manager with an issuer of its own": {
			values: variants["an issuer of cert-manager"], without: keeping, with: []string{"Certificate signalbox-webhook"},
		},
		"watched and fenced in": {values: variants["watched and fenced in"], with: []string{
			"ConfigMap signalbox-dashboard", "NetworkPolicy signalbox-reconciler", "NetworkPolicy signalbox-webhook",
			"PrometheusRule signalbox", "Service signalbox-metrics", "ServiceMonitor signalbox",
		}},
		"a Service for the metrics": {values: monitored[:1], with: []string{"Service signalbox-metrics"}},
		"a ServiceMonitor has a Service": {
			values: monitored[1:2], with: []string{"Service signalbox-metrics", "ServiceMonitor signalbox"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []string
			for _, object := range all {
				if !tc.without[object] && (tc.policy || !ofPolicy[object]) {
					want = append(want, object)
				}
			}
			want = append(want, tc.with...)
			sort.Strings(want)
			for _, object := range render(t, tc.values...) {
				accessor := object.(metav1.Object)
				got = append(got, object.GetObjectKind().GroupVersionKind().Kind+" "+accessor.GetName())
			}
			sort.Strings(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReferences checks that what one object says of another is so.
func TestReferences(t *testing.T) {
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			objects := render(t, values...)
			checkAccounts(t, objects)
			deployments := named[*appsv1.Deployment](t, objects)
			for name, service := range named[*corev1.Service](t, objects) {
				of := []*appsv1.Deployment{deployments[name]}
				if name == "signalbox-metrics" {
					of = slices.Collect(maps.Values(deployments))
				}
				for _, deployment := range of {
					checkSelects(t, "Service "+name, labels.SelectorFromSet(service.Spec.Selector), deployment)
				}
			}
			for name, policy := range named[*networkingv1.NetworkPolicy](t, objects) {
				checkSelects(t, "NetworkPolicy "+name, selector(t, &policy.Spec.PodSelector), deployments[name])
			}
			for name, budget := range named[*policyv1.PodDisruptionBudget](t, objects) {
				checkSelects(t, "PodDisruptionBudget "+name, selector(t, budget.Spec.Selector), deployments[name])
			}
			for name, deployment := range deployments {
				checkSelects(t, "Deployment "+name, selector(t, deployment.Spec.Selector), deployment)
				for _, spread := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
					checkSelects(t, "spread of "+name, selector(t, spread.LabelSelector), deployment)
				}
			}
		})
	}
}

// checkAccounts checks that the ServiceAccounts of pods and bindings and the roles of
// bindings are there.
func checkAccounts(t *testing.T, objects []runtime.Object) {
	t.Helper()
	accounts := named[*corev1.ServiceAccount](t, objects)
	for name, deployment := range named[*appsv1.Deployment](t, objects) {
		if account := deployment.Spec.Template.Spec.ServiceAccountName; accounts[account] == nil {
			t.Errorf("Deployment %s: there is no ServiceAccount %q", name, account)
		}
	}
	there := map[string]bool{}
	for name := range named[*rbacv1.ClusterRole](t, objects) {
		there["ClusterRole "+name] = true
	}
	for name := range named[*rbacv1.Role](t, objects) {
		there["Role "+name] = true
	}
	check := func(name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if !there[role.Kind+" "+role.Name] {
			t.Errorf("binding %s: there is no %s %q", name, role.Kind, role.Name)
		}
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}}
		if diff := cmp.Diff(want, subjects); diff != "" || accounts[name] == nil {
			t.Errorf("binding %s: subjects (-want +got):\n%s", name, diff)
		}
	}
	for name, binding := range named[*rbacv1.ClusterRoleBinding](t, objects) {
		check(name, binding.RoleRef, binding.Subjects)
	}
	for name, binding := range named[*rbacv1.RoleBinding](t, objects) {
		check(name, binding.RoleRef, binding.Subjects)
	}
}

func selector(t *testing.T, of *metav1.LabelSelector) labels.Selector {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

func checkSelects(t *testing.T, who string, selector labels.Selector, deployment *appsv1.Deployment) {
	t.Helper()
	if deployment == nil {
		t.Errorf("%s: there is no Deployment of its name", who)
	} else if selector.Empty() || !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("%s: selector %q does not match the pods' labels %v", who, selector, deployment.Spec.Template.Labels)
	}
}

// TestRestrictedPods checks that namespaces with the strictest pod security level admit the
// pods.
func TestRestrictedPods(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			for name, deployment := range named[*appsv1.Deployment](t, render(t, values...)) {
				pod := deployment.Spec.Template
				result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
				if !result.Allowed {
					t.Errorf("%s: %s", name, result.ForbiddenDetail())
				}
				if root := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
					t.Errorf("%s: the root file system is writable", name)
				}
			}
		})
	}
}

func TestSecretHasNoData(t *testing.T) {
	secret := named[*corev1.Secret](t, render(t))["signalbox-webhook-cert"]
	if secret == nil {
		t.Fatal("there is no Secret signalbox-webhook-cert")
	}
	if secret.Data != nil || secret.StringData != nil {
		t.Errorf("the Secret has data: Helm would own it and take the certificate away")
	}
}

func TestHelmRefusesOldKubernetes(t *testing.T) {
	_, err := command(helm, "template", "signalbox", chart, "--kube-version", "1.32.9")
	checkError(t, err, "chart requires kubeVersion: >=1.33.0-0 which is incompatible with Kubernetes v1.32.9")
}
