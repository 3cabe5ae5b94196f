package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// yamlOf writes a runtime of the cluster as a document.
func yamlOf(t *testing.T, runtime *builder.RuntimeBuilder) string {
	t.Helper()
	object := runtime.Obj()
	source := v1alpha1.RuntimeSource{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName()}
	spec, _ := object.Object["spec"].(map[string]any)
	text, err := document(source, object.GetNamespace(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDocument(t *testing.T) {
	got := yamlOf(t, builder.TrainingRuntime("team-a", "torch").Revision("0123456789abcdef").Annotation("a", "b").
		Container("args", []any{"first line\nsecond\tline\n", "\x1b[31m"}).
		Container("resources", map[string]any{"limits": map[string]any{"memory": "1024Mi"}}))
	want := `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: torch
  namespace: team-a
spec:
  mlPolicy:
    numNodes: 1
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                containers:
                - args:
                  - "first line\nsecond\tline\n"
                  - "\e[31m"
                  image: image:1
                  name: node
                  resources:
                    limits:
                      memory: 1Gi
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What has no revision of its own is no difference; all else is.
func TestDocumentsAreEqualAsRevisionsAre(t *testing.T) {
	runtime := func() *builder.RuntimeBuilder { return builder.ClusterTrainingRuntime("torch") }
	for name, tc := range map[string]struct{ a, b *builder.RuntimeBuilder }{
		"the same":                {runtime(), runtime()},
		"an image":                {runtime(), runtime().Image("image:2")},
		"the revision it carries": {runtime(), runtime().Revision("0123456789abcdef")},
		"labels and annotations":  {runtime(), runtime().Label("a", "b").Annotation("c", "d")},
		"empty lists":             {runtime(), runtime().Container("args", []any{})},
		"an empty choice":         {runtime(), runtime().Set(map[string]any{}, "spec", "mlPolicy", "torch")},
		"a zero that counts":      {runtime(), runtime().Set(int64(0), "spec", "mlPolicy", "numNodes")},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(b *builder.RuntimeBuilder) map[string]any { return b.Obj().Object["spec"].(map[string]any) }
			equal := snapshot.Revision(spec(tc.a)) == snapshot.Revision(spec(tc.b))
			text := unified(side{label: "a", text: yamlOf(t, tc.a)}, side{label: "b", text: yamlOf(t, tc.b)})
			if (text == "") != equal {
				t.Errorf("revisions are equal: %v, the differences:\n%s", equal, text)
			}
		})
	}
}

func TestUnified(t *testing.T) {
	before := yamlOf(t, builder.ClusterTrainingRuntime("torch"))
	after := yamlOf(t, builder.ClusterTrainingRuntime("torch").Image("image:2"))
	got := unified(side{"sealed", before}, side{"live", after})
	want := `--- sealed
+++ live
@@ -14,5 +14,5 @@
             template:
               spec:
                 containers:
-                - image: image:1
+                - image: image:2
                   name: node
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
