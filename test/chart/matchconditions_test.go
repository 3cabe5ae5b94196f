package chart_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldest is the oldest API server by whose rules new expressions must compile: a server lets
// a new object use only what the version before it knows too.
var oldest = version.MajorMinor(1, 32)

// matcher compiles the match conditions of the webhook that is served at this path as an API
// server does for a new object. An error of an evaluation is handed out and not taken for an
// answer: with failurePolicy Fail it would refuse the write, with Ignore let it pass.
func matcher(t *testing.T, path string, values ...string) matchconditions.Matcher {
	t.Helper()
	hook := find(t, path, values...)
	fail := admissionregistrationv1.Fail
	return matchconditions.NewMatcher(compile(t, hook), &fail, "webhook", "admit", hook.Name)
}

// compile compiles the match conditions of a webhook, which must have some.
func compile(t *testing.T, hook admissionregistrationv1.MutatingWebhook) cel.ConditionEvaluator {
	t.Helper()
	if len(hook.MatchConditions) == 0 {
		t.Fatalf("the webhook at %s has no match conditions", *hook.ClientConfig.Service.Path)
	}
	var expressions []cel.ExpressionAccessor
	for _, condition := range hook.MatchConditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression})
	}
	compiled := cel.NewConditionCompiler(environment.MustBaseEnvSet(oldest)).CompileCondition(
		expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	for _, err := range compiled.CompilationErrors() {
		t.Fatalf("compile the match conditions: %v", err)
	}
	return compiled
}

// find returns the webhook that is served at this path.
func find(t *testing.T, path string, values ...string) admissionregistrationv1.MutatingWebhook {
	t.Helper()
	hooks := webhooks(t, values...)
	i := slices.IndexFunc(hooks, func(hook admissionregistrationv1.MutatingWebhook) bool {
		return *hook.ClientConfig.Service.Path == path
	})
	if i < 0 {
		t.Fatalf("there is no webhook at %s", path)
	}
	return hooks[i]
}

// resource is what requests are about.
type resource struct {
	kind        schema.GroupVersionKind
	name        string
	subresource string
}

// request is a write, as JSON of the object without apiVersion, kind, namespace and name.
// Without before it is a CREATE, without after a DELETE.
type request struct {
	before, after string
	user          string
	dryRun        bool
}

// checkMatch asks the conditions whether the webhook is called.
func checkMatch(t *testing.T, conditions matchconditions.Matcher, of resource, req request, want bool) {
	t.Helper()
	got := match(t, conditions, of, req)
	if got.Error != nil {
		t.Fatalf("evaluation failed: %v", got.Error)
	}
	if got.Matches != want {
		t.Errorf("webhook called: %t, want %t", got.Matches, want)
	}
}

func match(t *testing.T, conditions matchconditions.Matcher, of resource, req request) matchconditions.MatchResult {
	t.Helper()
	return conditions.Match(t.Context(), attributesOf(t, of, req), nil, nil)
}

// attributesOf returns what an API server knows of the request during admission.
func attributesOf(t *testing.T, of resource, req request) *admission.VersionedAttributes {
	t.Helper()
	operation := admission.Update
	var object, oldObject runtime.Object
	if req.before == "" {
		operation = admission.Create
	} else {
		oldObject = decode(t, of.kind, req.before)
	}
	if req.after == "" {
		operation = admission.Delete
	} else {
		object = decode(t, of.kind, req.after)
	}
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, oldObject, of.kind, "team", "job",
			of.kind.GroupVersion().WithResource(of.name), of.subresource, operation, nil, req.dryRun,
			&user.DefaultInfo{Name: req.user}),
		VersionedKind: of.kind, VersionedObject: object, VersionedOldObject: oldObject,
	}
}

// decode makes an object of its JSON. The metadata goes through its type, as in an API
// server: fields that the type always writes are there.
func decode(t *testing.T, kind schema.GroupVersionKind, text string) runtime.Object {
	t.Helper()
	object := &unstructured.Unstructured{}
	var typed struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	for _, into := range []any{&object.Object, &typed} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed.ObjectMeta)
	if err != nil {
		t.Fatal(err)
	}
	object.Object["metadata"] = metadata
	object.SetGroupVersionKind(kind)
	object.SetNamespace("team")
	object.SetName("job")
	return object
}
