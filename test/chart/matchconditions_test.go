package chart_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// oldest is the oldest API server by whose rules new expressions must compile: a server lets
// a new object use only what the version before it knows too.
var oldest = version.MajorMinor(1, 32)

// matcher compiles the webhook's match conditions as an API server does for a new object.
// An error of an evaluation is handed out and not taken for an answer.
func matcher(t *testing.T) matchconditions.Matcher {
	t.Helper()
	configuration := named[*admissionregistrationv1.MutatingWebhookConfiguration](t, render(t))["signalbox"]
	conditions := configuration.Webhooks[0].MatchConditions
	if len(conditions) == 0 {
		t.Fatal("the webhook has no match conditions")
	}
	var expressions []cel.ExpressionAccessor
	for _, condition := range conditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	compiled := cel.NewConditionCompiler(environment.MustBaseEnvSet(oldest)).CompileCondition(
		expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	for _, err := range compiled.CompilationErrors() {
		t.Fatalf("compile the match conditions: %v", err)
	}
	fail := admissionregistrationv1.Fail
	return matchconditions.NewMatcher(compiled, &fail, "webhook", "admit", configuration.Webhooks[0].Name)
}

func TestMatchConditions(t *testing.T) {
	conditions := matcher(t)
	for name, tc := range map[string]struct {
		// before is empty on CREATE.
		before, after string
		want          bool
	}{
		"a new TrainJob": {after: `{"spec":{"suspend":false}}`, want: true},
		"a new TrainJob without spec and annotations": {after: `{}`, want: true},
		"a new suspended TrainJob":                    {after: `{"spec":{"suspend":true}}`, want: true},

		"nothing changes, nothing is there":               {before: `{}`, after: `{}`},
		"nothing changes while active":                    {before: `{"spec":{"suspend":false}}`, after: `{"spec":{"suspend":false}}`},
		"nothing changes while suspended":                 {before: `{"spec":{"suspend":true}}`, after: `{"spec":{"suspend":true}}`},
		"suspend goes from absent to false":               {before: `{"spec":{}}`, after: `{"spec":{"suspend":false}}`},
		"suspend goes from false to absent":               {before: `{"spec":{"suspend":false}}`, after: `{"spec":{}}`},
		"suspend goes from null to false":                 {before: `{"spec":{"suspend":null}}`, after: `{"spec":{"suspend":false}}`},
		"suspend goes from false to null":                 {before: `{"spec":{"suspend":false}}`, after: `{"spec":{"suspend":null}}`},
		"suspend goes from absent to null":                {before: `{}`, after: `{"spec":{"suspend":null}}`},
		"the spec is null on both sides":                  {before: `{"spec":null}`, after: `{"spec":null}`},
		"the spec goes from null to active":               {before: `{"spec":null}`, after: `{"spec":{"suspend":false}}`},
		"suspend is no boolean, which the schema refuses": {before: `{"spec":{}}`, after: `{"spec":{"suspend":"yes"}}`},

		"suspended from false":   {before: `{"spec":{"suspend":false}}`, after: `{"spec":{"suspend":true}}`, want: true},
		"suspended from absent":  {before: `{"spec":{}}`, after: `{"spec":{"suspend":true}}`, want: true},
		"suspended from no spec": {before: `{}`, after: `{"spec":{"suspend":true}}`, want: true},
		"suspended from null":    {before: `{"spec":{"suspend":null}}`, after: `{"spec":{"suspend":true}}`, want: true},
		"resumed by false":       {before: `{"spec":{"suspend":true}}`, after: `{"spec":{"suspend":false}}`, want: true},
		"resumed by absence":     {before: `{"spec":{"suspend":true}}`, after: `{"spec":{}}`, want: true},
		"resumed by null":        {before: `{"spec":{"suspend":true}}`, after: `{"spec":{"suspend":null}}`, want: true},
		"resumed while being deleted": {
			before: `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"suspend":true}}`,
			after:  `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`,
			want:   true,
		},

		"a label is added": {before: `{}`, after: `{"metadata":{"labels":{"team":"a"}}}`},
		"a finalizer goes": {before: `{"metadata":{"finalizers":["a/b"]}}`, after: `{"metadata":{"finalizers":[]}}`},
		"another annotation comes": {
			before: `{}`, after: `{"metadata":{"annotations":{"note":"b"}}}`,
		},
		"another annotation changes": {
			before: `{"metadata":{"annotations":{"note":"a"}}}`, after: `{"metadata":{"annotations":{"note":"b"}}}`,
		},
		"the user's annotation with our prefix changes": {
			before: `{"metadata":{"annotations":{"` + v1alpha1.AnnotationActiveDeadlineSeconds + `":"1"}}}`,
			after:  `{"metadata":{"annotations":{"` + v1alpha1.AnnotationActiveDeadlineSeconds + `":"2"}}}`,
		},
		"empty annotations come": {before: `{}`, after: `{"metadata":{"annotations":{}}}`},
		"null annotations come":  {before: `{"metadata":{"annotations":{"note":"a"}}}`, after: `{"metadata":{"annotations":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			checkMatch(t, conditions, tc.before, tc.after, tc.want)
		})
	}
}

// TestMatchConditionsOnProtectedAnnotations covers each annotation that the webhook protects.
func TestMatchConditionsOnProtectedAnnotations(t *testing.T) {
	conditions := matcher(t)
	for _, key := range v1alpha1.ProtectedAnnotations() {
		with := func(value string) string {
			return `{"metadata":{"annotations":{"note":"a","` + key + `":"` + value + `"}}}`
		}
		for name, tc := range map[string]struct {
			before, after string
			want          bool
		}{
			"is added to none":               {before: `{}`, after: with("1"), want: true},
			"is added beside another":        {before: `{"metadata":{"annotations":{"note":"a"}}}`, after: with("1"), want: true},
			"is added empty":                 {before: `{}`, after: with(""), want: true},
			"changes":                        {before: with("1"), after: with("2"), want: true},
			"is removed":                     {before: with("1"), after: `{"metadata":{"annotations":{"note":"a"}}}`, want: true},
			"is removed with all the others": {before: with("1"), after: `{}`, want: true},
			"stays":                          {before: with("1"), after: with("1")},
			"stays, and it is very long":     {before: with(strings.Repeat("x", 250<<10)), after: with(strings.Repeat("x", 250<<10))},
		} {
			t.Run(key+" "+name, func(t *testing.T) {
				checkMatch(t, conditions, tc.before, tc.after, tc.want)
			})
		}
	}
}

// checkMatch asks the conditions whether the webhook is called. Without before the request
// is a CREATE.
func checkMatch(t *testing.T, conditions matchconditions.Matcher, before, after string, want bool) {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}
	resource := kind.GroupVersion().WithResource("trainjobs")
	object, operation := trainJob(t, kind, after), admission.Create
	var oldObject runtime.Object
	if before != "" {
		oldObject, operation = trainJob(t, kind, before), admission.Update
	}
	request := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, oldObject, kind, "team", "job", resource, "",
			operation, nil, false, nil),
		VersionedKind: kind, VersionedObject: object, VersionedOldObject: oldObject,
	}
	got := conditions.Match(t.Context(), request, nil, nil)
	if got.Error != nil {
		t.Fatalf("evaluation failed, so the request would be refused: %v", got.Error)
	}
	if got.Matches != want {
		t.Errorf("webhook called: %t, want %t", got.Matches, want)
	}
}

// trainJob makes a TrainJob of its JSON without apiVersion, kind, namespace and name.
func trainJob(t *testing.T, kind schema.GroupVersionKind, text string) runtime.Object {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	job := &unstructured.Unstructured{Object: object}
	job.SetGroupVersionKind(kind)
	job.SetNamespace("team")
	job.SetName("job")
	return job
}
