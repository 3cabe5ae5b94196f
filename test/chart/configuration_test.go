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
		policy, statusPolicy, jobSetPolicy, runtimePolicy admissionregistrationv1.FailurePolicyType
		timeout                                           int32
		excluded                                          []string
		selected                                          map[string]string
		selectedBy                                        []metav1.LabelSelectorRequirement
		ca                                                string
		annotations                                       map[string]string
		comes                                             asked
	}
	byDefault := func(tweak func(*expectation)) expectation {
		want := expectation{
			policy: admissionregistrationv1.Fail, statusPolicy: admissionregistrationv1.Fail,
			jobSetPolicy: admissionregistrationv1.Fail, runtimePolicy: admissionregistrationv1.Ignore, timeout: 5,
			excluded: []string{namespace, "kube-system"}, comes: everything,
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
				want.statusPolicy, want.jobSetPolicy = admissionregistrationv1.Ignore, admissionregistrationv1.Ignore
				want.excluded = []string{namespace, "kube-system", "other"}
			}),
		},
		"a status that does not need the webhook": {
			values: []string{"webhook.statusFailurePolicy=Ignore"},
			want:   byDefault(func(want *expectation) { want.statusPolicy = admissionregistrationv1.Ignore }),
		},
		"neither a status nor a JobSet needs the webhook": {
			values: []string{"webhook.statusFailurePolicy=Ignore", "webhook.jobSetFailurePolicy=Ignore"},
			want: byDefault(func(want *expectation) {
				want.statusPolicy, want.jobSetPolicy = admissionregistrationv1.Ignore, admissionregistrationv1.Ignore
			}),
		},
		"no more than JobSets and a status need the webhook": {
			values: []string{"webhook.failurePolicy=Ignore", "webhook.statusFailurePolicy=Fail", "webhook.jobSetFailurePolicy=Fail"},
			want:   byDefault(func(want *expectation) { want.policy = admissionregistrationv1.Ignore }),
		},
		"selected namespaces, and one that is left out": {
			values: []string{
				"webhook.namespaceSelector.matchLabels.kind=training", "webhook.namespaceSelector.matchExpressions[0].key=old",
				"webhook.namespaceSelector.matchExpressions[0].operator=DoesNotExist", "webhook.excludedNamespaces={other}",
			},
			want: byDefault(func(want *expectation) {
				want.excluded = []string{namespace, "kube-system", "other"}
				want.selected = map[string]string{"kind": "training"}
				want.selectedBy = []metav1.LabelSelectorRequirement{{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist}}
			}),
		},
		"no snapshots": {
			values: []string{"snapshots.enabled=false"},
			want:   byDefault(func(want *expectation) { want.comes.workloads = false }),
		},
		"no snapshots, runtimes in use may be disrupted": {
			values: []string{"snapshots.enabled=false", "runtimes.inUse=Allow"},
			want: byDefault(func(want *expectation) {
				want.comes.revisions, want.comes.workloads, want.comes.runtimeDeletions = false, false, false
			}),
		},
		"no gate, no policies, nothing is removed": {
			values: []string{"snapshots.gate=false", "policies.enabled=false", "ttl.enabled=false"},
			want:   byDefault(func(*expectation) {}),
		},
		"runtimes are not guarded": {
			values: []string{"runtimes.guard=false"},
			want:   byDefault(func(want *expectation) { want.comes.guarded = false }),
		},
		"every feature is off": {values: allOff, want: byDefault(func(want *expectation) { want.comes = asked{} })},
		"runtimes that need the webhook": {
			values: []string{"webhook.runtimeFailurePolicy=Fail"},
			want:   byDefault(func(want *expectation) { want.runtimePolicy = admissionregistrationv1.Fail }),
		},
		"early deadlines are kept": {
			values: []string{"trainer.correctEarlyDeadlines=false"},
			want:   byDefault(func(want *expectation) { want.comes.deletions = false }),
		},
		"Kueue sees no snapshots": {
			values: []string{"kueue.showSnapshots=false", "kueue.serviceAccount=team-a/my-kueue.v2"},
			want:   byDefault(func(want *expectation) { want.comes.workloads = false }),
		},
		"runtimes in use may be disrupted": {
			values: []string{"runtimes.inUse=Allow"},
			want:   byDefault(func(want *expectation) { want.comes.runtimeDeletions = false }),
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
		"a CA of cert-manager": {
			values: append([]string{"webhook.configurationAnnotations.a=b"}, variants["a certificate of cert-manager"]...),
			want: byDefault(func(want *expectation) {
				want.annotations = map[string]string{"a": "b", "cert-manager.io/inject-ca-from": "signalbox-system/signalbox-webhook"}
			}),
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
			want := expectedWebhooks(tc.want.comes)
			for i := range want {
				want[i].TimeoutSeconds, want[i].FailurePolicy = &tc.want.timeout, &tc.want.policy
				switch *want[i].ClientConfig.Service.Path {
				case admission.TrainJobStatusPath:
					want[i].FailurePolicy = &tc.want.statusPolicy
				case admission.JobSetValidatePath:
					want[i].FailurePolicy = &tc.want.jobSetPolicy
				case admission.RuntimeMutatePath, admission.RuntimeValidatePath:
					want[i].FailurePolicy = &tc.want.runtimePolicy
				case admission.WorkloadMutatePath:
					// Kueue must never need Signalbox, whatever else does.
					want[i].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
				}
				selector := want[i].NamespaceSelector
				selector.MatchLabels, selector.MatchExpressions[0].Values = tc.want.selected, tc.want.excluded
				selector.MatchExpressions = append(selector.MatchExpressions, tc.want.selectedBy...)
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

// asked says what comes to the webhook, besides TrainJobs and starts of JobSets: deletions of
// JobSets, runtimes to get a revision, runtimes to be judged and their deletions, and Workloads.
type asked struct {
	deletions, revisions, guarded, runtimeDeletions, workloads bool
}

var everything = asked{deletions: true, revisions: true, guarded: true, runtimeDeletions: true, workloads: true}

// expectedWebhooks are the webhooks for what comes, without what else values choose.
func expectedWebhooks(comes asked) []admissionregistrationv1.MutatingWebhook {
	trainJobs := func(operations []admissionregistrationv1.OperationType, resource string) admissionregistrationv1.RuleWithOperations {
		return rule("trainer.kubeflow.org", "v1alpha1", resource, operations)
	}
	writes := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	jobSets := rule("jobset.x-k8s.io", "v1alpha2", "jobsets", writes)
	if comes.deletions {
		jobSets.Operations = append(slices.Clone(writes), admissionregistrationv1.Delete)
	}
	// Runtimes of the whole cluster and of a namespace come the same way.
	runtimes := rule("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", writes)
	runtimes.Resources, runtimes.Scope = append(runtimes.Resources, "clustertrainingruntimes"), ptr.To(admissionregistrationv1.AllScopes)
	guarded := runtimes
	if comes.runtimeDeletions {
		guarded.Operations = append(slices.Clone(writes), admissionregistrationv1.Delete)
	}
	again := ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
	hooks := []admissionregistrationv1.MutatingWebhook{
		webhook("trainjob", admission.TrainJobMutatePath, again, trainJobs(writes, "trainjobs")),
		webhook("trainjob-status", admission.TrainJobStatusPath, again, trainJobs(writes[1:], "trainjobs/status")),
	}
	if comes.revisions {
		hooks = append(hooks, webhook("runtime", admission.RuntimeMutatePath, again, runtimes))
	}
	if comes.workloads {
		// Kueue writes v1beta2; older ones write v1beta1.
		created := rule("kueue.x-k8s.io", "v1beta1", "workloads", writes[:1])
		created.APIVersions = append(created.APIVersions, "v1beta2")
		hooks = append(hooks, webhook("workload", admission.WorkloadMutatePath, again, created))
	}
	hooks = append(hooks, webhook("trainjob", admission.TrainJobValidatePath, nil, trainJobs(writes, "trainjobs")))
	if comes.guarded {
		hooks = append(hooks, webhook("runtime", admission.RuntimeValidatePath, nil, guarded))
	}
	return append(hooks, webhook("jobset", admission.JobSetValidatePath, nil, jobSets))
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
