package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestRulesOf(t *testing.T) {
	policies := []v1alpha1.LifecyclePolicy{
		*builder.LifecyclePolicy("all").Failed(time.Hour).MaxTTL(2 * time.Hour).Obj(),
		*builder.LifecyclePolicy("team").Succeeded(time.Minute).Namespaces("team", "a").Obj(),
		*builder.LifecyclePolicy("gpu").MaxTTL(time.Second).Runtimes("gpu", "yes").Obj(),
	}
	settings := trainer.RuntimeSettings{
		Name: "ClusterTrainingRuntime/torch", Annotations: map[string]string{v1alpha1.AnnotationDefaultTTLSecondsAfterFinished: "7"},
	}
	want := &ttl.Rules{
		Runtime: &ttl.Limit{After: 7 * time.Second, By: "ClusterTrainingRuntime/torch"},
		Failed:  &ttl.Limit{After: time.Hour, By: "LifecyclePolicy/all"},
		Max:     &ttl.Limit{After: 2 * time.Hour, By: "LifecyclePolicy/all"},
	}
	if diff := cmp.Diff(want, rulesOf(policies, labels.Set{"team": "b"}, settings)); diff != "" {
		t.Errorf("team b (-want +got):\n%s", diff)
	}
	want.Succeeded = &ttl.Limit{After: time.Minute, By: "LifecyclePolicy/team"}
	if diff := cmp.Diff(want, rulesOf(policies, labels.Set{"team": "a"}, settings)); diff != "" {
		t.Errorf("team a (-want +got):\n%s", diff)
	}
}

func TestLeavesAlone(t *testing.T) {
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
	}}
	configuration := func(name string, selector *metav1.LabelSelector) *admissionregistrationv1.MutatingWebhookConfiguration {
		return &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: name, NamespaceSelector: selector}}}
	}
	for name, tc := range map[string]struct {
		configuration *admissionregistrationv1.MutatingWebhookConfiguration
		namespace     string
		want          *bool
	}{
		"selected":           {configuration("trainjob.lifecycle.trainer.kubeflow.org", selector), "team-a", ptr.To(false)},
		"left out":           {configuration("trainjob.lifecycle.trainer.kubeflow.org", selector), "kube-system", ptr.To(true)},
		"no selector":        {configuration("trainjob.lifecycle.trainer.kubeflow.org", nil), "kube-system", ptr.To(false)},
		"unread":             {configuration("trainjob.lifecycle.trainer.kubeflow.org", selector), "", nil},
		"unread, but all":    {configuration("trainjob.lifecycle.trainer.kubeflow.org", &metav1.LabelSelector{}), "", ptr.To(false)},
		"of another webhook": {configuration("runtime.lifecycle.trainer.kubeflow.org", selector), "kube-system", ptr.To(false)},
	} {
		var namespace *metav1.PartialObjectMetadata
		if tc.namespace != "" {
			namespace = &metav1.PartialObjectMetadata{}
			namespace.Labels = map[string]string{"kubernetes.io/metadata.name": tc.namespace}
		}
		if diff := cmp.Diff(tc.want, leavesAlone(tc.configuration, namespace)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
