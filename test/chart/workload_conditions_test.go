package chart_test

import (
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/signalbox-dev/signalbox/internal/admission"
)

const kueueUser = "system:serviceaccount:kueue-system:kueue-controller-manager"

var workloads = resource{
	kind: schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"}, name: "workloads",
}

// TestWorkloadConditionsOnUsers has everybody create a Workload, in earnest and as a dry run.
func TestWorkloadConditionsOnUsers(t *testing.T) {
	const elsewhere = "system:serviceaccount:team-a:my-kueue.v2"
	users := []string{
		kueueUser, elsewhere, trainerUser, reconcilerUser, "system:serviceaccount:kueue-system:default",
		"system:serviceaccount:team-a:kueue-controller-manager", "system:admin", "kubernetes-admin", "",
		"kueue-controller-manager", "kueue-system/kueue-controller-manager", kueueUser + "2",
	}
	for name, tc := range map[string]struct {
		values []string
		want   string
	}{
		"default values":           {want: kueueUser},
		"an account that is given": {values: []string{"kueue.serviceAccount=team-a/my-kueue.v2"}, want: elsewhere},
		"early deadlines are kept": {values: []string{"trainer.correctEarlyDeadlines=false"}, want: kueueUser},
	} {
		conditions := matcher(t, admission.WorkloadMutatePath, tc.values...)
		for _, user := range users {
			for _, spec := range []string{`{}`, `{"spec":null}`, `{"spec":{"podSets":[{"name":"node","count":2}]}}`} {
				t.Run(fmt.Sprintf("%s, %s by %q", name, spec, user), func(t *testing.T) {
					checkMatch(t, conditions, workloads, request{after: spec, user: user, dryRun: true}, user == tc.want)
					checkMatch(t, conditions, workloads, request{after: spec, user: user}, false)
				})
			}
		}
	}
}

// TestWorkloadConditionsWithoutDryRun takes the field out of the request, which may be absent.
func TestWorkloadConditionsWithoutDryRun(t *testing.T) {
	hook := find(t, admission.WorkloadMutatePath)
	attributes := attributesOf(t, workloads, request{after: `{}`, user: kueueUser, dryRun: true})
	for name, tc := range map[string]struct {
		dryRun *bool
		want   bool
	}{
		"present": {dryRun: new(true), want: true},
		"false":   {dryRun: new(false)},
		"absent":  {},
	} {
		t.Run(name, func(t *testing.T) {
			req := cel.CreateAdmissionRequest(attributes.Attributes,
				metav1.GroupVersionResource(attributes.GetResource()), metav1.GroupVersionKind(attributes.VersionedKind))
			req.DryRun = tc.dryRun
			results, _, err := compile(t, hook).ForInput(t.Context(), attributes, req,
				cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
			if err != nil {
				t.Fatal(err)
			}
			got := len(results) > 0
			for _, result := range results {
				if result.Error != nil {
					t.Fatalf("evaluation failed: %v", result.Error)
				}
				got = got && result.EvalResult.Value() == true
			}
			if got != tc.want {
				t.Errorf("webhook called: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestWorkloadRequests goes by the rules and the match conditions together: of all that Kueue
// and others do, one request comes to the webhook.
func TestWorkloadRequests(t *testing.T) {
	hook := find(t, admission.WorkloadMutatePath)
	conditions := matcher(t, admission.WorkloadMutatePath)
	older, trial := workloads, request{after: `{}`, user: kueueUser, dryRun: true}
	older.kind.Version = "v1beta1"
	update := request{before: `{}`, after: `{"spec":{},"status":{}}`, user: kueueUser, dryRun: true}
	foreign, status := workloads, workloads
	foreign.kind.Group, status.subresource = "example.com", "status"
	earnest, other := trial, trial
	earnest.dryRun, other.user = false, "kubernetes-admin"
	for name, tc := range map[string]struct {
		of   resource
		req  request
		want bool
	}{
		"a dry run by Kueue":                     {of: workloads, req: trial, want: true},
		"a dry run by an older Kueue":            {of: older, req: trial, want: true},
		"a Workload by Kueue":                    {of: workloads, req: earnest},
		"a Workload by an older Kueue":           {of: older, req: earnest},
		"a dry run by another":                   {of: workloads, req: other},
		"a dry run of an update by Kueue":        {of: workloads, req: update},
		"a dry run of a deletion by Kueue":       {of: workloads, req: request{before: `{}`, user: kueueUser, dryRun: true}},
		"a dry run of a status by Kueue":         {of: status, req: update},
		"a dry run of another kind by Kueue":     {of: trainJobs, req: trial},
		"a dry run of a JobSet by Kueue":         {of: jobSets, req: trial},
		"a Workload of another group, a dry run": {of: foreign, req: trial},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := attributesOf(t, tc.of, tc.req)
			got := slices.ContainsFunc(hook.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
				return (&rules.Matcher{Rule: rule, Attr: attributes}).Matches()
			}) && match(t, conditions, tc.of, tc.req).Matches
			if got != tc.want {
				t.Errorf("webhook called: %t, want %t", got, tc.want)
			}
		})
	}
}
