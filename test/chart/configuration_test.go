package chart_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/admission"
)

func TestWebhookConfigurations(t *testing.T) {
	type expectation struct {
		policy, statusPolicy, runtimePolicy admissionregistrationv1.FailurePolicyType
		timeout                             int32
		excluded                            []string
		ca                                  string
		annotations                         map[string]string
		// Whether deletions of JobSets and of runtimes come to the webhook, and Workloads.
		deletions, runtimeDeletions, workloads bool
	}
	byDefault := func(tweak func(*expectation)) expectation {
		want := expectation{
			policy: admissionregistrationv1.Fail, statusPolicy: admissionregistrationv1.Fail,
			runtimePolicy: admissionregistrationv1.Ignore, timeout: 5,
			excluded: []string{namespace, "kube-system"}, deletions: true, runtimeDeletions: true, workloads: true,
		}
		tweak(&want)
		return want
	}
	for name, tc := range map[string]struct {
		values []string
		want   expectation
	}{
		"default values": {want: byDefault(func(*expectation) {})},
		"other values, one namespace named twice": {
			values: []string{
				"webhook.failurePolicy=Ignore", "webhook.timeoutSeconds=30", "webhook.excludedNamespaces={kube-system,other}",
			},
			want: byDefault(func(want *expectation) {
				want.policy, want.timeout = admissionregistrationv1.Ignore, 30
				want.statusPolicy = admissionregistrationv1.Ignore
				want.excluded = []string{namespace, "kube-system", "other"}
			}),
		},
		"a status that does not need the webhook": {
			values: []string{"webhook.statusFailurePolicy=Ignore"},
			want:   byDefault(func(want *expectation) { want.statusPolicy = admissionregistrationv1.Ignore }),
		},
		"runtimes that need the webhook": {
			values: []string{"webhook.runtimeFailurePolicy=Fail"},
			want:   byDefault(func(want *expectation) { want.runtimePolicy = admissionregistrationv1.Fail }),
		},
		"early deadlines are kept": {
			values: []string{"trainer.correctEarlyDeadlines=false"},
			want:   byDefault(func(want *expectation) { want.deletions = false }),
		},
		"Kueue sees no snapshots": {
			values: []string{"kueue.showSnapshots=false", "kueue.serviceAccount=team-a/my-kueue.v2"},
			want:   byDefault(func(want *expectation) { want.workloads = false }),
		},
		"runtimes in use may be disrupted": {
			values: []string{"runtimes.inUse=Allow"},
			want:   byDefault(func(want *expectation) { want.runtimeDeletions = false }),
		},
		"disruptions of runtimes in use are warned about": {
			values: []string{"runtimes.inUse=Warn"},
			want:   byDefault(func(*expectation) {}),
		},
		"the API server refuses clocks too": {
			values: withPolicy,
			want:   byDefault(func(*expectation) {}),
		},
		"a CA in the values": {
			values: variants["a CA in the values"],
			want:   byDefault(func(want *expectation) { want.ca = "CA" }),
		},
		"a CA that is injected": {
			values: ownCertificate,
			want: byDefault(func(want *expectation) {
				want.annotations = map[string]string{"cert-manager.io/inject-ca-from": "signalbox-system/signalbox-webhook"}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, tc.values...)
			mutating := named[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects)["signalbox"]
			validating := named[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects)["signalbox"]
			for kind, annotations := range map[string]map[string]string{
				"mutating": mutating.Annotations, "validating": validating.Annotations,
			} {
				if diff := cmp.Diff(tc.want.annotations, annotations); diff != "" {
					t.Errorf("annotations of the %s configuration (-want +got):\n%s", kind, diff)
				}
			}
			want := expectedWebhooks(tc.want.deletions, tc.want.runtimeDeletions, tc.want.workloads)
			for i := range want {
				want[i].TimeoutSeconds, want[i].FailurePolicy = &tc.want.timeout, &tc.want.policy
				switch *want[i].ClientConfig.Service.Path {
				case admission.TrainJobStatusPath:
					want[i].FailurePolicy = &tc.want.statusPolicy
				case admission.RuntimeMutatePath, admission.RuntimeValidatePath:
					want[i].FailurePolicy = &tc.want.runtimePolicy
				case admission.WorkloadMutatePath:
					// Kueue must never need Signalbox, whatever else does.
					want[i].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
				}
				want[i].NamespaceSelector.MatchExpressions[0].Values = tc.want.excluded
				if tc.want.ca != "" {
					want[i].ClientConfig.CABundle = []byte(tc.want.ca)
				}
			}
			got := webhooks(t, tc.values...)
			for i := range got {
				got[i].MatchConditions = nil // have tests of their own
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("webhooks (-want +got):\n%s", diff)
			}
		})
	}
}

// webhooks returns all webhooks of both configurations, the mutating ones first. A validating
// one comes as a mutating one without a reinvocation policy: all else they have in common.
func webhooks(t *testing.T, values ...string) []admissionregistrationv1.MutatingWebhook {
	t.Helper()
	objects := render(t, values...)
	mutating := named[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects)["signalbox"]
	validating := named[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects)["signalbox"]
	if mutating == nil || validating == nil {
		t.Fatalf("want two configurations signalbox, got %v and %v", mutating, validating)
	}
	all := mutating.Webhooks
	for _, hook := range validating.Webhooks {
		all = append(all, admissionregistrationv1.MutatingWebhook{
			Name: hook.Name, ClientConfig: hook.ClientConfig, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
			MatchPolicy: hook.MatchPolicy, NamespaceSelector: hook.NamespaceSelector, ObjectSelector: hook.ObjectSelector,
			SideEffects: hook.SideEffects, TimeoutSeconds: hook.TimeoutSeconds,
			AdmissionReviewVersions: hook.AdmissionReviewVersions, MatchConditions: hook.MatchConditions,
		})
	}
	return all
}

// expectedWebhooks are all webhooks without what values choose, apart from the deletions and
// the Workloads.
func expectedWebhooks(deletions, runtimeDeletions, workloads bool) []admissionregistrationv1.MutatingWebhook {
	trainJobs := func(operations []admissionregistrationv1.OperationType, resource string) admissionregistrationv1.RuleWithOperations {
		return rule("trainer.kubeflow.org", "v1alpha1", resource, operations)
	}
	writes := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	jobSets := rule("jobset.x-k8s.io", "v1alpha2", "jobsets", writes)
	if deletions {
		jobSets.Operations = append(slices.Clone(writes), admissionregistrationv1.Delete)
	}
	// Runtimes of the whole cluster and of a namespace come the same way.
	runtimes := rule("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", writes)
	runtimes.Resources, runtimes.Scope = append(runtimes.Resources, "clustertrainingruntimes"), ptr.To(admissionregistrationv1.AllScopes)
	guarded := runtimes
	if runtimeDeletions {
		guarded.Operations = append(slices.Clone(writes), admissionregistrationv1.Delete)
	}
	again := ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
	hooks := []admissionregistrationv1.MutatingWebhook{
		webhook("trainjob", admission.TrainJobMutatePath, again, trainJobs(writes, "trainjobs")),
		webhook("trainjob-status", admission.TrainJobStatusPath, again, trainJobs(writes[1:], "trainjobs/status")),
		webhook("runtime", admission.RuntimeMutatePath, again, runtimes),
	}
	if workloads {
		// Kueue writes v1beta2; older ones write v1beta1.
		created := rule("kueue.x-k8s.io", "v1beta1", "workloads", writes[:1])
		created.APIVersions = append(created.APIVersions, "v1beta2")
		hooks = append(hooks, webhook("workload", admission.WorkloadMutatePath, again, created))
	}
	return append(hooks,
		webhook("trainjob", admission.TrainJobValidatePath, nil, trainJobs(writes, "trainjobs")),
		webhook("runtime", admission.RuntimeValidatePath, nil, guarded),
		webhook("jobset", admission.JobSetValidatePath, nil, jobSets),
	)
}

func rule(group, version, resource string, operations []admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version},
			Resources: []string{resource}, Scope: ptr.To(admissionregistrationv1.NamespacedScope),
		},
	}
}

func webhook(
	name, path string, again *admissionregistrationv1.ReinvocationPolicyType, rule admissionregistrationv1.RuleWithOperations,
) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: name + ".lifecycle.trainer.kubeflow.org",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{
				Name: "signalbox-webhook", Namespace: namespace, Path: &path, Port: ptr.To(int32(443)),
			},
		},
		Rules: []admissionregistrationv1.RuleWithOperations{rule},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn,
		}}},
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		ReinvocationPolicy:      again,
		AdmissionReviewVersions: []string{"v1"},
	}
}
