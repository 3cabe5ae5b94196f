package chart_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRoles holds every right, with the call that needs it. More than these is too much.
func TestRoles(t *testing.T) {
	reconciler := map[string][]rbacv1.PolicyRule{
		"ClusterRole signalbox-reconciler": {
			// List and watch are the cache; get is the last look before a TrainJob is failed.
			allow("trainer.kubeflow.org", "trainjobs", "get", "list", "watch"),
			allow("trainer.kubeflow.org", "trainjobs/status", "patch"),
			allow("jobset.x-k8s.io", "jobsets", "get", "list", "watch", "delete"),
			// An event has a name of its own, so that none is ever patched.
			allow("", "events", "create"),
			// A list of each at an expiry, of one namespace and label; they are not cached.
			allow("", "pods", "list"), allow("batch", "jobs", "list"),
			only("trainjobs.trainer.kubeflow.org", allow("apiextensions.k8s.io", "customresourcedefinitions", "list", "watch")),
		},
		"Role signalbox-reconciler": {
			allow("coordination.k8s.io", "leases", "create"),
			only("signalbox-reconciler", allow("coordination.k8s.io", "leases", "get", "update")),
		},
	}
	// The JobSet webhook reads the TrainJob live, whoever makes the certificate.
	readTrainJobs := allow("trainer.kubeflow.org", "trainjobs", "get")
	configurations := only("signalbox", allow("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list", "watch", "patch"))
	configurations.Resources = append(configurations.Resources, "validatingwebhookconfigurations")
	selfManaged := map[string][]rbacv1.PolicyRule{
		"ClusterRole signalbox-webhook": {readTrainJobs, configurations},
		"Role signalbox-webhook": {
			only("signalbox-webhook-cert", allow("", "secrets", "list", "watch", "update")),
		},
	}
	givenCertificate := map[string][]rbacv1.PolicyRule{
		"ClusterRole signalbox-webhook": {readTrainJobs},
	}
	for name, tc := range map[string]struct {
		values  []string
		webhook map[string][]rbacv1.PolicyRule
	}{
		"default values":           {webhook: selfManaged},
		"early deadlines are kept": {values: variants["early deadlines are kept"], webhook: selfManaged},
		"everything optional":      {values: variants["everything optional"], webhook: selfManaged},
		"a certificate of its own": {values: ownCertificate, webhook: givenCertificate},
		"a CA in the values":       {values: variants["a CA in the values"], webhook: givenCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			want := maps.Clone(reconciler)
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

func allow(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// only binds a rule to one object by its name.
func only(name string, rule rbacv1.PolicyRule) rbacv1.PolicyRule {
	rule.ResourceNames = []string{name}
	return rule
}
