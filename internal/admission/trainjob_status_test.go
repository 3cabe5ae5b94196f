package admission

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

const trainerUser = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"

func TestTrainJobStatusMutator(t *testing.T) {
	const (
		failed   = `{"type":"Failed","status":"True","reason":"Crashed","message":"m","lastTransitionTime":"2026-03-01T11:00:00Z","observedGeneration":3,"severity":"high"}`
		exceeded = `{"type":"Failed","status":"True","reason":"DeadlineExceeded","message":"m","lastTransitionTime":"2026-03-01T12:00:00Z"}`
		other    = `{"type":"Other","status":"True","reason":"R","message":"","lastTransitionTime":"2026-03-01T11:00:00Z","severity":"low"}`
		// Active since an hour with two hours to go; now is 12:00.
		running = `"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"2026-03-01T11:00:00Z"}},"spec":{"activeDeadlineSeconds":10800}`
		// What a forger sends along: long due.
		due = `"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"2020-01-01T00:00:00Z"}},"spec":{"activeDeadlineSeconds":1}`
	)
	for name, tc := range map[string]struct {
		user          string
		before, after string
		// The patch as JSON.
		want string
	}{
		"Trainer clears Failed": {
			user:   trainerUser,
			before: `{` + running + `,"status":{"conditions":[` + failed + `],"jobsStatus":[]}}`,
			after:  `{` + running + `,"status":{"jobsStatus":[{"name":"node"}]}}`,
			want:   `[{"op":"add","path":"/status/conditions","value":[` + failed + `]}]`,
		},
		"what else stands there stays whole": {
			user:   trainerUser,
			before: `{` + running + `,"status":{"conditions":[` + failed + `]}}`,
			after:  `{` + running + `,"status":{"conditions":[` + other + `]}}`,
			want:   `[{"op":"add","path":"/status/conditions","value":[` + other + `,` + failed + `]}]`,
		},
		"a user clears the status": {
			user:   "jane",
			before: `{` + running + `,"status":{"conditions":[` + failed + `]}}`,
			after:  `{` + running + `}`,
			want:   `[{"op":"add","path":"/status","value":{"conditions":[` + failed + `]}}]`,
		},
		"Trainer fails it two hours early": {
			user:   trainerUser,
			before: `{` + running + `,"status":{}}`,
			after:  `{` + running + `,"status":{"conditions":[` + exceeded + `]}}`,
			want:   `[{"op":"add","path":"/status/conditions","value":[]}]`,
		},
		"Trainer's account with forged spec and stamp beside it": {
			user:   trainerUser,
			before: `{` + running + `,"status":{}}`,
			after:  `{` + due + `,"status":{"conditions":[` + exceeded + `]}}`,
			want:   `[{"op":"add","path":"/status/conditions","value":[]}]`,
		},
		"the reconciler fails it": {
			user:   "system:serviceaccount:signalbox-system:signalbox-reconciler",
			before: `{` + running + `,"status":{}}`,
			after:  `{` + running + `,"status":{"conditions":[` + exceeded + `]}}`,
		},
		"nothing to correct": {
			user:   trainerUser,
			before: `{` + running + `,"status":{"conditions":[` + failed + `]}}`,
			after:  `{` + running + `,"status":{"conditions":[` + failed + `]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(tc.before, tc.after)
			req.UserInfo.Username = tc.user
			mutator := &TrainJobStatusMutator{Clock: clocktesting.NewFakePassiveClock(now), TrainerUser: trainerUser}
			got := mutator.Handle(context.Background(), req)
			if !got.Allowed {
				t.Fatalf("denied: %v", got.Result)
			}
			if tc.want == "" {
				tc.want = "null"
			}
			patch, err := json.Marshal(got.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, tc.want), decode(t, string(patch))); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func decode(t *testing.T, document string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Without an account to look for, Trainer's deadlines pass, and ends are kept all the same.
func TestTrainJobStatusMutatorWithoutTrainersAccount(t *testing.T) {
	mutator := &TrainJobStatusMutator{Clock: clocktesting.NewFakePassiveClock(now)}
	early := request(`{"metadata":{"creationTimestamp":"2026-03-01T11:59:59Z"},"spec":{"activeDeadlineSeconds":3600}}`,
		`{"status":{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded","lastTransitionTime":null}]}}`)
	if got := mutator.Handle(context.Background(), early); !got.Allowed || len(got.Patches) != 0 {
		t.Errorf("an early deadline: %+v", got)
	}
	dropped := request(`{"status":{"conditions":[{"type":"Failed","status":"True","reason":"Crashed","lastTransitionTime":null}]}}`, `{"status":{}}`)
	if got := mutator.Handle(context.Background(), dropped); !got.Allowed || len(got.Patches) != 1 {
		t.Errorf("a dropped end: %+v", got)
	}
	if got := mutator.Handle(context.Background(), request(`{}`, `{"status":{"conditions":1}}`)); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("a broken status: %+v", got)
	}
}
