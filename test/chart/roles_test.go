package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// roles are rules by kind and name of a role.
type roles map[string][]rbacv1.PolicyRule

const (
	webhookRole    = "ClusterRole signalbox-webhook"
	reconcilerRole = "ClusterRole signalbox-reconciler"
)

// allRoles holds every right of the default values, with the call that needs it. More than these
// is too much.
func allRoles() roles {
	trainJobCRD := only("trainjobs.trainer.kubeflow.org", allow("apiextensions.k8s.io", "customresourcedefinitions", "list", "watch"))
	seen := allow("lifecycle.trainer.kubeflow.org", "trainingruntimesnapshots", "get", "list", "watch")
	seen.Resources = append(seen.Resources, "lifecyclepolicies")
	configurations := only("signalbox", allow("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list", "watch", "patch"))
	configurations.Resources = append(configurations.Resources, "validatingwebhookconfigurations")
	return roles{
		reconcilerRole: {
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
		webhookRole: {
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
			// A certificate of its own.
			configurations,
		},
		"Role signalbox-webhook": {
			only("signalbox-webhook-cert", allow("", "secrets", "list", "watch", "update")),
		},
	}
}

// drop takes the rules for these resources from a role, and the role where none is left.
func (r roles) drop(role string, resources ...string) {
	r[role] = slices.DeleteFunc(r[role], func(rule rbacv1.PolicyRule) bool { return slices.Contains(resources, rule.Resources[0]) })
	if len(r[role]) == 0 {
		delete(r, role)
	}
}

// keep leaves of the rights that a role has for a resource no more than these.
func (r roles) keep(t *testing.T, role, resource string, verbs ...string) {
	t.Helper()
	i := slices.IndexFunc(r[role], func(rule rbacv1.PolicyRule) bool { return rule.Resources[0] == resource })
	if i < 0 {
		t.Fatalf("%s has no right for %s", role, resource)
	}
	r[role][i].Verbs = verbs
}

// Rights that go with a feature.
func (r roles) noSnapshots(t *testing.T) {
	r.noView()
	r.drop(reconcilerRole, "trainjobs/finalizers", "configmaps", "trainingruntimesnapshots")
	// Trainer's runtimes say how long finished TrainJobs stay, and are looked at for clocks.
	r.keep(t, reconcilerRole, "trainingruntimes", "get", "list", "watch")
}

func (r roles) noView() { r.drop(webhookRole, "workloads", "jobsets") }

func (r roles) givenCertificate() {
	r.drop(webhookRole, "mutatingwebhookconfigurations")
	r.drop("Role signalbox-webhook", "secrets")
}

// TestRoles covers what each value takes away.
func TestRoles(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		less   func(t *testing.T, r roles)
	}{
		"default values":                                  {},
		"early deadlines are kept":                        {values: variants["early deadlines are kept"]},
		"everything optional":                             {values: variants["everything optional"]},
		"disruptions of runtimes in use are warned about": {values: []string{"runtimes.inUse=Warn"}},
		// The API server takes no rights to evaluate it.
		"the API server refuses clocks": {values: withPolicy},
		// Who installs it says nothing of who may see it.
		"the CRDs come from elsewhere": {values: variants["the CRDs come from elsewhere"]},
		"watched and fenced in":        {values: variants["watched and fenced in"]},
		"runtimes in use may be disrupted": {
			values: []string{"runtimes.inUse=Allow"},
			less:   func(t *testing.T, r roles) { r.keep(t, webhookRole, "trainjobs", "get") },
		},
		"Kueue sees no snapshots": {
			values: variants["Kueue sees no snapshots"], less: func(_ *testing.T, r roles) { r.noView() },
		},
		"a certificate of its own": {values: ownCertificate, less: func(_ *testing.T, r roles) { r.givenCertificate() }},
		"a CA in the values": {
			values: variants["a CA in the values"], less: func(_ *testing.T, r roles) { r.givenCertificate() },
		},
		"a certificate of cert-manager": {
			values: variants["a certificate of cert-manager"], less: func(_ *testing.T, r roles) { r.givenCertificate() },
		},
		"no snapshots": {values: []string{"snapshots.enabled=false"}, less: func(t *testing.T, r roles) { r.noSnapshots(t) }},
		// What was kept of a runtime is read all the same, to seal a TrainJob whose start was missed.
		"no gate": {values: []string{"snapshots.gate=false"}},
		"no policies": {values: []string{"policies.enabled=false"}, less: func(t *testing.T, r roles) {
			r.drop(webhookRole, "lifecyclepolicies")
			// One that is being deleted takes its runtimes with it.
			r.keep(t, webhookRole, "namespaces", "get")
			r.drop(reconcilerRole, "lifecyclepolicies", "lifecyclepolicies/status", "namespaces")
		}},
		"nothing is removed": {values: []string{"ttl.enabled=false"}, less: func(t *testing.T, r roles) {
			r.keep(t, reconcilerRole, "trainjobs", "get", "list", "watch")
			r.keep(t, reconcilerRole, "namespaces", "list", "watch")
		}},
		"runtimes are not guarded": {values: []string{"runtimes.guard=false"}, less: func(t *testing.T, r roles) {
			r.keep(t, webhookRole, "trainjobs", "get")
		}},
		"no snapshots, and nothing is removed": {
			values: []string{"snapshots.enabled=false", "ttl.enabled=false"}, less: func(t *testing.T, r roles) {
				r.noSnapshots(t)
				r.keep(t, reconcilerRole, "trainjobs", "get", "list", "watch")
				r.keep(t, reconcilerRole, "namespaces", "list", "watch")
			},
		},
		"every feature is off": {values: allOff, less: func(t *testing.T, r roles) {
			r.noSnapshots(t)
			r.drop(webhookRole, "lifecyclepolicies", "namespaces")
			r.keep(t, webhookRole, "trainjobs", "get")
			r.drop(reconcilerRole, "lifecyclepolicies", "lifecyclepolicies/status", "namespaces", "trainingruntimes")
			r.keep(t, reconcilerRole, "trainjobs", "get", "list", "watch")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := allRoles()
			if tc.less != nil {
				tc.less(t, want)
			}
			objects := render(t, tc.values...)
			got := roles{}
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
