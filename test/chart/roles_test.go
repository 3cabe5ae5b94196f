package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRoles holds every right, with the call that needs it. More than these is too much.
func TestRoles(t *testing.T) {
	trainJobCRD := only("trainjobs.trainer.kubeflow.org", allow("apiextensions.k8s.io", "customresourcedefinitions", "list", "watch"))
	seen := allow("lifecycle.trainer.kubeflow.org", "trainingruntimesnapshots", "get", "list", "watch")
	seen.Resources = append(seen.Resources, "lifecyclepolicies")
	common := map[string][]rbacv1.PolicyRule{
		"ClusterRole signalbox-reconciler": {
			// List and watch are the cache; get is the last look before a TrainJob is failed, or
			// deleted when it has been finished for long enough.
			allow("trainer.kubeflow.org", "trainjobs", "get", "list", "watch", "delete"),
			allow("trainer.kubeflow.org", "trainjobs/status", "patch"),
			// What a TrainJob owns blocks its deletion in the foreground. Where the admission
			// plugin OwnerReferencesPermissionEnforcement is on, saying so takes this right.
			allow("trainer.kubeflow.org", "trainjobs/finalizers", "update"),
			runtimes("get", "list", "watch", "patch"),
			// The copies that Trainer reads: their names are those of the TrainJobs.
			allow("", "configmaps", "get", "list", "watch", "create", "patch", "delete"),
			allow("lifecycle.trainer.kubeflow.org", "trainingruntimesnapshots", "get", "list", "watch", "create", "patch", "delete"),
			// All are in the cache, and nothing but their status is written.
			allow("lifecycle.trainer.kubeflow.org", "lifecyclepolicies", "list", "watch"),
			allow("lifecycle.trainer.kubeflow.org", "lifecyclepolicies/status", "patch"),
			// List and watch are the cache of their labels; get is for one that this does not have yet.
			allow("", "namespaces", "get", "list", "watch"),
			allow("jobset.x-k8s.io", "jobsets", "get", "list", "watch", "delete"),
			// An event has a name of its own, so that none is ever patched.
			allow("", "events", "create"),
			// A list of each at an expiry, of one namespace and label; they are not cached.
			allow("", "pods", "list"), allow("batch", "jobs", "list"),
			trainJobCRD,
		},
		"ClusterRole signalbox-view": {
			seen,
		},
		"Role signalbox-reconciler": {
			allow("coordination.k8s.io", "leases", "create"),
			only("signalbox-reconciler", allow("coordination.k8s.io", "leases", "get", "update")),
		},
	}
	// Whoever makes the certificate.
	judging := []rbacv1.PolicyRule{
		// The JobSet webhook reads the TrainJob live. List and watch are the cache that tells
		// which TrainJobs use a runtime; get is the last look before its deletion is refused.
		allow("trainer.kubeflow.org", "trainjobs", "get", "list", "watch"),
		// List and watch are the cache of their labels, by which policies select them; get is for
		// one that this does not have yet, and a live look at that of a runtime whose deletion
		// would be refused.
		allow("", "namespaces", "get", "list", "watch"),
		// All are in the cache.
		allow("lifecycle.trainer.kubeflow.org", "lifecyclepolicies", "list", "watch"),
		// A TrainJob is sealed on the runtime as it is stored, and gets its defaults: no cache.
		runtimes("get"),
		// The JobSet webhook reads Trainer's copy of the runtime live.
		allow("", "configmaps", "get"),
		allow("lifecycle.trainer.kubeflow.org", "trainingruntimesnapshots", "get"),
		// What Kueue asks for by a dry run is answered from the Workload that it has for the
		// TrainJob, by its label, and from the JobSet that runs.
		allow("kueue.x-k8s.io", "workloads", "list"),
		allow("jobset.x-k8s.io", "jobsets", "get"),
		trainJobCRD,
	}
	configurations := only("signalbox", allow("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list", "watch", "patch"))
	configurations.Resources = append(configurations.Resources, "validatingwebhookconfigurations")
	selfManaged := map[string][]rbacv1.PolicyRule{
		"ClusterRole signalbox-webhook": append(slices.Clone(judging), configurations),
		"Role signalbox-webhook": {
			only("signalbox-webhook-cert", allow("", "secrets", "list", "watch", "update")),
		},
	}
	givenCertificate := map[string][]rbacv1.PolicyRule{
		"ClusterRole signalbox-webhook": judging,
	}
	// Nothing asks which TrainJobs use a runtime.
	unguarded := maps.Clone(selfManaged)
	unguarded["ClusterRole signalbox-webhook"] = append([]rbacv1.PolicyRule{allow("trainer.kubeflow.org", "trainjobs", "get")},
		selfManaged["ClusterRole signalbox-webhook"][1:]...)
	// Nothing answers Kueue.
	unshown := maps.Clone(selfManaged)
	unshown["ClusterRole signalbox-webhook"] = slices.DeleteFunc(slices.Clone(selfManaged["ClusterRole signalbox-webhook"]),
		func(rule rbacv1.PolicyRule) bool {
			return rule.APIGroups[0] == "kueue.x-k8s.io" || rule.APIGroups[0] == "jobset.x-k8s.io"
		})
	for name, tc := range map[string]struct {
		values  []string
		webhook map[string][]rbacv1.PolicyRule
	}{
		"default values":                                  {webhook: selfManaged},
		"early deadlines are kept":                        {values: variants["early deadlines are kept"], webhook: selfManaged},
		"everything optional":                             {values: variants["everything optional"], webhook: selfManaged},
		"runtimes in use may be disrupted":                {values: []string{"runtimes.inUse=Allow"}, webhook: unguarded},
		"disruptions of runtimes in use are warned about": {values: []string{"runtimes.inUse=Warn"}, webhook: selfManaged},
		"Kueue sees no snapshots":                         {values: variants["Kueue sees no snapshots"], webhook: unshown},
		// The API server takes no rights to evaluate it.
		"the API server refuses clocks": {values: withPolicy, webhook: selfManaged},
		"a certificate of its own":      {values: ownCertificate, webhook: givenCertificate},
		"a CA in the values":            {values: variants["a CA in the values"], webhook: givenCertificate},
		// Who installs it says nothing of who may see it.
		"the CRDs come from elsewhere": {values: variants["the CRDs come from elsewhere"], webhook: selfManaged},
	} {
		t.Run(name, func(t *testing.T) {
			want := maps.Clone(common)
			maps.Copy(want, tc.webhook)
			objects := render(t, tc.values...)
			got := map[string][]rbacv1.PolicyRule{}
			for name, role := range named[*rbacv1.ClusterRole](t, objects) {
				got["ClusterRole "+name] = role.Rules
			}
			for name, role := range named[*rbacv1.Role](t, objects) {
				got["Role "+name] = role.Rules
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAggregatedRoles checks that users get the rights of one role, and of no other: a label
// would give everybody who may view a namespace those of the reconciler too.
func TestAggregatedRoles(t *testing.T) {
	want := map[string]map[string]string{
		"signalbox-view":       {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
		"signalbox-reconciler": {},
		"signalbox-webhook":    {},
	}
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			got := map[string]map[string]string{}
			for name, role := range named[*rbacv1.ClusterRole](t, render(t, values...)) {
				got[name] = maps.Clone(role.Labels)
				maps.DeleteFunc(got[name], func(key, _ string) bool { return !strings.HasPrefix(key, rbacv1.GroupName+"/") })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("labels that aggregate (-want +got):\n%s", diff)
			}
		})
	}
}

// runtimes allows this for the runtimes of namespaces and of the cluster.
func runtimes(verbs ...string) rbacv1.PolicyRule {
	rule := allow("trainer.kubeflow.org", "trainingruntimes", verbs...)
	rule.Resources = append(rule.Resources, "clustertrainingruntimes")
	return rule
}

func allow(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// only binds a rule to one object by its name.
func only(name string, rule rbacv1.PolicyRule) rbacv1.PolicyRule {
	rule.ResourceNames = []string{name}
	return rule
}
