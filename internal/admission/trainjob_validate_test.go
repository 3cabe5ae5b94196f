package admission

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// request makes an admission request; before is "" on CREATE.
func request(before, after string) admission.Request {
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: []byte(after)},
	}}
	if before != "" {
		request.Operation = admissionv1.Update
		request.OldObject.Raw = []byte(before)
	}
	return request
}

func TestTrainJobValidator(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after string
		want          string
		wantCauses    []string
		wantWarnings  []string
	}{
		"created well": {after: `{"metadata":{"name":"a"},"spec":{"activeDeadlineSeconds":60}}`},
		"created with all wrong": {
			after:      `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"1h"}},"spec":{"activeDeadlineSeconds":9223372037}}`,
			want:       `TrainJob.trainer.kubeflow.org "a" is invalid: [spec.activeDeadlineSeconds: Invalid value: 9223372037: must be less than or equal to 4294967295, metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]: Invalid value: "1h": must be a whole number of seconds from 1 to 4294967295]`,
			wantCauses: []string{"spec.activeDeadlineSeconds", "metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]"},
		},
		"created with a generated name": {
			after:      `{"metadata":{"generateName":"a-"},"spec":{"activeDeadlineSeconds":0}}`,
			want:       `TrainJob.trainer.kubeflow.org "a-" is invalid: spec.activeDeadlineSeconds: Invalid value: 0: must be greater than or equal to 1`,
			wantCauses: []string{"spec.activeDeadlineSeconds"},
		},
		"created with both": {
			after:        `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"60"}},"spec":{"activeDeadlineSeconds":60}}`,
			wantWarnings: []string{"metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds] is ignored: spec.activeDeadlineSeconds is set"},
		},
		"changed": {
			before:     `{"metadata":{"name":"a"},"spec":{"activeDeadlineSeconds":60}}`,
			after:      `{"metadata":{"name":"a"},"spec":{"activeDeadlineSeconds":61}}`,
			want:       `TrainJob.trainer.kubeflow.org "a" is invalid: spec.activeDeadlineSeconds: Invalid value: 61: field is immutable`,
			wantCauses: []string{"spec.activeDeadlineSeconds"},
		},
		"changed while being deleted": {
			before: `{"metadata":{"name":"a","deletionTimestamp":"2026-03-01T12:00:00Z"},"spec":{"activeDeadlineSeconds":60}}`,
			after:  `{"metadata":{"name":"a","deletionTimestamp":"2026-03-01T12:00:00Z"},"spec":{"activeDeadlineSeconds":61}}`,
		},
		"managed by MultiKueue": {
			after: `{"metadata":{"name":"a"},"spec":{"activeDeadlineSeconds":9223372037,"managedBy":"kueue.x-k8s.io/multikueue"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&TrainJobValidator{}).Handle(context.Background(), request(tc.before, tc.after))
			if got.Allowed != (tc.want == "") {
				t.Fatalf("allowed = %v: %v", got.Allowed, got.Result)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tc.want == "" {
				return
			}
			var causes []string
			for _, cause := range got.Result.Details.Causes {
				causes = append(causes, cause.Field)
			}
			if diff := cmp.Diff(tc.wantCauses, causes); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if got.Result.Code != http.StatusUnprocessableEntity || got.Result.Reason != metav1.StatusReasonInvalid || got.Result.Message != tc.want {
				t.Errorf("answer = %d %s %q, want 422 Invalid %q", got.Result.Code, got.Result.Reason, got.Result.Message, tc.want)
			}
		})
	}
}

func TestTrainJobValidatorRefusesWhatItCannotRead(t *testing.T) {
	got := (&TrainJobValidator{}).Handle(context.Background(), request("", `{"spec":{"activeDeadlineSeconds":"60"}}`))
	if got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("answer = %+v, want 400", got.Result)
	}
}
