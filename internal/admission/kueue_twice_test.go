package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// What is created and admitted twice, a moment later, is not changed the second time: nobody
// needs to be called again for it.
func TestTrainJobMutatorIsCalledTwice(t *testing.T) {
	mutator := sealer(stored(torch().Obj()))
	clock := clocktesting.NewFakePassiveClock(now)
	mutator.Clock = clock
	const created = `{"metadata":{"name":"a"},"spec":{"runtimeRef":{"name":"torch"}}}`
	first := mutator.Handle(t.Context(), request("", created))
	if len(first.Patches) == 0 {
		t.Fatal("the first call changes nothing")
	}
	once := apply(t, created, first.Patches)
	clock.SetTime(now.Add(1500 * time.Millisecond))
	if second := mutator.Handle(t.Context(), request("", once)); !second.Allowed || len(second.Patches) > 0 {
		t.Errorf("the second call answers %v, with %v", second.Allowed, second.Patches)
	}
	// Later it is another creation.
	clock.SetTime(now.Add(time.Minute))
	if third := mutator.Handle(t.Context(), request("", once)); len(third.Patches) == 0 {
		t.Error("a stamp of a minute ago stays")
	}
}

func TestTrainJobMutatorTakesKueuesDuplicates(t *testing.T) {
	const (
		kueues = `{"manager":"kueue.x-k8s.io/manager","trainingRuntimeSpec":{"template":{"spec":{}}}}`
		dated  = `{"manager":"kueue.x-k8s.io/manager","time":"2026-03-01T12:00:00Z","trainingRuntimeSpec":{"template":{"spec":{}}}}`
		other  = `{"manager":"kueue.x-k8s.io/manager","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[]}}}}`
		users  = `{"manager":"example.com/user"}`
	)
	for name, tc := range map[string]struct {
		entries []string
		want    []string
	}{
		"none":                     {},
		"once":                     {entries: []string{users, kueues}},
		"twice":                    {entries: []string{kueues, kueues}, want: []string{"/spec/runtimePatches/1"}},
		"twice, dated by Trainer":  {entries: []string{dated, kueues}, want: []string{"/spec/runtimePatches/1"}},
		"three times among others": {entries: []string{kueues, users, kueues, kueues}, want: []string{"/spec/runtimePatches/2", "/spec/runtimePatches/2"}},
		"another":                  {entries: []string{kueues, other}},
		"a user's":                 {entries: []string{users, users}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := `{"metadata":{"name":"a"},"spec":{"suspend":true,"runtimePatches":[` + strings.Join(tc.entries, ",") + `]}}`
			var got []string
			for _, op := range mutate("", document).Patches {
				if op.Operation != "remove" {
					t.Errorf("operation %v", op)
				}
				got = append(got, op.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			// An update is as it was sent.
			for _, op := range mutate(document, document).Patches {
				t.Errorf("an update is patched: %v", op)
			}
		})
	}
}
