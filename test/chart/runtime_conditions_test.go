package chart_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// ofRuntimes are the resources that the webhook for runtimes is about.
var ofRuntimes = []resource{
	{kind: trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind), name: "clustertrainingruntimes"},
	{kind: trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind), name: "trainingruntimes"},
}

// annotated is a runtime whose template has these annotations, and with more in its spec.
func annotated(annotations, more string) string {
	return `{"spec":{"template":{"metadata":{"annotations":` + annotations + `}}` + more + `}}`
}

// runtimeMatchers returns the conditions of both webhooks for runtimes, which must be called
// for the same creations and changes of the spec.
func runtimeMatchers(t *testing.T) map[string]matchconditions.Matcher {
	t.Helper()
	return map[string]matchconditions.Matcher{
		"mutating":   matcher(t, admission.RuntimeMutatePath),
		"validating": matcher(t, admission.RuntimeValidatePath),
	}
}

func TestRuntimeConditions(t *testing.T) {
	matchers := runtimeMatchers(t)
	const revision = `{"lifecycle.trainer.kubeflow.org/runtime-revision":"0123456789abcdef"}`
	stamped := annotated(revision, "")
	for name, tc := range map[string]struct {
		// before is empty on CREATE.
		before, after string
		want          bool
	}{
		"a new runtime":                     {after: `{"spec":{"template":{}}}`, want: true},
		"a new runtime that has a revision": {after: stamped, want: true},
		"a new runtime without a spec":      {after: `{}`, want: true},
		"a new runtime with a null spec":    {after: `{"spec":null}`, want: true},

		"nothing changes":             {before: stamped, after: stamped},
		"nothing changes, no spec":    {before: `{}`, after: `{}`},
		"nothing changes, null spec":  {before: `{"spec":null}`, after: `{"spec":null}`},
		"nothing changes, empty spec": {before: `{"spec":{}}`, after: `{"spec":{}}`},
		"fields change their order": {
			before: `{"spec":{"mlPolicy":{"numNodes":1},"template":{}}}`, after: `{"spec":{"template":{},"mlPolicy":{"numNodes":1}}}`,
		},
		"a label is added":       {before: `{"spec":{}}`, after: `{"metadata":{"labels":{"team":"a"}},"spec":{}}`},
		"an annotation is added": {before: `{"spec":{}}`, after: `{"metadata":{"annotations":` + revision + `},"spec":{}}`},
		"a finalizer goes":       {before: `{"metadata":{"finalizers":["a/b"]},"spec":{}}`, after: `{"metadata":{"finalizers":[]},"spec":{}}`},
		"a status comes":         {before: `{"spec":{}}`, after: `{"spec":{},"status":{"ready":true}}`},
		"a finalizer goes while being deleted": {
			before: `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]},"spec":{}}`,
			after:  `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`,
		},

		"the spec comes":              {before: `{}`, after: stamped, want: true},
		"the spec goes":               {before: stamped, after: `{}`, want: true},
		"the spec comes empty":        {before: `{}`, after: `{"spec":{}}`, want: true},
		"the spec becomes null":       {before: `{"spec":{}}`, after: `{"spec":null}`, want: true},
		"the spec comes from null":    {before: `{"spec":null}`, after: `{"spec":{}}`, want: true},
		"a field comes":               {before: `{"spec":{}}`, after: `{"spec":{"mlPolicy":{"numNodes":1}}}`, want: true},
		"a field comes empty":         {before: `{"spec":{}}`, after: `{"spec":{"mlPolicy":{}}}`, want: true},
		"a field comes as null":       {before: `{"spec":{}}`, after: `{"spec":{"mlPolicy":null}}`, want: true},
		"a field changes":             {before: `{"spec":{"mlPolicy":{"numNodes":1}}}`, after: `{"spec":{"mlPolicy":{"numNodes":2}}}`, want: true},
		"a field changes its type":    {before: `{"spec":{"mlPolicy":{"numNodes":1}}}`, after: `{"spec":{"mlPolicy":{"numNodes":"1"}}}`, want: true},
		"a field nobody knows":        {before: stamped, after: annotated(revision, `,"toCome":1`), want: true},
		"a list changes its order":    {before: `{"spec":{"a":[1,2]}}`, after: `{"spec":{"a":[2,1]}}`, want: true},
		"the revision goes":           {before: stamped, after: annotated(`{}`, ""), want: true},
		"the revision comes":          {before: annotated(`{}`, ""), after: stamped, want: true},
		"the revision changes":        {before: stamped, after: strings.Replace(stamped, "0123", "3210", 1), want: true},
		"a field changes and a label": {before: `{"spec":{"a":1}}`, after: `{"metadata":{"labels":{"team":"a"}},"spec":{"a":2}}`, want: true},
		"a field changes while being deleted": {
			before: `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"a":1}}`,
			after:  `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"a":2}}`,
			want:   true,
		},

		// The API server refuses these by the schema.
		"the spec is a text":              {before: stamped, after: `{"spec":"a"}`, want: true},
		"the spec is a list":              {before: stamped, after: `{"spec":[]}`, want: true},
		"the spec is a number":            {before: stamped, after: `{"spec":1}`, want: true},
		"the spec is a number that stays": {before: `{"spec":1}`, after: `{"spec":1}`},
	} {
		for _, of := range ofRuntimes {
			for who, conditions := range matchers {
				t.Run(name+", "+of.kind.Kind+", "+who, func(t *testing.T) {
					// Who makes it says nothing: only deletions are told apart.
					for _, user := range append(collectors, "someone") {
						checkMatch(t, conditions, of, request{before: tc.before, after: tc.after, user: user}, tc.want)
					}
				})
			}
		}
	}
}

// TestRuntimeConditionsOnDefaults covers each annotation that is a default of a runtime's
// TrainJobs, alone: an update that changes it is judged, and has no revision to write.
func TestRuntimeConditionsOnDefaults(t *testing.T) {
	matchers := runtimeMatchers(t)
	for _, key := range []string{v1alpha1.AnnotationDefaultActiveDeadlineSeconds, v1alpha1.AnnotationDefaultTTLSecondsAfterFinished} {
		with := func(value string) string {
			return `{"metadata":{"annotations":{"note":"a","` + key + `":` + value + `}},"spec":{}}`
		}
		without := `{"metadata":{"annotations":{"note":"a"}},"spec":{}}`
		for name, tc := range map[string]struct {
			before, after string
			want          bool
		}{
			"is added to none":               {before: `{"spec":{}}`, after: with(`"1"`), want: true},
			"is added beside another":        {before: without, after: with(`"1"`), want: true},
			"is added empty":                 {before: without, after: with(`""`), want: true},
			"is added as null":               {before: without, after: with(`null`), want: true},
			"changes":                        {before: with(`"1"`), after: with(`"2"`), want: true},
			"changes in writing only":        {before: with(`"1"`), after: with(`"01"`), want: true},
			"changes while being deleted":    {before: deleting(with(`"1"`)), after: deleting(with(`"2"`)), want: true},
			"is removed":                     {before: with(`"1"`), after: without, want: true},
			"is removed with all the others": {before: with(`"1"`), after: `{"spec":{}}`, want: true},
			"stays":                          {before: with(`"1"`), after: with(`"1"`)},
			"stays, another goes":            {before: with(`"1"`), after: `{"metadata":{"annotations":{"` + key + `":"1"}},"spec":{}}`},
			"stays, a label comes":           {before: with(`"1"`), after: strings.Replace(with(`"1"`), `{"annotations"`, `{"labels":{"team":"a"},"annotations"`, 1)},
			"stays, and it is very long": {
				before: with(`"` + strings.Repeat("x", 250<<10) + `"`), after: with(`"` + strings.Repeat("x", 250<<10) + `"`),
			},
			"stays without a spec":  {before: strings.Replace(with(`"1"`), `,"spec":{}`, ``, 1), after: strings.Replace(with(`"1"`), `,"spec":{}`, ``, 1)},
			"comes without a spec":  {before: `{}`, after: strings.Replace(with(`"1"`), `,"spec":{}`, ``, 1), want: true},
			"comes as a label only": {before: without, after: strings.Replace(with(`"1"`), "annotations", "labels", 1)},
		} {
			for _, of := range ofRuntimes {
				t.Run(key+" "+name+", "+of.kind.Kind, func(t *testing.T) {
					checkMatch(t, matchers["validating"], of, request{before: tc.before, after: tc.after}, tc.want)
					checkMatch(t, matchers["mutating"], of, request{before: tc.before, after: tc.after}, false)
				})
			}
		}
	}
}

// TestRuntimeConditionsOnMetadata turns each shape of an object without defaults into each other.
func TestRuntimeConditionsOnMetadata(t *testing.T) {
	for who, conditions := range runtimeMatchers(t) {
		for from, before := range bare {
			for to, after := range bare {
				t.Run(who+", "+from+" to "+to, func(t *testing.T) {
					for _, of := range ofRuntimes {
						checkMatch(t, conditions, of, request{before: before, after: after}, false)
					}
				})
			}
		}
	}
}

// collectors delete what nobody needs any more, which must wait for no webhook: the end of a
// namespace, garbage collection, and both where they run as one user.
var collectors = []string{
	"system:serviceaccount:kube-system:namespace-controller",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:kube-controller-manager",
}

// TestRuntimeConditionsOnDeletions deletes runtimes of every shape as everybody.
func TestRuntimeConditionsOnDeletions(t *testing.T) {
	conditions := matcher(t, admission.RuntimeValidatePath)
	users := map[string]bool{
		"": true, "someone": true, "system:admin": true, "kubernetes-admin": true, trainerUser: true, reconcilerUser: true,
		"system:serviceaccount:kube-system:namespace-controller2": true, "system:serviceaccount:team:namespace-controller": true,
		"system:serviceaccount:kube-system:horizontal-pod-autoscaler": true, "namespace-controller": true,
		"system:serviceaccount:team:generic-garbage-collector": true, "system:kube-scheduler": true,
	}
	for _, user := range collectors {
		users[user] = false
	}
	for name, before := range map[string]string{
		"a runtime":           runtimeOf(replicatedJob("a", quiet)),
		"no spec":             `{}`,
		"a null spec":         `{"spec":null}`,
		"a spec that is none": `{"spec":[]}`,
		"being deleted":       `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]},"spec":{}}`,
	} {
		for _, of := range ofRuntimes {
			for user, want := range users {
				t.Run(name+", "+of.kind.Kind+", by "+user, func(t *testing.T) {
					checkMatch(t, conditions, of, request{before: before, user: user}, want)
				})
			}
		}
	}
}

// TestRuntimeConditionsAreAffordable writes the largest runtimes that an API server would
// store. An evaluation that costs too much is an error, by which the revision would get lost,
// and a clock let through.
func TestRuntimeConditionsAreAffordable(t *testing.T) {
	matchers := runtimeMatchers(t)
	var many []string
	for i := range 100000 {
		many = append(many, fmt.Sprintf(`{"a":%d}`, i))
	}
	for name, more := range map[string]string{
		"a long text": `,"a":"` + strings.Repeat("x", 1<<20) + `"`,
		"a long list": `,"a":[` + strings.Join(many, ",") + `]`,
	} {
		before, after := annotated(`{}`, more+`,"z":1`), annotated(`{}`, more+`,"z":2`)
		for who, conditions := range matchers {
			t.Run(name+", "+who, func(t *testing.T) {
				checkMatch(t, conditions, ofRuntimes[0], request{before: before, after: before}, false)
				checkMatch(t, conditions, ofRuntimes[0], request{before: before, after: after}, true)
				checkMatch(t, conditions, ofRuntimes[0], request{after: after}, true)
			})
		}
		t.Run(name+", deleted", func(t *testing.T) {
			checkMatch(t, matchers["validating"], ofRuntimes[0], request{before: before, user: "someone"}, true)
		})
	}
}
