package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

func TestRules(t *testing.T) {
	ca := newAuthority(t, now.AddDate(8, 0, 0))
	facts := right(ca, ca.sign(t, serverName, now.AddDate(0, 0, -1), now.AddDate(0, 0, 90)))
	const clock = "must not be set in a runtime: it is a second clock, by which pods end without their TrainJob; use spec.activeDeadlineSeconds of the TrainJob"
	audit := Audit{}
	for _, name := range []string{"", "team-a"} {
		runtime := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"activeDeadlineSeconds": int64(5)}}}}}
		runtime.SetName("torch")
		runtime.SetNamespace(name)
		runtime.SetAnnotations(map[string]string{v1alpha1.AnnotationDefaultActiveDeadlineSeconds: "1h"})
		audit.add(runtime)
		audit.add(runtime)
	}
	facts.Runtimes["TrainingRuntime"] = unread[Audit]()
	facts.Runtimes["ClusterTrainingRuntime"] = seen(audit)
	selector := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	policy := func(name string, selector *metav1.LabelSelector) v1alpha1.LifecyclePolicy {
		return v1alpha1.LifecyclePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.LifecyclePolicySpec{NamespaceSelector: selector}}
	}
	facts.Policies = seen([]v1alpha1.LifecyclePolicy{
		policy("all", nil), policy("bad", selector("team", "Inside")), policy("nobody", selector("team", metav1.LabelSelectorOpExists)),
		policy("some", selector(corev1.LabelMetadataName, metav1.LabelSelectorOpIn, "team-a", "default")),
	})
	got := Judge(facts)
	want := []Item{
		{"policies", OK, "LifecyclePolicy/all selects all 4 namespaces", ""},
		{"policies", Fault, `LifecyclePolicy/bad selects nothing: spec.namespaceSelector.matchExpressions[0].operator: Invalid value: "Inside": not a valid selector operator`, "correct it: kubectl edit lifecyclepolicy bad"},
		{"policies", Warning, "LifecyclePolicy/nobody selects none of 4 namespaces", "label the namespaces that it is for, or correct it: kubectl edit lifecyclepolicy nobody"},
		{"policies", OK, "LifecyclePolicy/some selects 2 of 4 namespaces: default, team-a", ""},
	}
	var runtimes, policies []Item
	for _, item := range got.Items {
		switch item.Check {
		case "policies":
			policies = append(policies, item)
		case "runtimes":
			runtimes = append(runtimes, item)
		}
	}
	if diff := cmp.Diff(want, policies); diff != "" {
		t.Error(diff)
	}
	text := "spec.template.spec.activeDeadlineSeconds: Invalid value: 5: " + clock + `; metadata.annotations[lifecycle.trainer.kubeflow.org/default-active-deadline-seconds]: Invalid value: "1h": must be a whole number of seconds from 1 to 4294967295`
	want = []Item{
		{"runtimes", Warning, "ClusterTrainingRuntime/team-a/torch: " + text, "correct it: kubectl --namespace team-a edit clustertrainingruntime torch"},
		{"runtimes", Warning, "ClusterTrainingRuntime/torch: " + text, "correct it: kubectl edit clustertrainingruntime torch"},
		{"runtimes", Unknown, "TrainingRuntimes are not known: no right to do so", ""},
	}
	if diff := cmp.Diff(want, runtimes); diff != "" {
		t.Error(diff)
	}

	// A policy that selects a namespace that the webhook is kept from.
	facts.Mutating.Value.Webhooks[0].NamespaceSelector = selector(corev1.LabelMetadataName, metav1.LabelSelectorOpNotIn, "team-a")
	if got := onePolicy(facts, &facts.Policies.Value[0]); got.Level != Warning || !strings.HasSuffix(got.Finding, "its limits mean nothing in team-a, about which the webhook is not asked") {
		t.Errorf("a policy of a namespace that the webhook is kept from: %+v", got)
	}
	// No right to list namespaces: the status tells, while it is of the policy as it is.
	facts.Namespaces = unread[map[string]map[string]string]()
	one := &facts.Policies.Value[0]
	one.Generation, one.Status.ObservedGeneration, one.Status.MatchingNamespaces = 2, 2, ptr.To[int32](3)
	if got := onePolicy(facts, one); got.Level != OK || got.Finding != "LifecyclePolicy/all selects 3 namespaces, as its status tells" {
		t.Errorf("by its status: %+v", got)
	}
	one.Generation = 3
	if got := onePolicy(facts, one); got.Level != Unknown {
		t.Errorf("by a status that is old: %+v", got)
	}
}
