package chart_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

var trainJobs = resource{kind: trainer.GroupVersion.WithKind(trainer.TrainJobKind), name: "trainjobs"}

// trainJobMatchers returns the conditions of both webhooks for TrainJobs, which must be
// called for the same requests.
func trainJobMatchers(t *testing.T) map[string]matchconditions.Matcher {
	t.Helper()
	return map[string]matchconditions.Matcher{
		"mutating":   matcher(t, admission.TrainJobMutatePath),
		"validating": matcher(t, admission.TrainJobValidatePath),
	}
}

func TestTrainJobConditions(t *testing.T) {
	matchers := trainJobMatchers(t)
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

		"a deadline is added":             {before: `{"spec":{}}`, after: `{"spec":{"activeDeadlineSeconds":1}}`, want: true},
		"a deadline is added to no spec":  {before: `{}`, after: `{"spec":{"activeDeadlineSeconds":1}}`, want: true},
		"a deadline of zero is added":     {before: `{"spec":{}}`, after: `{"spec":{"activeDeadlineSeconds":0}}`, want: true},
		"a deadline changes":              {before: `{"spec":{"activeDeadlineSeconds":1}}`, after: `{"spec":{"activeDeadlineSeconds":2}}`, want: true},
		"a deadline is removed":           {before: `{"spec":{"activeDeadlineSeconds":1}}`, after: `{"spec":{}}`, want: true},
		"a deadline goes with the spec":   {before: `{"spec":{"activeDeadlineSeconds":1}}`, after: `{}`, want: true},
		"a deadline becomes a text":       {before: `{"spec":{"activeDeadlineSeconds":1}}`, after: `{"spec":{"activeDeadlineSeconds":"1"}}`, want: true},
		"a deadline stays":                {before: `{"spec":{"activeDeadlineSeconds":1}}`, after: `{"spec":{"activeDeadlineSeconds":1}}`},
		"a deadline stays, a label comes": {before: `{"spec":{"activeDeadlineSeconds":1}}`, after: `{"metadata":{"labels":{"team":"a"}},"spec":{"activeDeadlineSeconds":1}}`},
		"a deadline changes while being deleted": {
			before: `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"activeDeadlineSeconds":1}}`,
			after:  `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"activeDeadlineSeconds":2}}`,
			want:   true,
		},
		"a finalizer goes while being deleted": {
			before: `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]},"spec":{"activeDeadlineSeconds":1}}`,
			after:  `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"activeDeadlineSeconds":1}}`,
		},

		"a label is added": {before: `{}`, after: `{"metadata":{"labels":{"team":"a"}}}`},
		"a finalizer goes": {before: `{"metadata":{"finalizers":["a/b"]}}`, after: `{"metadata":{"finalizers":[]}}`},
		"another annotation comes": {
			before: `{}`, after: `{"metadata":{"annotations":{"note":"b"}}}`,
		},
		"another annotation changes": {
			before: `{"metadata":{"annotations":{"note":"a"}}}`, after: `{"metadata":{"annotations":{"note":"b"}}}`,
		},
		"the user's other annotation with our prefix changes": {
			before: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"1"}}}`,
			after:  `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"2"}}}`,
		},
		"empty annotations come": {before: `{}`, after: `{"metadata":{"annotations":{}}}`},
		"null annotations come":  {before: `{"metadata":{"annotations":{"note":"a"}}}`, after: `{"metadata":{"annotations":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for who, conditions := range matchers {
				t.Run(who, func(t *testing.T) {
					checkMatch(t, conditions, trainJobs, request{before: tc.before, after: tc.after}, tc.want)
				})
			}
		})
	}
}

// TestTrainJobConditionsOnAnnotations covers each annotation that the webhooks protect, and
// the one that sets the deadline.
func TestTrainJobConditionsOnAnnotations(t *testing.T) {
	matchers := trainJobMatchers(t)
	for _, key := range append(v1alpha1.ProtectedAnnotations(), v1alpha1.AnnotationActiveDeadlineSeconds) {
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
				for who, conditions := range matchers {
					t.Run(who, func(t *testing.T) {
						checkMatch(t, conditions, trainJobs, request{before: tc.before, after: tc.after}, tc.want)
					})
				}
			})
		}
	}
}
