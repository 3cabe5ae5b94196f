package admission

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatchop "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

const (
	revisionPath = "/spec/template/metadata/annotations/lifecycle.trainer.kubeflow.org~1runtime-revision"
	sourcePath   = "/spec/template/metadata/annotations/lifecycle.trainer.kubeflow.org~1runtime-source"
)

// revisionOf is the revision of a runtime; spec is what its spec has.
func revisionOf(t testing.TB, document string) string {
	t.Helper()
	return snapshot.Revision(specOf(t, document))
}

func specOf(t testing.TB, document string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := kjson.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	spec, _ := object["spec"].(map[string]any)
	return spec
}

func TestRuntimeMutator(t *testing.T) {
	op := jsonpatchop.NewOperation
	of := func(template string) string {
		return `{"metadata":{"name":"torch"},"spec":{"mlPolicy":{"numNodes":9007199254740993},"template":` + template + `}}`
	}
	right := revisionOf(t, of(`{"spec":{"a":1}}`))
	whole := []jsonpatchop.Operation{op("add", "/spec/template/metadata", map[string]any{"annotations": map[string]string{v1alpha1.AnnotationRuntimeRevision: right}})}
	some := []jsonpatchop.Operation{op("add", "/spec/template/metadata/annotations", map[string]string{v1alpha1.AnnotationRuntimeRevision: right})}
	one := []jsonpatchop.Operation{op("add", revisionPath, right)}
	withX := revisionOf(t, of(`{"metadata":{"annotations":{"x":"y"}},"spec":{"a":1}}`))
	for name, tc := range map[string]struct {
		runtime string
		want    []jsonpatchop.Operation
	}{
		"without metadata":                  {of(`{"spec":{"a":1}}`), whole},
		"with metadata null":                {of(`{"metadata":null,"spec":{"a":1}}`), whole},
		"with empty metadata":               {of(`{"metadata":{},"spec":{"a":1}}`), some},
		"with annotations null":             {of(`{"metadata":{"annotations":null},"spec":{"a":1}}`), some},
		"with empty annotations":            {of(`{"metadata":{"annotations":{}},"spec":{"a":1}}`), one},
		"with other annotations":            {of(`{"metadata":{"annotations":{"x":"y"}},"spec":{"a":1}}`), []jsonpatchop.Operation{op("add", revisionPath, withX)}},
		"with the right stamp":              {of(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"` + right + `"}},"spec":{"a":1}}`), nil},
		"with a wrong stamp":                {of(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"0123456789abcdef"}},"spec":{"a":1}}`), one},
		"with an empty stamp":               {of(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":""}},"spec":{"a":1}}`), one},
		"with a stamp of null":              {of(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":null}},"spec":{"a":1}}`), one},
		"with a stamp of a number":          {of(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":5}},"spec":{"a":1}}`), one},
		"with a source, as of a snapshot":   {of(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-source":"ClusterTrainingRuntime/torch"}},"spec":{"a":1}}`), append(slices.Clone(one), op("remove", sourcePath, nil))},
		"with a source and the right stamp": {of(`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-source":"x","lifecycle.trainer.kubeflow.org/runtime-revision":"` + right + `"}},"spec":{"a":1}}`), append(slices.Clone(one), op("remove", sourcePath, nil))},
		"with metadata of text":             {of(`{"metadata":"x","spec":{"a":1}}`), nil},
		"with annotations of a list":        {of(`{"metadata":{"annotations":[]},"spec":{"a":1}}`), nil},
		"without a template":                {`{"metadata":{"name":"torch"},"spec":{"mlPolicy":{}}}`, nil},
		"with a template null":              {of(`null`), nil},
		"with a template of text":           {of(`"x"`), nil},
		"without a spec":                    {`{"metadata":{"name":"torch"}}`, nil},
		"with a spec of null":               {`{"metadata":{"name":"torch"},"spec":null}`, nil},
		"null":                              {`null`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, before := range []string{"", `{"metadata":{"name":"torch"}}`} {
				got := (&RuntimeMutator{}).Handle(t.Context(), request(before, tc.runtime))
				if !got.Allowed || len(got.Warnings) != 0 {
					t.Fatalf("answer %+v", got)
				}
				if diff := cmp.Diff(tc.want, got.Patches); diff != "" {
					t.Errorf("patch (-want +got):\n%s", diff)
				}
				if len(tc.want) == 0 {
					continue
				}
				patched := apply(t, tc.runtime, got.Patches)
				if got, want := snapshot.Stamp(specOf(t, patched)), revisionOf(t, tc.runtime); got != want || revisionOf(t, patched) != want {
					t.Errorf("stamp %s, want %s", got, want)
				}
			}
		})
	}
}

// The revision that the webhook writes is the one that is sealed later.
func TestRuntimeMutatorAgreesWithTheSeal(t *testing.T) {
	encoded, err := json.Marshal(torch().Container("future", 1e21).Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	patched := apply(t, string(encoded), (&RuntimeMutator{}).Handle(t.Context(), request("", string(encoded))).Patches)
	var runtime map[string]any
	if err := kjson.Unmarshal([]byte(patched), &runtime); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Take(runtime)
	if err != nil {
		t.Fatal(err)
	}
	if got := snapshot.Stamp(specOf(t, patched)); got != s.Revision {
		t.Errorf("stamp %s, sealed as %s", got, s.Revision)
	}
	if !s.Holds(patched) {
		t.Error("what Trainer copies does not hold what is sealed")
	}
}

func TestRuntimeMutatorRefusesWhatItCannotRead(t *testing.T) {
	for name, runtime := range map[string]string{"no JSON": `{`, "nothing": ``, "a list": `[]`, "a number that is none": `{"spec":{"a":1e999}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (&RuntimeMutator{}).Handle(t.Context(), request("", runtime)); got.Allowed || got.Result.Code != http.StatusBadRequest {
				t.Errorf("answer %+v, want 400", got.Result)
			}
		})
	}
}

// Whatever comes in: the patch applies, touches nothing but revision and source, gives the right revision,
// and a second invocation changes nothing more.
func FuzzRuntimeMutator(f *testing.F) {
	for _, template := range []string{
		`null`, `{}`, `{"metadata":null}`, `{"metadata":{}}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{}},"spec":{}}`,
		`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"0123456789abcdef","~/":"~1"}}}`,
		`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":5},"creationTimestamp":null},"spec":{"replicatedJobs":[{"name":"node","replicas":1}]}}`,
		`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-source":"ClusterTrainingRuntime/torch"}},"resources":{"limits":{"cpu":1}}}`,
	} {
		f.Add(`{"metadata":{"name":"a"},"spec":{"mlPolicy":{"numNodes":9007199254740993,"future":1e300},"template":` + template + `}}`)
	}
	f.Fuzz(func(t *testing.T, document string) {
		// The API server sends what its schema lets through.
		var object map[string]any
		if json.Unmarshal([]byte(document), &object) != nil {
			t.Skip()
		}
		value := any(object)
		for _, key := range []string{"spec", "template", "metadata", "annotations"} {
			if value = value.(map[string]any)[key]; value == nil {
				break
			}
			if _, object := value.(map[string]any); !object {
				t.Skip()
			}
		}
		req := request("", document)
		req.Operation = admissionv1.Create
		first := (&RuntimeMutator{}).Handle(t.Context(), req)
		if !first.Allowed {
			t.Skip()
		}
		once := apply(t, document, first.Patches)
		if diff := cmp.Diff(withoutRevision(t, document), withoutRevision(t, once)); diff != "" {
			t.Errorf("touched more than its own (-want +got):\n%s", diff)
		}
		if second := (&RuntimeMutator{}).Handle(t.Context(), request("", once)); len(second.Patches) != 0 {
			t.Errorf("a second invocation patches again: %v", second.Patches)
		}
		if _, stamped := snapshot.Stamped(specOf(t, once)); len(first.Patches) > 0 && !stamped {
			t.Errorf("not stamped: %s", once)
		}
		if len(first.Patches) > 0 && snapshot.Stamp(specOf(t, once)) != revisionOf(t, document) {
			t.Errorf("stamp %s, want %s", snapshot.Stamp(specOf(t, once)), revisionOf(t, document))
		}
	})
}

// withoutRevision decodes the runtime without revision and source, and without maps on the way to it
// that hold nothing else.
func withoutRevision(t *testing.T, document string) any {
	t.Helper()
	var object map[string]any
	if err := kjson.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	spec, _ := object["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, v1alpha1.AnnotationRuntimeRevision)
	delete(annotations, v1alpha1.AnnotationRuntimeSource)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	if len(metadata) == 0 {
		delete(template, "metadata")
	}
	return object
}
