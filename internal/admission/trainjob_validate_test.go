package admission

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
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

// validator is the webhook where there are no policies.
func validator() *TrainJobValidator {
	return &TrainJobValidator{Policies: &policy.Reader{Cache: stored(), Live: stored()}, Runtimes: snapshot.NewResolver(stored())}
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
		"created with a time to stay": {after: `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"0"}},"spec":{}}`},
		"created, opting out of both": {after: `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"none","lifecycle.trainer.kubeflow.org/active-deadline-seconds":"none"}},"spec":{}}`},
		"created with a time to stay that is none": {
			after:      `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"1h"}},"spec":{"activeDeadlineSeconds":0}}`,
			want:       `TrainJob.trainer.kubeflow.org "a" is invalid: [spec.activeDeadlineSeconds: Invalid value: 0: must be greater than or equal to 1, metadata.annotations[lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished]: Invalid value: "1h": must be a whole number of seconds from 0 to 4294967295, or none]`,
			wantCauses: []string{"spec.activeDeadlineSeconds", "metadata.annotations[lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished]"},
		},
		"the time to stay changed": {
			before: `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"60"}},"spec":{}}`,
			after:  `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"none"}},"spec":{}}`,
		},
		"the time to stay changed to none at all": {
			before:     `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"60"}},"spec":{}}`,
			after:      `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":""}},"spec":{}}`,
			want:       `TrainJob.trainer.kubeflow.org "a" is invalid: metadata.annotations[lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished]: Invalid value: "": must be a whole number of seconds from 0 to 4294967295, or none`,
			wantCauses: []string{"metadata.annotations[lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished]"},
		},
		"the time to stay wrong as it is stored": {
			before: `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"1h"}},"spec":{}}`,
			after:  `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"1h"}},"spec":{"suspend":true}}`,
		},
		"the time to stay made wrong while being deleted": {
			before: `{"metadata":{"name":"a","deletionTimestamp":"2026-03-01T12:00:00Z"},"spec":{}}`,
			after:  `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"1h"}},"spec":{}}`,
		},
		"the time to stay of one managed by MultiKueue": {
			after: `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished":"1h"}},"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}}`,
		},
		"changed from the opt-out": {
			before:     `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"none"}},"spec":{}}`,
			after:      `{"metadata":{"name":"a","annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"60"}},"spec":{}}`,
			want:       `TrainJob.trainer.kubeflow.org "a" is invalid: metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]: Invalid value: "60": field is immutable`,
			wantCauses: []string{"metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]"},
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
			got := validator().Handle(context.Background(), request(tc.before, tc.after))
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
	got := validator().Handle(context.Background(), request("", `{"spec":{"activeDeadlineSeconds":"60"}}`))
	if got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("answer = %+v, want 400", got.Result)
	}
}

// patches is a TrainJob with these annotations in its runtimePatches, each of them JSON.
func patches(annotations ...string) string {
	var all []string
	for i, annotations := range annotations {
		all = append(all, fmt.Sprintf(`{"manager":"m%d","trainingRuntimeSpec":{"template":{"metadata":{"annotations":%s}}}}`, i, annotations))
	}
	return `{"metadata":{"name":"a"},"spec":{"runtimePatches":[` + strings.Join(all, ",") + `]}}`
}

// Trainer copies the annotations of runtimePatches to the JobSet: there they would forge the
// revision. What is stored stays, so that it holds nothing else up.
func TestTrainJobValidatorOfRuntimePatches(t *testing.T) {
	const (
		revision = `"lifecycle.trainer.kubeflow.org/runtime-revision"`
		path     = "spec.runtimePatches[%d].trainingRuntimeSpec.template.metadata.annotations[lifecycle.trainer.kubeflow.org/%s]"
		rest     = ": Forbidden: annotations of lifecycle.trainer.kubeflow.org on a JobSet are Signalbox's own"
	)
	at := func(index int, name string) string { return fmt.Sprintf(path, index, name) }
	forged := patches(`{` + revision + `:"a"}`)
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"created without patches":           {after: `{"metadata":{},"spec":{"suspend":true}}`},
		"created with patches null":         {after: `{"metadata":{},"spec":{"runtimePatches":null}}`},
		"created with patches of all else":  {after: `{"metadata":{},"spec":{"runtimePatches":[{"manager":"a"},{"trainingRuntimeSpec":null},{"trainingRuntimeSpec":{"template":{"spec":{}}}},{"trainingRuntimeSpec":{"template":{"metadata":{"labels":{"a":"b"}}}}}]}}`},
		"created with other annotations":    {after: patches(`{"a":"b","lifecycle.trainer.kubeflow.org.example.com/x":"y","trainer.kubeflow.org/x":"y"}`, `null`)},
		"created with the revision":         {after: forged, want: []string{at(0, "runtime-revision")}},
		"created with an empty revision":    {after: patches(`{` + revision + `:""}`), want: []string{at(0, "runtime-revision")}},
		"created with anything of ours":     {after: patches(`{"a":"b"}`, `{"lifecycle.trainer.kubeflow.org/x":"y","b":"c"}`), want: []string{at(1, "x")}},
		"created with many of ours":         {after: patches(`{"lifecycle.trainer.kubeflow.org/b":"","lifecycle.trainer.kubeflow.org/a":""}`, `{`+revision+`:"a"}`), want: []string{at(0, "a"), at(0, "b"), at(1, "runtime-revision")}},
		"added":                             {before: patches(), after: forged, want: []string{at(0, "runtime-revision")}},
		"added to a patch":                  {before: patches(`{"a":"b"}`), after: patches(`{"a":"b",` + revision + `:"a"}`), want: []string{at(0, "runtime-revision")}},
		"stored, something else changed":    {before: forged, after: strings.Replace(forged, `"spec":{`, `"spec":{"suspend":true,`, 1)},
		"stored, a patch of Kueue's after":  {before: forged, after: patches(`{`+revision+`:"a"}`, `{"a":"b"}`)},
		"stored, a patch of Kueue's before": {before: forged, after: patches(`{"a":"b"}`, `{`+revision+`:"a"}`)},
		"stored, removed":                   {before: forged, after: patches()},
		"stored, changed":                   {before: forged, after: patches(`{` + revision + `:"b"}`), want: []string{at(0, "runtime-revision")}},
		"stored, another one added":         {before: forged, after: patches(`{` + revision + `:"a","lifecycle.trainer.kubeflow.org/x":"y"}`), want: []string{at(0, "x")}},
		"being deleted":                     {before: `{"metadata":{"name":"a","deletionTimestamp":"2026-03-01T12:00:00Z"},"spec":{}}`, after: forged},
		"managed by MultiKueue":             {after: strings.Replace(forged, `"spec":{`, `"spec":{"managedBy":"kueue.x-k8s.io/multikueue",`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := validator().Handle(t.Context(), request(tc.before, tc.after))
			if got.Allowed != (len(tc.want) == 0) {
				t.Fatalf("allowed = %v: %v", got.Allowed, got.Result)
			}
			if got.Allowed {
				return
			}
			var fields, texts []string
			for _, cause := range got.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
			for _, field := range tc.want {
				texts = append(texts, field+rest)
			}
			if diff := cmp.Diff(tc.want, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			want := strings.Join(texts, ", ")
			if len(texts) > 1 {
				want = "[" + want + "]"
			}
			want = `TrainJob.trainer.kubeflow.org "a" is invalid: ` + want
			if got.Result.Code != http.StatusUnprocessableEntity || got.Result.Message != want {
				t.Errorf("answer = %d %q, want 422 %q", got.Result.Code, got.Result.Message, want)
			}
		})
	}
}

// All mistakes come at once, those of the deadline first.
func TestTrainJobValidatorTellsOfAllAtOnce(t *testing.T) {
	document := strings.Replace(patches(`{"lifecycle.trainer.kubeflow.org/x":"y"}`), `"spec":{`, `"spec":{"activeDeadlineSeconds":0,`, 1)
	got := validator().Handle(t.Context(), request("", document))
	want := `TrainJob.trainer.kubeflow.org "a" is invalid: [spec.activeDeadlineSeconds: Invalid value: 0: must be greater than or equal to 1, ` +
		`spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations[lifecycle.trainer.kubeflow.org/x]: Forbidden: annotations of lifecycle.trainer.kubeflow.org on a JobSet are Signalbox's own]`
	if got.Allowed || got.Result.Message != want {
		t.Errorf("answer %+v, want %q", got.Result, want)
	}
}

func TestTrainJobValidatorRefusesPatchesThatItCannotRead(t *testing.T) {
	for name, tc := range map[string]struct{ before, after string }{
		"no list":        {after: `{"spec":{"runtimePatches":{}}}`},
		"a number":       {after: patches(`{"a":1}`)},
		"stored no list": {before: `{"spec":{"runtimePatches":{}}}`, after: `{"spec":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := validator().Handle(t.Context(), request(tc.before, tc.after)); got.Allowed || got.Result.Code != http.StatusBadRequest {
				t.Errorf("answer = %+v, want 400", got.Result)
			}
		})
	}
}
