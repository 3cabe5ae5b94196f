package policy

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// torchWith is a runtime with these labels, as it is asked for.
func torchWith(set labels.Set) func() (trainer.RuntimeSettings, error) {
	return func() (trainer.RuntimeSettings, error) {
		return trainer.RuntimeSettings{Name: "ClusterTrainingRuntime/torch", Labels: set}, nil
	}
}

// unknown is the answer where nothing is known of the runtime.
func unknown() (trainer.RuntimeSettings, error) { return trainer.RuntimeSettings{}, nil }

// strictest are the rules where the runtime can be read.
func strictest(t testing.TB, policies []v1alpha1.LifecyclePolicy, namespace labels.Set, runtime func() (trainer.RuntimeSettings, error)) Rules {
	t.Helper()
	rules, err := Strictest(policies, namespace, runtime)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// objs are the policies themselves.
func objs(builders ...*builder.LifecyclePolicyBuilder) []v1alpha1.LifecyclePolicy {
	policies := make([]v1alpha1.LifecyclePolicy, len(builders))
	for i, b := range builders {
		policies[i] = *b.Obj()
	}
	return policies
}

// selector is one with a single expression.
func selector(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func TestStrictest(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	p := builder.LifecyclePolicy
	a := func() *builder.LifecyclePolicyBuilder { return p("a").Max(hour) }
	ofA := Rules{Max: Limit{hour, "a"}}
	namespace, runtime := labels.Set{"team": "x", "tier": "gold"}, torchWith(labels.Set{"gpu": "yes"})
	for name, tc := range map[string]struct {
		policies []*builder.LifecyclePolicyBuilder
		// nowhere stands for no labels of the namespace, and a runtime of which nothing is known;
		// bare for a runtime without labels.
		nowhere, bare bool
		want          Rules
	}{
		"none":                           {},
		"one that says nothing":          {policies: []*builder.LifecyclePolicyBuilder{p("a")}},
		"one with no selectors":          {policies: []*builder.LifecyclePolicyBuilder{a()}, want: ofA},
		"no selectors, no labels":        {policies: []*builder.LifecyclePolicyBuilder{a()}, nowhere: true, want: ofA},
		"empty selectors":                {policies: []*builder.LifecyclePolicyBuilder{a().NamespaceSelector(&metav1.LabelSelector{}).RuntimeSelector(&metav1.LabelSelector{})}, want: ofA},
		"empty selectors, no labels":     {policies: []*builder.LifecyclePolicyBuilder{a().NamespaceSelector(&metav1.LabelSelector{}).RuntimeSelector(&metav1.LabelSelector{})}, nowhere: true, want: ofA},
		"both selected":                  {policies: []*builder.LifecyclePolicyBuilder{a().Namespaces("team", "x").Runtimes("gpu", "yes")}, want: ofA},
		"the namespace alone":            {policies: []*builder.LifecyclePolicyBuilder{a().Namespaces("team", "x").Runtimes("gpu", "no")}},
		"the runtime alone":              {policies: []*builder.LifecyclePolicyBuilder{a().Namespaces("team", "y").Runtimes("gpu", "yes")}},
		"labels of the other one":        {policies: []*builder.LifecyclePolicyBuilder{a().Namespaces("gpu", "yes"), p("b").Max(hour).Runtimes("team", "x")}},
		"a runtime that is gone":         {policies: []*builder.LifecyclePolicyBuilder{a().Runtimes("gpu", "yes")}, nowhere: true},
		"what a gone runtime has not":    {policies: []*builder.LifecyclePolicyBuilder{a().RuntimeSelector(selector("gpu", metav1.LabelSelectorOpDoesNotExist))}, nowhere: true},
		"what a gone runtime is not":     {policies: []*builder.LifecyclePolicyBuilder{a().RuntimeSelector(selector("gpu", metav1.LabelSelectorOpNotIn, "no"))}, nowhere: true},
		"one beside, for a gone runtime": {policies: []*builder.LifecyclePolicyBuilder{a(), p("b").Max(minute).RuntimeSelector(selector("gpu", metav1.LabelSelectorOpDoesNotExist))}, nowhere: true, want: ofA},
		"a runtime without labels":       {policies: []*builder.LifecyclePolicyBuilder{a().Runtimes("gpu", "yes")}, bare: true},
		"what a bare runtime has not":    {policies: []*builder.LifecyclePolicyBuilder{a().RuntimeSelector(selector("gpu", metav1.LabelSelectorOpDoesNotExist))}, bare: true, want: ofA},
		"what this runtime has":          {policies: []*builder.LifecyclePolicyBuilder{a().RuntimeSelector(selector("gpu", metav1.LabelSelectorOpExists))}, want: ofA},
		"what this runtime has after all": {
			policies: []*builder.LifecyclePolicyBuilder{a().RuntimeSelector(selector("gpu", metav1.LabelSelectorOpDoesNotExist))},
		},
		"all but one namespace":          {policies: []*builder.LifecyclePolicyBuilder{a().NamespaceSelector(selector("team", metav1.LabelSelectorOpNotIn, "y"))}, want: ofA},
		"not this namespace":             {policies: []*builder.LifecyclePolicyBuilder{a().NamespaceSelector(selector("team", metav1.LabelSelectorOpNotIn, "x"))}},
		"an operator that is none":       {policies: []*builder.LifecyclePolicyBuilder{a().NamespaceSelector(selector("team", "Near", "x"))}},
		"a selector of runtimes invalid": {policies: []*builder.LifecyclePolicyBuilder{a().RuntimeSelector(selector("gpu", metav1.LabelSelectorOpIn))}},
		"an invalid one beside another": {
			policies: []*builder.LifecyclePolicyBuilder{p("b").Max(minute).Default(1).Required().NamespaceSelector(selector("team", "Near")), a()}, want: ofA,
		},
		"the strictest of each, from several": {
			policies: []*builder.LifecyclePolicyBuilder{
				p("a").Default(3 * minute).Max(hour).Succeeded(2 * minute).Failed(3 * hour).MaxTTL(4 * hour),
				p("b").Default(2 * minute).Max(2 * hour).Required().Succeeded(3 * minute).Failed(2 * hour).MaxTTL(5 * hour),
				p("c").Default(minute).Max(minute).Succeeded(minute).Failed(minute).MaxTTL(minute).Namespaces("team", "y"),
				p("d").Default(4 * minute).Max(3 * hour).MaxTTL(3 * hour),
			},
			want: Rules{
				Default: Limit{2 * minute, "b"}, Max: Limit{hour, "a"}, Required: "b",
				Succeeded: Limit{2 * minute, "a"}, Failed: Limit{2 * hour, "b"}, MaxTTL: Limit{3 * hour, "d"},
			},
		},
		"equal ones: the first by name": {
			policies: []*builder.LifecyclePolicyBuilder{
				p("b").Default(minute).Max(hour).Required().Succeeded(minute).Failed(minute).MaxTTL(hour),
				p("a-b").Default(minute).Max(hour).Required().Succeeded(minute).Failed(minute).MaxTTL(hour),
				p("c").Default(minute).Max(hour).Required().Succeeded(minute).Failed(minute).MaxTTL(hour),
			},
			want: Rules{
				Default: Limit{minute, "a-b"}, Max: Limit{hour, "a-b"}, Required: "a-b",
				Succeeded: Limit{minute, "a-b"}, Failed: Limit{minute, "a-b"}, MaxTTL: Limit{hour, "a-b"},
			},
		},
		"a default over the max of another stays as it is": {
			policies: []*builder.LifecyclePolicyBuilder{p("a").Default(2 * hour), p("b").Max(hour)},
			want:     Rules{Default: Limit{2 * hour, "a"}, Max: Limit{hour, "b"}},
		},
		"no length of time, stored somehow": {
			policies: []*builder.LifecyclePolicyBuilder{p("a").Default(0).Max(-hour).Succeeded(-1).Failed(0).MaxTTL(0), p("b").Max(hour)},
			want:     Rules{Max: Limit{hour, "b"}},
		},
		"only times to stay": {policies: []*builder.LifecyclePolicyBuilder{p("a").MaxTTL(hour)}, want: Rules{MaxTTL: Limit{hour, "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policies := objs(tc.policies...)
			ns, rt := namespace, runtime
			if tc.nowhere {
				ns, rt = nil, unknown
			}
			if tc.bare {
				rt = torchWith(nil)
			}
			if diff := cmp.Diff(tc.want, strictest(t, policies, ns, rt)); diff != "" {
				t.Errorf("Strictest (-want +got):\n%s", diff)
			}
			slices.Reverse(policies)
			if diff := cmp.Diff(tc.want, strictest(t, policies, ns, rt)); diff != "" {
				t.Errorf("Strictest of the other order (-want +got):\n%s", diff)
			}
			// What a cache holds must not change.
			slices.Reverse(policies)
			if diff := cmp.Diff(objs(tc.policies...), policies); diff != "" {
				t.Errorf("the policies changed (-want +got):\n%s", diff)
			}
		})
	}
}

// The runtime is asked for where a policy that selects the namespace selects by it, and nowhere
// else; what cannot be read of it is never taken for nothing.
func TestStrictestAsksForTheRuntime(t *testing.T) {
	p := func(name string) *builder.LifecyclePolicyBuilder { return builder.LifecyclePolicy(name).Max(time.Hour) }
	empty := &metav1.LabelSelector{}
	for name, tc := range map[string]struct {
		policies []*builder.LifecyclePolicyBuilder
		want     bool
	}{
		"no policies":          {},
		"no selectors":         {policies: []*builder.LifecyclePolicyBuilder{p("a"), p("b").Namespaces("team", "x")}},
		"empty selectors":      {policies: []*builder.LifecyclePolicyBuilder{p("a").RuntimeSelector(empty).NamespaceSelector(empty)}},
		"of another namespace": {policies: []*builder.LifecyclePolicyBuilder{p("a").Runtimes("gpu", "yes").Namespaces("team", "y")}},
		"of no namespace, the selector invalid": {
			policies: []*builder.LifecyclePolicyBuilder{p("a").Runtimes("gpu", "yes").NamespaceSelector(selector("team", "Near"))},
		},
		"by a label":          {policies: []*builder.LifecyclePolicyBuilder{p("a"), p("b").Runtimes("gpu", "yes")}, want: true},
		"by an expression":    {policies: []*builder.LifecyclePolicyBuilder{p("a").RuntimeSelector(selector("gpu", metav1.LabelSelectorOpDoesNotExist)), p("b")}, want: true},
		"by a namespace, too": {policies: []*builder.LifecyclePolicyBuilder{p("a").Runtimes("gpu", "yes").Namespaces("team", "x")}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken, asked := errors.New("etcd is away"), 0
			got, err := Strictest(objs(tc.policies...), labels.Set{"team": "x"}, func() (trainer.RuntimeSettings, error) {
				asked++
				return trainer.RuntimeSettings{}, broken
			})
			if (asked > 0) != tc.want || errors.Is(err, broken) != tc.want {
				t.Errorf("asked %d times, error %v; want to ask %v", asked, err, tc.want)
			}
			if tc.want && got != (Rules{}) {
				t.Errorf("rules %+v with an error", got)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	p := func() *builder.LifecyclePolicyBuilder { return builder.LifecyclePolicy("a").Max(time.Hour) }
	for name, tc := range map[string]struct {
		policy *builder.LifecyclePolicyBuilder
		want   []string
	}{
		"no selectors":    {policy: p()},
		"empty selectors": {policy: p().NamespaceSelector(&metav1.LabelSelector{}).RuntimeSelector(&metav1.LabelSelector{})},
		"valid selectors": {policy: p().Namespaces("example.com/team", "x").RuntimeSelector(selector("gpu", metav1.LabelSelectorOpExists))},
		"both wrong, told at once": {
			policy: p().NamespaceSelector(selector("team", "Near", "x")).RuntimeSelector(selector("gpu", metav1.LabelSelectorOpIn)),
			want: []string{
				`spec.namespaceSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`,
				"spec.runtimeSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
			},
		},
		"values where there are none": {
			policy: p().RuntimeSelector(selector("gpu", metav1.LabelSelectorOpExists, "x")),
			want:   []string{"spec.runtimeSelector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := tc.policy.Obj()
			var got []string
			for _, err := range Validate(policy) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

// What Validate finds wrong selects nothing, and what it does not can be matched.
func TestValidateAgreesWithStrictest(t *testing.T) {
	for name, bad := range map[string]*metav1.LabelSelector{
		"operator":        selector("team", "Near", "x"),
		"no values":       selector("team", metav1.LabelSelectorOpNotIn),
		"too many values": selector("team", metav1.LabelSelectorOpDoesNotExist, "x"),
		"key":             selector("a b", metav1.LabelSelectorOpDoesNotExist),
		"no key":          selector("", metav1.LabelSelectorOpDoesNotExist),
		"value":           selector("team", metav1.LabelSelectorOpNotIn, "a b"),
		"label":           {MatchLabels: map[string]string{"team": "a b"}},
		"key of a label":  {MatchLabels: map[string]string{"a b": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := builder.LifecyclePolicy("a").Max(time.Hour).NamespaceSelector(bad)
			if errs := Validate(policy.Obj()); len(errs) == 0 {
				t.Error("Validate finds nothing wrong")
			}
			set := labels.Set{}
			for key, value := range bad.MatchLabels {
				set[key] = value
			}
			if got := strictest(t, objs(policy), set, torchWith(nil)); got != (Rules{}) {
				t.Errorf("Strictest = %+v, want nothing", got)
			}
		})
	}
}
