package admission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// With snapshots turned off no TrainJob is sealed; what is sealed or waits stays as it is, and
// once they are on again, it is as with a TrainJob whose creation was not seen.
func TestUnsealed(t *testing.T) {
	const suspended, resumed = `"suspend":true`, `"suspend":false`
	older := take(t, torch().Image("image:older"))
	seal := older.Pack().Seal(now.Add(-time.Hour))
	waiting := map[string]string{source: torchID}
	for name, tc := range map[string]struct {
		before, after string
		gone          bool
		want          map[string]string
	}{
		"created active":                    {after: document(nil, ""), want: map[string]string{stamp: fresh}},
		"created active, with a seal":       {after: document(seal, ""), want: map[string]string{stamp: fresh}},
		"created active, without a runtime": {after: document(nil, ""), gone: true, want: map[string]string{stamp: fresh}},
		"created suspended":                 {after: document(nil, suspended), want: map[string]string{}},
		"resumed":                           {before: document(waiting, suspended), after: document(waiting, resumed), want: map[string]string{stamp: fresh}},
		"resumed, created meanwhile":        {before: document(nil, suspended), after: document(nil, resumed), want: map[string]string{stamp: fresh}},
		"waiting, labelled":                 {before: document(waiting, suspended), after: document(with(waiting, "team", "x"), suspended), want: with(waiting, "team", "x")},
		"sealed, paused":                    {before: document(seal, ""), after: document(nil, suspended), want: sealed(older, "11:00:00")},
		"sealed, resumed":                   {before: document(seal, suspended), after: document(nil, resumed), want: sealed(older, "11:00:00", stamp, fresh)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			if !tc.gone {
				objects = append(objects, torch().Obj())
			}
			mutator := sealer(stored(objects...))
			mutator.Unsealed = true
			got := mutator.Handle(t.Context(), sealRequest(tc.before, tc.after))
			if !got.Allowed || len(got.Warnings) != 0 {
				t.Fatalf("refused: %+v, warnings %q", got.Result, got.Warnings)
			}
			have := annotations(t, apply(t, tc.after, got.Patches))
			if have == nil {
				have = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// Without policies the defaults of runtimes still count.
func TestUnsealedAndWithoutPolicies(t *testing.T) {
	runtime := torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "60")
	mutator := sealer(stored(runtime.Obj()))
	mutator.Unsealed, mutator.Policies = true, nil
	after := document(nil, "")
	got := mutator.Handle(t.Context(), sealRequest("", after))
	if !got.Allowed {
		t.Fatalf("refused: %+v", got.Result)
	}
	want := given{Spec: 60, By: torchID}
	if diff := cmp.Diff(want, givenIn(t, apply(t, after, got.Patches))); diff != "" {
		t.Errorf("what it was given (-want +got):\n%s", diff)
	}
	validator := &TrainJobValidator{Runtimes: snapshot.NewResolver(stored(runtime.Obj()))}
	if got := validator.Handle(t.Context(), sealRequest("", after)); !got.Allowed {
		t.Errorf("refused: %+v", got.Result)
	}
}
