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
		"an annotation with our prefix that means nothing on a TrainJob changes": {
			before: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished":"1"}}}`,
			after:  `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished":"2"}}}`,
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

const ourPrefix = v1alpha1.Group + "/"

// patched is a TrainJob with these patches of its runtime.
func patched(patches ...string) string {
	return `{"spec":{"runtimePatches":[` + strings.Join(patches, ",") + `]}}`
}

// patch is one that puts these annotations on the JobSet.
func patch(manager, annotations string) string {
	return fmt.Sprintf(`{"manager":%q,"trainingRuntimeSpec":{"template":{"metadata":{"annotations":%s}}}}`, manager, annotations)
}

// TestTrainJobConditionsOnPatches covers the patches of a runtime, by which a user could write
// our annotations on the JobSet.
func TestTrainJobConditionsOnPatches(t *testing.T) {
	matchers := trainJobMatchers(t)
	ours, others := patch("a", `{"`+ourPrefix+`runtime-revision":"1"}`), patch("b", `{"note":"1"}`)
	onPods := `{"manager":"a","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node","template":
		{"metadata":{"annotations":{"` + ourPrefix + `a":"1"}}}}]}}}}`
	for name, tc := range map[string]struct {
		// before is empty on CREATE.
		before, after string
		want          bool
	}{
		"ours in a new TrainJob": {after: patched(ours), want: true},

		"ours comes as the first":               {before: `{}`, after: patched(ours), want: true},
		"ours comes where there is no spec":     {before: `{"spec":null}`, after: patched(ours), want: true},
		"ours comes where the list is null":     {before: `{"spec":{"runtimePatches":null}}`, after: patched(ours), want: true},
		"ours comes before another":             {before: patched(others), after: patched(ours, others), want: true},
		"ours comes after another":              {before: patched(others), after: patched(others, ours), want: true},
		"ours comes beside a broken one":        {before: `{}`, after: patched(`1`, ours), want: true},
		"ours comes in another's patch":         {before: patched(others), after: patched(patch("b", `{"note":"1","`+ourPrefix+`a":"1"}`)), want: true},
		"ours changes":                          {before: patched(ours), after: patched(patch("a", `{"`+ourPrefix+`runtime-revision":"2"}`)), want: true},
		"ours gets another name":                {before: patched(ours), after: patched(patch("a", `{"`+ourPrefix+`resumed-at":"1"}`)), want: true},
		"ours goes to another manager":          {before: patched(ours), after: patched(patch("c", `{"`+ourPrefix+`runtime-revision":"1"}`)), want: true},
		"ours is no text":                       {before: `{}`, after: patched(patch("a", `{"`+ourPrefix+`a":null}`)), want: true},
		"ours has no name after the prefix":     {before: `{}`, after: patched(patch("a", `{"`+ourPrefix+`":"1"}`)), want: true},
		"ours stays, another comes":             {before: patched(ours), after: patched(ours, others), want: true},
		"ours stays":                            {before: patched(ours, others), after: patched(ours, others)},
		"ours stays, a label comes":             {before: patched(ours), after: strings.Replace(patched(ours), `{`, `{"metadata":{"labels":{"team":"a"}},`, 1)},
		"ours goes":                             {before: patched(ours, others), after: patched(others)},
		"ours goes with the list":               {before: patched(ours), after: `{"spec":{}}`},
		"ours goes with the spec":               {before: patched(ours), after: `{}`},
		"another comes":                         {before: `{}`, after: patched(others)},
		"another changes":                       {before: patched(others), after: patched(patch("b", `{"note":"2"}`))},
		"one without annotations comes":         {before: `{}`, after: patched(patch("a", `{}`))},
		"one that only begins as ours":          {before: `{}`, after: patched(patch("a", `{"lifecycle.trainer.kubeflow.org.example/a":"1"}`))},
		"one that only ends as ours":            {before: `{}`, after: patched(patch("a", `{"x.`+ourPrefix+`a":"1"}`))},
		"ours as a value":                       {before: `{}`, after: patched(patch("a", `{"note":"`+ourPrefix+`a"}`))},
		"ours as a label":                       {before: `{}`, after: patched(strings.Replace(ours, "annotations", "labels", 1))},
		"ours on pods, which is not on JobSets": {before: `{}`, after: patched(onPods)},
		"a patch of nothing":                    {before: `{}`, after: patched(`{"manager":"a"}`)},
		"an empty list comes":                   {before: `{}`, after: patched()},
		"an empty list goes":                    {before: patched(), after: `{"spec":{}}`},

		// The API server refuses these by the schema.
		"the list is null":        {before: patched(others), after: `{"spec":{"runtimePatches":null}}`},
		"the list is a text":      {before: `{}`, after: `{"spec":{"runtimePatches":"` + ourPrefix + `a"}}`},
		"the list is a number":    {before: `{}`, after: `{"spec":{"runtimePatches":1}}`},
		"the list is an object":   {before: `{}`, after: `{"spec":{"runtimePatches":` + ours + `}}`},
		"patches are no objects":  {before: `{}`, after: patched(`null`, `"a"`, `1`, `true`, `[]`, `[`+ours+`]`)},
		"the runtime is null":     {before: `{}`, after: patched(`{"trainingRuntimeSpec":null}`)},
		"the template is null":    {before: `{}`, after: patched(`{"trainingRuntimeSpec":{"template":null}}`)},
		"the template is a text":  {before: `{}`, after: patched(`{"trainingRuntimeSpec":{"template":"a"}}`)},
		"the metadata is null":    {before: `{}`, after: patched(`{"trainingRuntimeSpec":{"template":{"metadata":null}}}`)},
		"the metadata is a text":  {before: `{}`, after: patched(`{"trainingRuntimeSpec":{"template":{"metadata":"a"}}}`)},
		"annotations are null":    {before: `{}`, after: patched(patch("a", `null`))},
		"annotations are a text":  {before: `{}`, after: patched(patch("a", `"`+ourPrefix+`a"`))},
		"annotations are numbers": {before: `{}`, after: patched(patch("a", `1`), patch("b", `[1]`))},
		"annotations are a list":  {before: `{}`, after: patched(patch("a", `["`+ourPrefix+`a"]`))},
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

// TestTrainJobConditionsOnUnreadablePatches writes what cannot be read at all. It is refused at
// once, or passes the webhook, as its failurePolicy says, and is refused by the schema anyway.
func TestTrainJobConditionsOnUnreadablePatches(t *testing.T) {
	for who, conditions := range trainJobMatchers(t) {
		for name, after := range map[string]string{
			"the runtime is a list":  patched(`{"trainingRuntimeSpec":[]}`),
			"the template is a list": patched(`{"trainingRuntimeSpec":{"template":[]}}`),
			"the metadata is a list": patched(`{"trainingRuntimeSpec":{"template":{"metadata":[]}}}`),
		} {
			t.Run(who+", "+name, func(t *testing.T) {
				if got := match(t, conditions, trainJobs, request{before: `{}`, after: after}); got.Matches || got.Error == nil {
					t.Errorf("webhook called: %t, error %v; want no call and an error", got.Matches, got.Error)
				}
			})
		}
	}
}

// TestTrainJobConditionsAreAffordable writes the largest patches that an API server would
// store. An evaluation that costs too much is an error, by which the write would be refused.
func TestTrainJobConditionsAreAffordable(t *testing.T) {
	matchers := trainJobMatchers(t)
	// Trainer allows 16 patches; an object has to stay below 1.5 MiB.
	many, long := make([]string, 16), make([]string, 16)
	for i := range many {
		var keys strings.Builder
		for j := range 8000 {
			fmt.Fprintf(&keys, `"%x":"",`, i<<16+j)
		}
		many[i] = patch(fmt.Sprint(i), `{`+keys.String()+`"note":""}`)
		long[i] = patch(fmt.Sprint(i), `{"`+strings.Repeat("x", 80<<10)+`":""}`)
	}
	for name, patches := range map[string][]string{"many annotations": many, "long annotations": long} {
		before, after := patched(patches...), patched(append(patches[:15:15], patch("15", `{"note":"1"}`))...)
		for who, conditions := range matchers {
			t.Run(name+", "+who, func(t *testing.T) {
				checkMatch(t, conditions, trainJobs, request{before: before, after: before}, false)
				checkMatch(t, conditions, trainJobs, request{before: before, after: after}, false)
				last := patched(append(patches[:15:15], patch("15", `{"`+ourPrefix+`a":"1"}`))...)
				checkMatch(t, conditions, trainJobs, request{before: before, after: last}, true)
			})
		}
	}
}

// ownAnnotations are those that the webhooks protect, and those by which a user sets the deadline
// of a TrainJob and how long it stays.
func ownAnnotations() []string {
	return append(v1alpha1.ProtectedAnnotations(), v1alpha1.AnnotationActiveDeadlineSeconds, v1alpha1.AnnotationTTLSecondsAfterFinished)
}

// TestTrainJobConditionsOnAnnotations covers each annotation alone.
func TestTrainJobConditionsOnAnnotations(t *testing.T) {
	matchers := trainJobMatchers(t)
	for _, key := range ownAnnotations() {
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
			"changes to none":                {before: with("1"), after: with("none"), want: true},
			"changes in writing only":        {before: with("1"), after: with("01"), want: true},
			"changes while being deleted":    {before: deleting(with("1")), after: deleting(with("2")), want: true},
			"stays while being deleted":      {before: deleting(with("1")), after: deleting(with("1"))},
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

// deleting is the object, which has metadata, while it is being deleted.
func deleting(object string) string {
	return strings.Replace(object, `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`, 1)
}

// bare are objects that have none of our annotations, in every shape in which an API server takes
// them.
var bare = map[string]string{
	"no metadata":       `{}`,
	"null metadata":     `{"metadata":null}`,
	"empty metadata":    `{"metadata":{}}`,
	"null annotations":  `{"metadata":{"annotations":null}}`,
	"empty annotations": `{"metadata":{"annotations":{}}}`,
	"another":           `{"metadata":{"annotations":{"note":"a"}}}`,
	"another is empty":  `{"metadata":{"annotations":{"":""}}}`,
	"another is null":   `{"metadata":{"annotations":{"note":null}}}`,
	"only our prefix":   `{"metadata":{"annotations":{"` + ourPrefix + `":"a"}}}`,
	"ours as a label":   `{"metadata":{"labels":{"` + v1alpha1.AnnotationTTLSecondsAfterFinished + `":"1"}}}`,
}

// TestTrainJobConditionsOnMetadata turns each shape into each other, and into one with an
// annotation of ours that has no value.
func TestTrainJobConditionsOnMetadata(t *testing.T) {
	for who, conditions := range trainJobMatchers(t) {
		for from, before := range bare {
			for to, after := range bare {
				t.Run(who+", "+from+" to "+to, func(t *testing.T) {
					checkMatch(t, conditions, trainJobs, request{before: before, after: after}, false)
				})
			}
			for _, key := range ownAnnotations() {
				t.Run(who+", "+from+" to "+key+" without a value", func(t *testing.T) {
					// The API server takes null for the empty text.
					null, empty := `{"metadata":{"annotations":{"`+key+`":null}}}`, `{"metadata":{"annotations":{"`+key+`":""}}}`
					checkMatch(t, conditions, trainJobs, request{before: before, after: null}, true)
					checkMatch(t, conditions, trainJobs, request{before: null, after: before}, true)
					checkMatch(t, conditions, trainJobs, request{before: null, after: empty}, false)
				})
			}
		}
	}
}
