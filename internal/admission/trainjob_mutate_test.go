package admission

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/google/go-cmp/cmp"
	jsonpatchop "gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const (
	stampPath    = "/metadata/annotations/lifecycle.trainer.kubeflow.org~1resumed-at"
	snapshotPath = "/metadata/annotations/lifecycle.trainer.kubeflow.org~1runtime-snapshot"
	fresh        = "2026-03-01T12:00:00.000000000Z"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// mutator is the webhook where there is one runtime, torch.
var mutator = sync.OnceValue(func() *TrainJobMutator { return sealer(stored(torch().Obj())) })

// mutate asks the webhook; before is "" on CREATE.
func mutate(before, after string) admission.Response {
	return mutator().Handle(context.Background(), request(before, after))
}

// ruled and ruledOld are the webhook where a policy has a maximum and another one a longer default,
// with and without the field for it.
var (
	ruled = sync.OnceValue(func() *policyBench {
		return newPolicyBench(torch(), builder.LifecyclePolicy("max").Max(100*time.Second), builder.LifecyclePolicy("def").Default(time.Hour))
	})
	ruledOld = sync.OnceValue(func() *policyBench {
		return newPolicyBench(torch(), builder.LifecyclePolicy("max").Max(100*time.Second)).old()
	})
)

func TestTrainJobMutator(t *testing.T) {
	op := jsonpatchop.NewOperation
	for name, tc := range map[string]struct {
		before, after string
		want          []jsonpatchop.Operation
		wantWarnings  []string
	}{
		"created active without annotations": {
			after: `{"metadata":{"name":"a"},"spec":{}}`,
			want:  []jsonpatchop.Operation{op("add", "/metadata/annotations", map[string]string{v1alpha1.AnnotationResumedAt: fresh})},
		},
		"created active with annotations of the user": {
			after: `{"metadata":{"annotations":{"team":"x"}},"spec":{"suspend":false}}`,
			want:  []jsonpatchop.Operation{op("add", stampPath, fresh)},
		},
		"created active with empty annotations": {
			after: `{"metadata":{"annotations":{}},"spec":{}}`,
			want:  []jsonpatchop.Operation{op("add", stampPath, fresh)},
		},
		"created suspended needs nothing": {after: `{"metadata":{},"spec":{"suspend":true}}`},
		"created active with suspend null": {
			after: `{"metadata":{"annotations":null},"spec":{"suspend":null}}`,
			want:  []jsonpatchop.Operation{op("add", "/metadata/annotations", map[string]string{v1alpha1.AnnotationResumedAt: fresh})},
		},
		"created from an exported manifest": {
			after: `{"metadata":{"annotations":{
				"lifecycle.trainer.kubeflow.org/resumed-at":"2025-01-01T00:00:00Z",
				"lifecycle.trainer.kubeflow.org/runtime-snapshot":"old"}},"spec":{}}`,
			want: []jsonpatchop.Operation{op("replace", stampPath, fresh), op("remove", snapshotPath, nil)},
		},
		"created suspended from an exported manifest": {
			after: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":""}},"spec":{"suspend":true}}`,
			want:  []jsonpatchop.Operation{op("remove", stampPath, nil)},
		},
		"resumed in one write with runtimePatches": {
			before: `{"metadata":{},"spec":{"suspend":true}}`,
			after:  `{"metadata":{},"spec":{"suspend":false,"runtimePatches":[{"manager":"kueue"}]}}`,
			want:   []jsonpatchop.Operation{op("add", "/metadata/annotations", map[string]string{v1alpha1.AnnotationResumedAt: fresh})},
		},
		"resumed by suspend null": {
			before: `{"metadata":{"annotations":{"team":"x"}},"spec":{"suspend":true}}`,
			after:  `{"metadata":{"annotations":{"team":"x"}},"spec":{"suspend":null}}`,
			want:   []jsonpatchop.Operation{op("add", stampPath, fresh)},
		},
		"suspended": {
			before: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"old"}},"spec":{}}`,
			after:  `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"old"}},"spec":{"suspend":true}}`,
			want:   []jsonpatchop.Operation{op("remove", stampPath, nil)},
		},
		"all annotations removed by the user": {
			before: `{"metadata":{"annotations":{"team":"x","lifecycle.trainer.kubeflow.org/resumed-at":"old","lifecycle.trainer.kubeflow.org/runtime-snapshot":"seal"}},"spec":{}}`,
			after:  `{"metadata":{},"spec":{}}`,
			want: []jsonpatchop.Operation{op("add", "/metadata/annotations", map[string]string{
				v1alpha1.AnnotationResumedAt: "old", v1alpha1.AnnotationRuntimeSnapshot: "seal",
			})},
		},
		"protected annotations forged": {
			before: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"old"}},"spec":{}}`,
			after: `{"metadata":{"annotations":{
				"lifecycle.trainer.kubeflow.org/resumed-at":"2030-01-01T00:00:00Z",
				"lifecycle.trainer.kubeflow.org/runtime-snapshot":"forged"}},"spec":{}}`,
			want: []jsonpatchop.Operation{op("replace", stampPath, "old"), op("remove", snapshotPath, nil)},
		},
		"an update of something else needs nothing": {
			before: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"old"}},"spec":{}}`,
			after:  `{"metadata":{"labels":{"a":"b"},"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"old"}},"spec":{}}`,
		},
		"being deleted, resumed: still stamped": {
			before: `{"metadata":{"deletionTimestamp":"2026-03-01T11:00:00Z","annotations":{}},"spec":{"suspend":true}}`,
			after:  `{"metadata":{"deletionTimestamp":"2026-03-01T11:00:00Z","annotations":{}},"spec":{"suspend":false}}`,
			want:   []jsonpatchop.Operation{op("add", stampPath, fresh)},
		},
		"a deadline removed by an old client": {
			before: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"60"}},"spec":{"suspend":true,"activeDeadlineSeconds":60}}`,
			after:  `{"metadata":{},"spec":{"suspend":true}}`,
			want: []jsonpatchop.Operation{
				op("add", "/spec/activeDeadlineSeconds", int64(60)),
				op("add", "/metadata/annotations", map[string]string{v1alpha1.AnnotationActiveDeadlineSeconds: "60"}),
			},
			wantWarnings: []string{
				"spec.activeDeadlineSeconds: field is immutable: the change was undone",
				"metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]: field is immutable: the change was undone",
			},
		},
		"a deadline changed: left for validation": {
			before: `{"metadata":{},"spec":{"suspend":true,"activeDeadlineSeconds":60}}`,
			after:  `{"metadata":{},"spec":{"suspend":true,"activeDeadlineSeconds":61}}`,
		},
		"a deadline added while being deleted": {
			before:       `{"metadata":{"deletionTimestamp":"2026-03-01T11:00:00Z"},"spec":{"suspend":true}}`,
			after:        `{"metadata":{},"spec":{"suspend":true,"activeDeadlineSeconds":61}}`,
			want:         []jsonpatchop.Operation{op("remove", "/spec/activeDeadlineSeconds", nil)},
			wantWarnings: []string{"spec.activeDeadlineSeconds: field is immutable: the change was undone"},
		},
		"created with a deadline by annotation": {
			after: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"60"}},"spec":{"suspend":true}}`,
		},
		"created with a broken status, which is dropped anyway": {
			after: `{"metadata":{"annotations":{}},"spec":{},"status":{"conditions":[{"lastTransitionTime":""}]}}`,
			want:  []jsonpatchop.Operation{op("add", stampPath, fresh)},
		},
		"managed by MultiKueue: a deadline removed": {
			before: `{"metadata":{},"spec":{"activeDeadlineSeconds":60,"managedBy":"kueue.x-k8s.io/multikueue"}}`,
			after:  `{"metadata":{},"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}}`,
		},
		"managed by MultiKueue: created, only stripped": {
			after: `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"old"}},"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}}`,
			want:  []jsonpatchop.Operation{op("remove", stampPath, nil)},
		},
		"managed by MultiKueue: resumed, left alone": {
			before: `{"metadata":{},"spec":{"suspend":true,"managedBy":"kueue.x-k8s.io/multikueue"}}`,
			after:  `{"metadata":{},"spec":{"suspend":false,"managedBy":"kueue.x-k8s.io/multikueue"}}`,
		},
		"managed by MultiKueue: updated, only stripped": {
			before: `{"metadata":{},"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}}`,
			after:  `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-snapshot":"x"}},"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}}`,
			want:   []jsonpatchop.Operation{op("remove", snapshotPath, nil)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mutate(tc.before, tc.after)
			if !got.Allowed {
				t.Fatalf("denied: %v", got.Result)
			}
			if diff := cmp.Diff(tc.want, got.Patches); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTrainJobMutatorRefusesWhatItCannotRead(t *testing.T) {
	for name, tc := range map[string]struct{ before, after string }{
		"no JSON":          {after: `{`},
		"stored no JSON":   {before: `{`, after: `{}`},
		"suspend a string": {after: `{"spec":{"suspend":"yes"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mutate(tc.before, tc.after); got.Allowed || got.Result.Code != http.StatusBadRequest {
				t.Errorf("answer = %+v, want 400", got.Result)
			}
		})
	}
}

// Whatever comes in: the patch applies, touches nothing but protected annotations, and a
// second invocation changes nothing more.
func FuzzTrainJobMutator(f *testing.F) {
	f.Add(``, `{"metadata":{"name":"a"},"spec":{"suspend":true}}`)
	f.Add(``, `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"x","~/":"~1"}},"spec":{"future":{"field":1e30}}}`)
	f.Add(`{"metadata":{},"spec":{"suspend":true}}`, `{"metadata":{"annotations":null},"spec":{"suspend":null}}`)
	f.Add(`{"metadata":{"deletionTimestamp":"2026-03-01T12:00:00Z"},"spec":{"activeDeadlineSeconds":5}}`, `{"metadata":{},"spec":null}`)
	f.Add(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":""}},"spec":{"activeDeadlineSeconds":5}}`, `{"metadata":{},"spec":{"suspend":true}}`)
	f.Add(``, `{"metadata":{},"spec":{"runtimeRef":{"name":"torch"}}}`)
	f.Add(``, `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-source":"x"}},"spec":{"runtimeRef":{"name":"torch","kind":"TrainingRuntime"},"suspend":true}}`)
	f.Add(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-source":"ClusterTrainingRuntime/torch"}},"spec":{"suspend":true}}`, `{"metadata":{},"spec":{"runtimeRef":{"name":"torch"}}}`)
	f.Add(`{"metadata":{},"spec":{"runtimeRef":{"name":"torch"}}}`, `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-source":"x"}},"spec":{"runtimeRef":{"name":"torch"}}}`)
	f.Add(``, `{"metadata":{},"spec":{"suspend":true,"runtimePatches":[{"manager":"kueue.x-k8s.io/manager"},{"manager":"x"},{"manager":"kueue.x-k8s.io/manager","time":1}]}}`)
	f.Add(``, `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-source":"LifecyclePolicy/max"}},"spec":{"runtimeRef":{"name":"torch"},"activeDeadlineSeconds":100}}`)
	f.Add(``, `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-source":"x","lifecycle.trainer.kubeflow.org/active-deadline-seconds":"100"}},"spec":{"suspend":true}}`)
	f.Add(``, `{"metadata":{"labels":{"kueue.x-k8s.io/multikueue-origin":""}},"spec":{"runPolicy":5,"ttlSecondsAfterFinished":{}}}`)
	f.Add(``, `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-source":"LifecyclePolicy/max"}},"spec":{"runtimeRef":{"name":"torch"},"activeDeadlineSeconds":100,"managedBy":"kueue.x-k8s.io/multikueue"}}`)
	f.Add(``, `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-source":"LifecyclePolicy/max","lifecycle.trainer.kubeflow.org/active-deadline-seconds":"100"}},"spec":{"managedBy":"x"}}`)
	f.Add(``, `{"metadata":{},"spec":{"runtimeRef":{"name":"torch"},"runPolicy":{"activeDeadlineSeconds":5}}}`)
	f.Add(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"r"}}}`, `{"metadata":{"annotations":{}},"spec":{"managedBy":"x"}}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		// The API server sends objects with metadata; nothing else gets here.
		for _, document := range []string{before, after} {
			var object map[string]any
			if document == "" {
				continue
			}
			if err := json.Unmarshal([]byte(document), &object); err != nil || object["metadata"] == nil {
				t.Skip()
			}
		}
		if after == "" {
			t.Skip()
		}
		for name, ask := range map[string]func(before, after string) admission.Response{
			"without policies": mutate, "with policies": ruled().asks, "with policies, without the field": ruledOld().asks,
		} {
			first := ask(before, after)
			if !first.Allowed {
				continue
			}
			once := apply(t, after, first.Patches)
			if diff := cmp.Diff(withoutOwn(t, after), withoutOwn(t, once)); diff != "" {
				t.Errorf("%s, touched more than its own (-want +got):\n%s", name, diff)
			}
			if second := ask(before, once); len(second.Patches) != 0 {
				t.Errorf("%s, a second invocation patches again: %v", name, second.Patches)
			}
		}
	})
}

func apply(t *testing.T, document string, operations []jsonpatchop.Operation) string {
	t.Helper()
	encoded, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	if len(operations) == 0 {
		return document
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply([]byte(document))
	if err != nil {
		t.Fatalf("patch %s does not apply to %s: %v", encoded, document, err)
	}
	return string(patched)
}

// withoutOwn decodes the document without what the webhook may touch: the protected
// annotations, the deadline, the map of annotations where nothing else is in it, and Kueue's
// entries of runtimePatches.
func withoutOwn(t *testing.T, document string) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range append(v1alpha1.ProtectedAnnotations(), v1alpha1.AnnotationActiveDeadlineSeconds) {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	spec, _ := object["spec"].(map[string]any)
	delete(spec, "activeDeadlineSeconds")
	if patches, ok := spec["runtimePatches"].([]any); ok {
		spec["runtimePatches"] = slices.DeleteFunc(patches, func(entry any) bool {
			patch, _ := entry.(map[string]any)
			return patch["manager"] == kueue.PatchManager
		})
	}
	return object
}
