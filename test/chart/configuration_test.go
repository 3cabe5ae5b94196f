package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/admission"
)

func TestWebhookConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		values          []string
		wantPolicy      admissionregistrationv1.FailurePolicyType
		wantTimeout     int32
		wantExcluded    []string
		wantCA          string
		wantAnnotations map[string]string
	}{
		"default values": {
			wantPolicy: admissionregistrationv1.Fail, wantTimeout: 5, wantExcluded: []string{namespace, "kube-system"},
		},
		"other values, one namespace named twice": {
			values: []string{
				"webhook.failurePolicy=Ignore", "webhook.timeoutSeconds=30", "webhook.excludedNamespaces={kube-system,other}",
			},
			wantPolicy: admissionregistrationv1.Ignore, wantTimeout: 30, wantExcluded: []string{namespace, "kube-system", "other"},
		},
		"a CA in the values": {
			values:     variants["a CA in the values"],
			wantPolicy: admissionregistrationv1.Fail, wantTimeout: 5, wantExcluded: []string{namespace, "kube-system"},
			wantCA: "CA",
		},
		"a CA that is injected": {
			values:     ownCertificate,
			wantPolicy: admissionregistrationv1.Fail, wantTimeout: 5, wantExcluded: []string{namespace, "kube-system"},
			wantAnnotations: map[string]string{"cert-manager.io/inject-ca-from": "signalbox-system/signalbox-webhook"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := named[*admissionregistrationv1.MutatingWebhookConfiguration](t, render(t, tc.values...))["signalbox"]
			if configuration == nil || len(configuration.Webhooks) != 1 {
				t.Fatalf("want a configuration signalbox with one webhook, got %v", configuration)
			}
			if diff := cmp.Diff(tc.wantAnnotations, configuration.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			got := configuration.Webhooks[0]
			got.MatchConditions = nil // has a test of its own
			want := trainJobWebhook()
			want.FailurePolicy, want.TimeoutSeconds = &tc.wantPolicy, &tc.wantTimeout
			want.NamespaceSelector.MatchExpressions[0].Values = tc.wantExcluded
			if tc.wantCA != "" {
				want.ClientConfig.CABundle = []byte(tc.wantCA)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("webhook (-want +got):\n%s", diff)
			}
		})
	}
}

// trainJobWebhook is the webhook without what values choose.
func trainJobWebhook() admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: "trainjob.lifecycle.trainer.kubeflow.org",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{
				Name: "signalbox-webhook", Namespace: namespace, Path: ptr.To(admission.TrainJobMutatePath), Port: ptr.To(int32(443)),
			},
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"trainer.kubeflow.org"}, APIVersions: []string{"v1alpha1"},
				Resources: []string{"trainjobs"}, Scope: ptr.To(admissionregistrationv1.NamespacedScope),
			},
		}},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn,
		}}},
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		AdmissionReviewVersions: []string{"v1"},
	}
}
