package trainer_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

func TestRuntimeRef(t *testing.T) {
	group := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: kind}
	}
	for name, tc := range map[string]struct {
		ref   string
		want  schema.GroupVersionKind
		known bool
	}{
		"by name":             {`{"name":"torch"}`, group("ClusterTrainingRuntime"), true},
		"with nulls":          {`{"name":"torch","kind":null,"apiGroup":null}`, group("ClusterTrainingRuntime"), true},
		"of the cluster":      {`{"name":"torch","kind":"ClusterTrainingRuntime","apiGroup":"trainer.kubeflow.org"}`, group("ClusterTrainingRuntime"), true},
		"of the namespace":    {`{"name":"torch","kind":"TrainingRuntime"}`, group("TrainingRuntime"), true},
		"of another kind":     {`{"name":"torch","kind":"Deployment"}`, group("Deployment"), false},
		"of no kind":          {`{"name":"torch","kind":""}`, group(""), false},
		"of another group":    {`{"name":"torch","apiGroup":"example.com"}`, schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "ClusterTrainingRuntime"}, false},
		"of the core's group": {`{"name":"torch","apiGroup":""}`, schema.GroupVersionKind{Version: "v1alpha1", Kind: "ClusterTrainingRuntime"}, false},
		"of nothing":          {`{}`, group("ClusterTrainingRuntime"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ref trainer.RuntimeRef
			if err := json.Unmarshal([]byte(tc.ref), &ref); err != nil {
				t.Fatal(err)
			}
			if got := ref.GroupVersionKind(); got != tc.want || ref.Known() != tc.known {
				t.Errorf("%v, known %v; want %v, %v", got, ref.Known(), tc.want, tc.known)
			}
		})
	}
}

func TestSnapshotConfigMap(t *testing.T) {
	if got := trainer.SnapshotConfigMap("job"); got != "job-runtime-snapshot" || trainer.SnapshotKey != "runtime" {
		t.Errorf("ConfigMap %s, key %s", got, trainer.SnapshotKey)
	}
}

func TestIsGroup(t *testing.T) {
	for apiVersion, want := range map[string]bool{
		"trainer.kubeflow.org/v1alpha1": true,
		"trainer.kubeflow.org/v2":       true,
		"trainer.kubeflow.org":          false,
		"example.com/v1alpha1":          false,
		"v1":                            false,
		"":                              false,
		"trainer.kubeflow.org/v1/x":     false,
	} {
		if got := trainer.IsGroup(apiVersion); got != want {
			t.Errorf("%q is of Trainer's group: %v, want %v", apiVersion, got, want)
		}
	}
}
