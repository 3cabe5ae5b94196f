package chart_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/guard"
)

const policyName = "signalbox-runtime-clocks"

// withPolicy are values by which the API server checks runtimes itself.
var withPolicy = []string{"runtimes.admissionPolicy=true"}

// TestPolicy checks all of the policy but its expressions.
func TestPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		values   []string
		excluded []string
		selected map[string]string
	}{
		"default values": {excluded: []string{namespace, "kube-system"}},
		"selected namespaces": {
			values:   []string{"webhook.namespaceSelector.matchLabels.kind=training"},
			excluded: []string{namespace, "kube-system"}, selected: map[string]string{"kind": "training"},
		},
		"excluded namespaces, one named twice": {
			values:   []string{"webhook.excludedNamespaces={kube-system,other}"},
			excluded: []string{namespace, "kube-system", "other"},
		},
		// What the webhook does is not what the policy does.
		"other settings of the webhook": {
			values:   []string{"webhook.failurePolicy=Ignore", "webhook.runtimeFailurePolicy=Fail", "runtimes.inUse=Allow"},
			excluded: []string{namespace, "kube-system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, append(tc.values, withPolicy...)...)
			meta := metav1.ObjectMeta{Name: policyName, Labels: apiLabels(t, objects)}
			runtimes := rule("trainer.kubeflow.org", "v1alpha1", "trainingruntimes",
				[]admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update})
			runtimes.Resources, runtimes.Scope = append(runtimes.Resources, "clustertrainingruntimes"), ptr.To(admissionregistrationv1.AllScopes)
			wantPolicy := &admissionregistrationv1.ValidatingAdmissionPolicy{
				ObjectMeta: meta,
				Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
					FailurePolicy: ptr.To(admissionregistrationv1.Fail),
					MatchConstraints: &admissionregistrationv1.MatchResources{
						MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
						NamespaceSelector: &metav1.LabelSelector{MatchLabels: tc.selected, MatchExpressions: []metav1.LabelSelectorRequirement{{
							Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: tc.excluded,
						}}},
						ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: runtimes}},
					},
				},
			}
			wantBinding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: meta,
				Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName: policyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				},
			}
			policy := named[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects)[policyName]
			if policy == nil {
				t.Fatalf("there is no policy %s", policyName)
			}
			policy.TypeMeta = metav1.TypeMeta{}
			policy.Spec.MatchConditions, policy.Spec.Variables, policy.Spec.Validations = nil, nil, nil // have tests of their own
			if diff := cmp.Diff(wantPolicy, policy); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
			binding := named[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects)[policyName]
			if binding != nil {
				binding.TypeMeta = metav1.TypeMeta{}
			}
			if diff := cmp.Diff(wantBinding, binding); diff != "" {
				t.Errorf("binding (-want +got):\n%s", diff)
			}
		})
	}
}

// quiet is a Job template without a clock.
const quiet = `{"spec":{"backoffLimit":0,"template":{"spec":{"containers":[{"name":"node","image":"a"}]}}}}`

// replicatedJob is one of this name with this Job template.
func replicatedJob(name, template string) string {
	return fmt.Sprintf(`{"name":%q,"template":%s}`, name, template)
}

// runtimeOf is a runtime with these replicatedJobs.
func runtimeOf(replicatedJobs ...string) string {
	return `{"spec":{"template":{"spec":{"replicatedJobs":[` + strings.Join(replicatedJobs, ",") + `]}}}}`
}

// clock is a Job template with clocks of these values; null is no value.
func clock(deadline, ttl, podDeadline string) string {
	return fmt.Sprintf(`{"spec":{"activeDeadlineSeconds":%s,"ttlSecondsAfterFinished":%s,"template":{"spec":{"activeDeadlineSeconds":%s}}}}`,
		deadline, ttl, podDeadline)
}

// clocks are runtimes, each with the number of its clocks.
var clocks = map[string]struct {
	runtime string
	clocks  int
}{
	"without a clock": {runtime: runtimeOf(replicatedJob("a", quiet), replicatedJob("b", quiet), replicatedJob("c", quiet))},
	"null is no clock": {runtime: `{"spec":{"template":{"spec":{"activeDeadlineSeconds":null,"ttlSecondsAfterFinished":null,
		"replicatedJobs":[` + replicatedJob("a", clock("null", "null", "null")) + `]}}}}`},
	"a deadline of the JobSet": {runtime: `{"spec":{"template":{"spec":{"activeDeadlineSeconds":5}}}}`, clocks: 1},
	"a TTL of the JobSet":      {runtime: `{"spec":{"template":{"spec":{"ttlSecondsAfterFinished":5}}}}`, clocks: 1},
	"both of the JobSet":       {runtime: `{"spec":{"template":{"spec":{"activeDeadlineSeconds":5,"ttlSecondsAfterFinished":5}}}}`, clocks: 2},
	"both of the JobSet, other values": {
		runtime: `{"spec":{"template":{"spec":{"activeDeadlineSeconds":6,"ttlSecondsAfterFinished":0}}}}`, clocks: 2,
	},

	"a deadline of the first Job":       {runtime: runtimeOf(replicatedJob("a", `{"spec":{"activeDeadlineSeconds":5}}`), replicatedJob("b", quiet)), clocks: 1},
	"a TTL of the first Job":            {runtime: runtimeOf(replicatedJob("a", `{"spec":{"ttlSecondsAfterFinished":5}}`), replicatedJob("b", quiet)), clocks: 1},
	"a deadline of the first Job's pod": {runtime: runtimeOf(replicatedJob("a", clock("null", "null", "5"))), clocks: 1},
	"a deadline of the second of three": {
		runtime: runtimeOf(replicatedJob("a", quiet), replicatedJob("b", clock("5", "null", "null")), replicatedJob("c", quiet)), clocks: 1,
	},
	"a TTL of the last of three": {
		runtime: runtimeOf(replicatedJob("a", quiet), replicatedJob("b", quiet), replicatedJob("c", clock("null", "5", "null"))), clocks: 1,
	},
	"all of one": {runtime: runtimeOf(replicatedJob("a", clock("5", "5", "5"))), clocks: 3},
	"all of two, and of the JobSet": {
		runtime: `{"spec":{"template":{"spec":{"activeDeadlineSeconds":5,"ttlSecondsAfterFinished":5,"replicatedJobs":[` +
			replicatedJob("a", clock("5", "5", "5")) + `,` + replicatedJob("b", clock("5", "5", "5")) + `]}}}}`,
		clocks: 8,
	},
	"all of two, in the other order": {
		runtime: runtimeOf(replicatedJob("b", clock("5", "5", "5")), replicatedJob("a", clock("5", "5", "5"))), clocks: 6,
	},
	"all of two, each of another's value": {
		runtime: runtimeOf(replicatedJob("a", clock("1", "2", "3")), replicatedJob("b", clock("3", "1", "2"))), clocks: 6,
	},
	"all of two, values exchanged": {
		runtime: runtimeOf(replicatedJob("a", clock("3", "1", "2")), replicatedJob("b", clock("1", "2", "3"))), clocks: 6,
	},
	"all of one that is renamed": {runtime: runtimeOf(replicatedJob("z", clock("5", "5", "5"))), clocks: 3},
	"one that is named as the JobSet": {
		runtime: runtimeOf(replicatedJob("JobSet", clock("5", "5", "5")), replicatedJob("Job a", clock("5", "5", "5")), replicatedJob("", clock("5", "5", "5"))),
		clocks:  9,
	},
	"values at the ends of their range": {
		runtime: runtimeOf(replicatedJob("a", clock("0", "9223372036854775807", "-9223372036854775808"))), clocks: 3,
	},
	"the same fields elsewhere": {
		runtime: `{"metadata":{"annotations":{"activeDeadlineSeconds":"5"}},"spec":{"activeDeadlineSeconds":5,"mlPolicy":{"ttlSecondsAfterFinished":5},
			"template":{"activeDeadlineSeconds":5,"metadata":{"labels":{"activeDeadlineSeconds":"5"}},"spec":{"replicatedJobs":[
			{"name":"a","activeDeadlineSeconds":5,"template":{"ttlSecondsAfterFinished":5,"spec":{"template":{"activeDeadlineSeconds":5,
			"spec":{"ttlSecondsAfterFinished":5,"containers":[{"name":"a","activeDeadlineSeconds":5}]}}}}}]}}}}`,
	},

	"no spec":            {runtime: `{}`},
	"no template":        {runtime: `{"spec":{}}`},
	"no JobSet":          {runtime: `{"spec":{"template":{}}}`},
	"no replicatedJobs":  {runtime: `{"spec":{"template":{"spec":{}}}}`},
	"empty list of them": {runtime: runtimeOf()},
	"one that is empty":  {runtime: runtimeOf(`{}`)},
	"no Job":             {runtime: runtimeOf(replicatedJob("a", `{}`))},
	"no pod template":    {runtime: runtimeOf(replicatedJob("a", `{"spec":{"activeDeadlineSeconds":5}}`)), clocks: 1},
	"no pod":             {runtime: runtimeOf(replicatedJob("a", `{"spec":{"template":{}}}`))},

	// The API server refuses these by the schema, or would store them in another shape.
	"the spec is null":                {runtime: `{"spec":null}`},
	"the spec is a text":              {runtime: `{"spec":"activeDeadlineSeconds"}`},
	"the spec is a list":              {runtime: `{"spec":[{"template":{}}]}`},
	"the template is null":            {runtime: `{"spec":{"template":null}}`},
	"the template is a number":        {runtime: `{"spec":{"template":5}}`},
	"the template is a list":          {runtime: `{"spec":{"template":[5]}}`},
	"the JobSet is null":              {runtime: `{"spec":{"template":{"spec":null}}}`},
	"the JobSet is a boolean":         {runtime: `{"spec":{"template":{"spec":true}}}`},
	"the JobSet is a list":            {runtime: `{"spec":{"template":{"spec":["activeDeadlineSeconds"]}}}`},
	"the replicatedJobs are null":     {runtime: `{"spec":{"template":{"spec":{"replicatedJobs":null}}}}`},
	"the replicatedJobs are a text":   {runtime: `{"spec":{"template":{"spec":{"replicatedJobs":"a"}}}}`},
	"the replicatedJobs are a number": {runtime: `{"spec":{"template":{"spec":{"replicatedJobs":5}}}}`},
	"the replicatedJobs are an object": {
		runtime: `{"spec":{"template":{"spec":{"activeDeadlineSeconds":5,"replicatedJobs":{"a":` + clock("5", "5", "5") + `}}}}}`, clocks: 1,
	},
	"some are no objects": {
		runtime: runtimeOf(`null`, `"a"`, `5`, `true`, `[]`, `[{"template":{}}]`, replicatedJob("a", clock("5", "5", "5"))), clocks: 3,
	},
	"templates are no objects": {
		runtime: runtimeOf(replicatedJob("a", `null`), replicatedJob("b", `"a"`), replicatedJob("c", `[]`), replicatedJob("d", `5`)),
	},
	"Jobs are no objects": {
		runtime: runtimeOf(replicatedJob("a", `{"spec":null}`), replicatedJob("b", `{"spec":"a"}`), replicatedJob("c", `{"spec":[5]}`)),
	},
	"pod templates are no objects": {
		runtime: runtimeOf(replicatedJob("a", `{"spec":{"ttlSecondsAfterFinished":5,"template":null}}`), replicatedJob("b", `{"spec":{"template":[]}}`)), clocks: 1,
	},
	"pods are no objects": {
		runtime: runtimeOf(replicatedJob("a", `{"spec":{"template":{"spec":5}}}`), replicatedJob("b", `{"spec":{"template":{"spec":[5]}}}`)),
	},
	"the name is null":      {runtime: runtimeOf(`{"name":null,"template":` + clock("5", "5", "5") + `}`), clocks: 3},
	"the name is missing":   {runtime: runtimeOf(`{"template":` + clock("5", "5", "5") + `}`), clocks: 3},
	"the name is a number":  {runtime: runtimeOf(`{"name":5,"template":` + clock("5", "5", "5") + `}`), clocks: 3},
	"the name is a list":    {runtime: runtimeOf(`{"name":["a"],"template":` + clock("5", "5", "5") + `}`), clocks: 3},
	"the name is an object": {runtime: runtimeOf(`{"name":{},"template":` + clock("5", "6", "5") + `}`), clocks: 3},
	"values are texts":      {runtime: runtimeOf(replicatedJob("a", clock(`"5"`, `""`, `"5s"`))), clocks: 3},
	"values are booleans":   {runtime: runtimeOf(replicatedJob("a", clock(`true`, `false`, `true`))), clocks: 3},
	"values are lists":      {runtime: runtimeOf(replicatedJob("a", clock(`[]`, `[5]`, `[null]`))), clocks: 3},
	"values are objects":    {runtime: runtimeOf(replicatedJob("a", clock(`{}`, `{"a":5}`, `{"a":null}`))), clocks: 3},
	"values are fractions":  {runtime: runtimeOf(replicatedJob("a", clock(`5.0`, `5.5`, `5e0`))), clocks: 3},
	"values are too large":  {runtime: runtimeOf(replicatedJob("a", clock(`9223372036854775808`, `1e300`, `-1e19`))), clocks: 3},
}

// TestPolicyAgreesWithTheWebhook creates each runtime and makes it from each other: the policy
// refuses exactly what the webhook does, and says the first of it in the same words.
func TestPolicyAgreesWithTheWebhook(t *testing.T) {
	p := compiledPolicy(t)
	names := slices.Sorted(maps.Keys(clocks))
	for i, name := range names {
		tc := clocks[name]
		t.Run(name, func(t *testing.T) {
			if found := len(guard.Clocks(nil, storedSpec(t, tc.runtime))); found != tc.clocks {
				t.Errorf("the webhook finds %d clocks, want %d", found, tc.clocks)
			}
			checkPolicy(t, p, "", tc.runtime)
			// Each is made from every seventh, the first of which differs. All pairs take
			// minutes.
			for j := i % 7; j < len(names); j += 7 {
				checkPolicy(t, p, clocks[names[j]].runtime, tc.runtime)
			}
		})
	}
}

// TestPolicyOnEditsOfTheRest edits all but the clocks that are stored.
func TestPolicyOnEditsOfTheRest(t *testing.T) {
	p := compiledPolicy(t)
	for name, tc := range clocks {
		var object map[string]any
		if err := kjson.Unmarshal([]byte(tc.runtime), &object); err != nil {
			t.Fatal(err)
		}
		if spec, ok := object["spec"].(map[string]any); ok {
			spec["mlPolicy"] = map[string]any{"numNodes": 2}
			edited, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(name, func(t *testing.T) {
				if len(guard.Clocks(storedSpec(t, tc.runtime), storedSpec(t, string(edited)))) > 0 {
					t.Error("the webhook refuses what is stored")
				}
				checkPolicy(t, p, tc.runtime, string(edited))
			})
		}
	}
}

// TestPolicyIgnores makes writes that the policy has no say in, though a clock comes in some.
func TestPolicyIgnores(t *testing.T) {
	p := compiledPolicy(t)
	const deleted = `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]},`
	bad := runtimeOf(replicatedJob("a", clock("5", "5", "5")))
	worse := runtimeOf(replicatedJob("a", clock("6", "6", "6")))
	for name, tc := range map[string]struct{ before, after string }{
		"nothing changes":                     {bad, bad},
		"a label comes":                       {bad, strings.Replace(bad, `{`, `{"metadata":{"labels":{"team":"a"}},`, 1)},
		"a finalizer goes from a deleted one": {strings.Replace(bad, `{`, `{`+deleted, 1), bad},
		"a clock comes to a deleted one":      {strings.Replace(runtimeOf(), `{`, `{`+deleted, 1), strings.Replace(bad, `{`, `{`+deleted, 1)},
		"a clock changes in a deleted one":    {strings.Replace(bad, `{`, `{`+deleted, 1), strings.Replace(worse, `{`, `{`+deleted, 1)},
	} {
		for _, of := range ofRuntimes {
			t.Run(name+", "+of.kind.Kind, func(t *testing.T) {
				if refusal := p.refusal(t, of, tc.before, tc.after); refusal != "" {
					t.Errorf("refused: %s", refusal)
				}
			})
		}
	}
	// Who makes it says that the same clock would be refused elsewhere.
	checkPolicy(t, p, bad, worse)
}

// TestPolicyIsAffordable writes runtimes larger than any that is of use. An evaluation that
// costs too much is an error, by which the write would be refused.
func TestPolicyIsAffordable(t *testing.T) {
	p := compiledPolicy(t)
	many := func(n int, more string, job func(i int) string) string {
		jobs := make([]string, n)
		for i := range jobs {
			// A name of a Job's, and so of a replicatedJob's, has at most 63 characters.
			jobs[i] = replicatedJob(fmt.Sprintf("%s-%d", strings.Repeat("x", 58), i), job(i))
		}
		return `{"spec":{"mlPolicy":` + more + `,"template":{"spec":{"replicatedJobs":[` + strings.Join(jobs, ",") + `]}}}}`
	}
	none := func(int) string { return quiet }
	all := func(i int) string { return clock(fmt.Sprint(i), "5", "5") }
	other := func(i int) string { return clock(fmt.Sprint(i+1), "6", "6") }
	const n, large = 100, 1000
	last := func(i int) string {
		if i < large-1 {
			return quiet
		}
		return clock("5", "5", "5")
	}
	longText := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, tc := range map[string]struct {
		// before is empty on CREATE.
		before, after string
	}{
		"created without a clock":   {after: many(n, `{}`, none)},
		"created with every clock":  {after: many(n, `{}`, all)},
		"every clock comes":         {before: many(n, `{}`, none), after: many(n, `{}`, all)},
		"every clock changes":       {before: many(n, `{}`, all), after: many(n, `{}`, other)},
		"every clock stays":         {before: many(n, `{}`, all), after: many(n, `{"numNodes":1}`, all)},
		"every clock goes":          {before: many(n, `{}`, all), after: many(n, `{}`, none)},
		"many more without a clock": {before: many(large, `{}`, none), after: many(large, `{"numNodes":1}`, none)},
		"many more, the last comes": {before: many(large, `{}`, none), after: many(large, `{}`, last)},
		"many more, the last stays": {before: many(large, `{}`, last), after: many(large, `{"numNodes":1}`, last)},
		// Too much to find out what is new; but nothing can be.
		"far too many clocks, a label comes": {
			before: many(large, `{}`, all), after: strings.Replace(many(large, `{}`, all), `{`, `{"metadata":{"labels":{"team":"a"}},`, 1),
		},
		"a long text, clocks come":   {before: many(1, longText, none), after: many(1, longText, all)},
		"a long text, clocks stay":   {before: many(1, `{}`, all), after: many(1, longText, all)},
		"a long text, clocks change": {before: many(1, longText, all), after: many(1, longText, other)},
	} {
		t.Run(name, func(t *testing.T) {
			checkPolicy(t, p, tc.before, tc.after)
		})
	}
}

// checkPolicy holds the answer of the policy against what the webhook says of the same write.
// before is empty on CREATE.
func checkPolicy(t *testing.T, p *runtimePolicy, before, after string) {
	t.Helper()
	errs := guard.Clocks(storedSpec(t, before), storedSpec(t, after))
	want := ""
	if len(errs) > 0 {
		want = errs[0].Field + ": " + errs[0].Detail
	}
	if len(errs) > 1 {
		want += fmt.Sprintf(" (and %d more)", len(errs)-1)
	}
	for _, of := range ofRuntimes {
		if got := p.refusal(t, of, before, after); got != want {
			t.Errorf("%s, before:\n%.500s\nafter:\n%.500s\nthe policy says:\n%s\nthe webhook says:\n%s", of.kind.Kind, before, after, got, want)
		}
	}
}

// storedSpec returns the spec of a runtime as the webhook gets it: as the API server writes it.
func storedSpec(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	object := decode(t, ofRuntimes[0].kind, text)
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var written map[string]any
	if err := kjson.Unmarshal(content, &written); err != nil {
		t.Fatal(err)
	}
	spec, _ := written["spec"].(map[string]any)
	return spec
}

// expression is one that an API server compiles.
type expression struct {
	name, text string
	result     *celgo.Type
}

func (e expression) GetName() string            { return e.name }
func (e expression) GetExpression() string      { return e.text }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.result} }

// runtimePolicy is the ValidatingAdmissionPolicy of the chart, as an API server compiles it.
type runtimePolicy struct {
	matches               matchconditions.Matcher
	validations, messages cel.ConditionEvaluator
}

// compiledPolicy compiles the policy as an API server does for a new object.
func compiledPolicy(t *testing.T) *runtimePolicy {
	t.Helper()
	rendered := named[*admissionregistrationv1.ValidatingAdmissionPolicy](t, render(t, withPolicy...))[policyName]
	if rendered == nil {
		t.Fatalf("there is no policy %s", policyName)
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
	if err != nil {
		t.Fatal(err)
	}
	// A message cannot ask the authorizer.
	options, ofMessages := cel.OptionalVariableDeclarations{HasAuthorizer: true}, cel.OptionalVariableDeclarations{}
	for _, variable := range rendered.Spec.Variables {
		compiled := compiler.CompileAndStoreVariable(expression{variable.Name, variable.Expression, celgo.AnyType}, options, environment.NewExpressions)
		if compiled.Error != nil {
			t.Fatalf("compile variable %s: %v", variable.Name, compiled.Error)
		}
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for _, condition := range rendered.Spec.MatchConditions {
		conditions = append(conditions, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	for _, validation := range rendered.Spec.Validations {
		if validation.Reason != nil {
			t.Errorf("reason %q, want none: Invalid, as the webhook's", *validation.Reason)
		}
		validations = append(validations, expression{text: validation.Expression, result: celgo.BoolType})
		messages = append(messages, expression{text: validation.MessageExpression, result: celgo.StringType})
	}
	compile := func(expressions []cel.ExpressionAccessor, options cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		if len(expressions) == 0 {
			t.Fatal("the policy has no expressions")
		}
		compiled := compiler.CompileCondition(expressions, options, environment.NewExpressions)
		for _, err := range compiled.CompilationErrors() {
			t.Fatalf("compile the policy: %v", err)
		}
		return compiled
	}
	return &runtimePolicy{
		matches:     matchconditions.NewMatcher(compile(conditions, options), rendered.Spec.FailurePolicy, "policy", "validate", policyName),
		validations: compile(validations, options),
		messages:    compile(messages, ofMessages),
	}
}

// refusal returns why the policy refuses a write of a runtime; it is empty when it does not.
// before is empty on CREATE.
func (p *runtimePolicy) refusal(t *testing.T, of resource, before, after string) string {
	t.Helper()
	operation, gvr := admission.Create, of.kind.GroupVersion().WithResource(of.name)
	object, oldObject := decode(t, of.kind, after), runtime.Object(nil)
	if before != "" {
		operation, oldObject = admission.Update, decode(t, of.kind, before)
	}
	attributes := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, oldObject, of.kind, "team", "runtime", gvr, "", operation, nil, false,
			&user.DefaultInfo{Name: "someone"}),
		VersionedKind: of.kind, VersionedObject: object, VersionedOldObject: oldObject,
	}
	match := p.matches.Match(t.Context(), attributes, nil, nil)
	if match.Error != nil {
		t.Fatalf("evaluation of the conditions failed: %v", match.Error)
	}
	if !match.Matches {
		return ""
	}
	// One budget is for both.
	req := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(of.kind))
	verdicts, rest, err := p.validations.ForInput(t.Context(), attributes, req, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatalf("evaluation failed: %v", err)
	}
	messages, _, err := p.messages.ForInput(t.Context(), attributes, req, cel.OptionalVariableBindings{}, nil, rest)
	if err != nil {
		t.Fatalf("evaluation of the messages failed: %v", err)
	}
	refusal := ""
	for i, verdict := range verdicts {
		if verdict.Error != nil {
			t.Fatalf("evaluation failed: %v", verdict.Error)
		}
		if verdict.EvalResult.Value() == true {
			continue
		}
		if messages[i].Error != nil {
			t.Fatalf("evaluation of the message failed: %v", messages[i].Error)
		}
		// An API server does not show one that is longer or has several lines.
		message := messages[i].EvalResult.Value().(string)
		if message == "" || len(message) > celconfig.MaxEvaluatedMessageExpressionSizeBytes || strings.Contains(message, "\n") {
			t.Errorf("message %q would not be shown", message)
		}
		refusal += message
	}
	return refusal
}
