package admission

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatchop "gomodules.xyz/jsonpatch/v2"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// elsewhere is the TrainJob as Kueue's webhook leaves it where MultiKueue is to run it.
func elsewhere(document string) string {
	return strings.Replace(document, `"spec":{`, `"spec":{"managedBy":"kueue.x-k8s.io/multikueue",`, 1)
}

// bare decodes the document without a map of annotations in which nothing is.
func bare(t *testing.T, document string) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	metadata := object["metadata"].(map[string]any)
	if annotations, _ := metadata["annotations"].(map[string]any); len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return object
}

// What is not to be run by Trainer here is only stripped of what nobody may write; no policy and no
// runtime is asked for it, unless it says that it was given its deadline.
func TestDeadlineElsewhere(t *testing.T) {
	op := jsonpatchop.NewOperation
	b := newPolicyBench(torch(), builder.LifecyclePolicy("a").Max(time.Second).Required())
	b.unlisted, b.unread = errors.New("not to be asked"), errors.New("not to be asked")
	own, forged := map[string]string{deadlineKey: "99"}, map[string]string{givenBy: "LifecyclePolicy/a", deadlineKey: "99"}
	stripped := []jsonpatchop.Operation{op("remove", "/metadata/annotations/lifecycle.trainer.kubeflow.org~1active-deadline-source", nil)}
	for name, tc := range map[string]struct {
		before, after string
		want          []jsonpatchop.Operation
	}{
		"created":                {after: elsewhere(document(own, ""))},
		"created by the field":   {after: elsewhere(document(nil, `"activeDeadlineSeconds":99`))},
		"created without":        {after: elsewhere(document(nil, ""))},
		"updated, forged":        {before: elsewhere(document(own, "")), after: elsewhere(document(forged, "")), want: stripped},
		"updated, stored forged": {before: elsewhere(document(forged, "")), after: elsewhere(document(forged, "")), want: stripped},
		"handed over":            {before: document(forged, suspended), after: elsewhere(document(forged, suspended)), want: stripped},
	} {
		if got := b.asks(tc.before, tc.after); !got.Allowed || !cmp.Equal(tc.want, got.Patches) {
			t.Errorf("%s: answer %v %v, want %v", name, got.Result, got.Patches, tc.want)
		}
	}
	if len(b.reads) != 0 {
		t.Errorf("reads %q", b.reads)
	}
}

// Kueue's webhook may say that MultiKueue runs a TrainJob after the first call for its creation:
// the second leaves nothing of what the first wrote, and all that the TrainJob came with.
func TestDeadlineTakenBack(t *testing.T) {
	def, most := builder.LifecyclePolicy("def").Default(50*time.Second), builder.LifecyclePolicy("max").Max(100*time.Second)
	rise := torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "70")
	own := map[string]string{deadlineKey: "50", "team": "x"}
	for name, tc := range map[string]struct {
		runtime  *builder.RuntimeBuilder
		policies policies
		created  string
		// given tells whether the first call gives a deadline.
		given bool
	}{
		"nobody says anything":            {torch(), nil, document(nil, ""), false},
		"a policy's default":              {torch(), policies{def, most}, document(nil, ""), true},
		"a policy's default, suspended":   {torch(), policies{def, most}, document(map[string]string{"team": "x"}, suspended), true},
		"no annotations at all":           {torch(), policies{def}, `{"metadata":{"name":"job"},"spec":{"runtimeRef":{"name":"torch"}}}`, true},
		"no runtime":                      {nil, policies{def}, document(nil, suspended), true},
		"the runtime's default":           {rise, policies{def, most}, document(nil, ""), true},
		"the max":                         {torch(), policies{most}, document(nil, ""), true},
		"the max, beside a run policy":    {torch(), policies{def, most}, document(nil, `"runPolicy":{"activeDeadlineSeconds":5}`), true},
		"the max, of an odd run policy":   {torch(), policies{def, most}, document(nil, `"runPolicy":{"activeDeadlineSeconds":{}}`), true},
		"the max, of a copy":              {torch(), policies{def, most}, copied(document(nil, "")), true},
		"a run policy without a max":      {torch(), policies{def}, document(nil, `"runPolicy":{"activeDeadlineSeconds":5}`), false},
		"its own, equal to a default":     {torch(), policies{def, most}, document(nil, `"activeDeadlineSeconds":50`), false},
		"its own, equal to the max":       {torch(), policies{most}, document(nil, `"activeDeadlineSeconds":100`), false},
		"its own by annotation, equal":    {torch(), policies{def, most}, document(own, ""), false},
		"its own over the max":            {torch(), policies{most}, document(nil, `"activeDeadlineSeconds":999`), false},
		"its own by both":                 {torch(), policies{def}, document(own, `"activeDeadlineSeconds":50`), false},
		"opted out":                       {torch(), policies{def}, document(map[string]string{deadlineKey: "none"}, ""), false},
		"its own garbage":                 {torch(), policies{def}, document(map[string]string{deadlineKey: "8h"}, ""), false},
		"its own, where one is required":  {torch(), policies{def, builder.LifecyclePolicy("req").Required()}, document(nil, `"activeDeadlineSeconds":50`), false},
		"what is required is not refused": {torch(), policies{builder.LifecyclePolicy("req").Required()}, document(nil, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, b := range []*policyBench{newPolicyBench(tc.runtime, tc.policies...), newPolicyBench(tc.runtime, tc.policies...).old()} {
				first := b.asks("", tc.created)
				if !first.Allowed {
					t.Fatalf("refused: %v", first.Result)
				}
				once := apply(t, tc.created, first.Patches)
				if got := givenIn(t, once); (got.By != "") != tc.given {
					t.Fatalf("given %+v, want one: %v", got, tc.given)
				}
				second := b.asks("", elsewhere(once))
				if !second.Allowed {
					t.Fatalf("refused: %v", second.Result)
				}
				twice := apply(t, elsewhere(once), second.Patches)
				if diff := cmp.Diff(bare(t, elsewhere(tc.created)), bare(t, twice)); diff != "" {
					t.Errorf("left behind (-want +got):\n%s", diff)
				}
				if third := b.asks("", twice); !third.Allowed || len(third.Patches) != 0 {
					t.Errorf("asked a third time it answers %v, with %v", third.Allowed, third.Patches)
				}
				if judged := b.judges("", twice); !judged.Allowed {
					t.Errorf("refused by the validating webhook: %v", judged.Result)
				}
			}
		})
	}
}

// Only what it would get itself is taken for given: another value is somebody's, and only stripped
// of who is said to have given it.
func TestDeadlineOfAnotherStays(t *testing.T) {
	def := builder.LifecyclePolicy("def").Default(50 * time.Second)
	said := map[string]string{givenBy: byDef}
	for name, tc := range map[string]struct {
		policies policies
		after    string
		want     given
	}{
		"another value":                         {policies{def}, document(said, `"activeDeadlineSeconds":51`), given{Spec: 51}},
		"another value by annotation":           {policies{def}, document(with(said, deadlineKey, "49"), ""), given{Annotation: "49"}},
		"the same, written otherwise":           {policies{def}, document(with(said, deadlineKey, "050"), ""), given{Annotation: "050"}},
		"of another giver":                      {policies{def}, document(map[string]string{givenBy: "LifecyclePolicy/x"}, `"activeDeadlineSeconds":50`), given{Spec: 50}},
		"of a giver that is gone":               {nil, document(said, `"activeDeadlineSeconds":50`), given{Spec: 50}},
		"garbage":                               {policies{def}, document(with(said, deadlineKey, "8h"), ""), given{Annotation: "8h"}},
		"an opt-out":                            {policies{def}, document(with(said, deadlineKey, "none"), ""), given{Annotation: "none"}},
		"none":                                  {policies{def}, document(said, ""), given{}},
		"the field, beside an equal annotation": {policies{def}, document(with(said, deadlineKey, "50"), `"activeDeadlineSeconds":51`), given{Spec: 51, Annotation: "50"}},
		"the annotation beside the given field": {policies{def}, document(with(said, deadlineKey, "7"), `"activeDeadlineSeconds":50`), given{Annotation: "7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := elsewhere(tc.after)
			got := newPolicyBench(torch(), tc.policies...).asks("", after)
			if !got.Allowed {
				t.Fatalf("refused: %v", got.Result)
			}
			if diff := cmp.Diff(tc.want, givenIn(t, apply(t, after, got.Patches))); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

// Where it cannot be told what it was given, nothing is answered.
func TestDeadlineTakenBackFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	after := elsewhere(document(map[string]string{givenBy: byDef}, `"activeDeadlineSeconds":50`))
	for want, fault := range map[string]func(*policyBench){
		"list LifecyclePolicies: etcd is away": func(b *policyBench) { b.unlisted = broken },
		"read runtime: etcd is away":           func(b *policyBench) { b.unread = broken },
	} {
		b := newPolicyBench(torch(), builder.LifecyclePolicy("def").Default(50*time.Second))
		fault(b)
		if got := b.asks("", after); got.Allowed || got.Result.Code != http.StatusInternalServerError || got.Result.Message != want {
			t.Errorf("answer %+v, want 500 %q", got.Result, want)
		}
	}
}
