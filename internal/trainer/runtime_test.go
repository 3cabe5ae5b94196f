package trainer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
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

func TestRuntimeRefKey(t *testing.T) {
	for ref, want := range map[string]string{
		`{"name":"torch"}`: "/torch",
		`{"name":"torch","kind":"ClusterTrainingRuntime"}`: "/torch",
		`{"name":"torch","kind":"TrainingRuntime"}`:        "ns/torch",
		`{"name":"torch","kind":"Deployment"}`:             "/torch",
		`{}`:                                               "/",
	} {
		var r trainer.RuntimeRef
		if err := json.Unmarshal([]byte(ref), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.Key("ns").String(); got != want {
			t.Errorf("%s is %s, want %s", ref, got, want)
		}
	}
}

func TestSettingsOf(t *testing.T) {
	settings := func(change func(*trainer.RuntimeSettings)) trainer.RuntimeSettings {
		s := trainer.RuntimeSettings{Name: "ClusterTrainingRuntime/torch"}
		change(&s)
		return s
	}
	torch := func() *builder.RuntimeBuilder { return builder.ClusterTrainingRuntime("torch") }
	ownDeadline := settings(func(s *trainer.RuntimeSettings) { s.OwnDeadline = true })
	ownTTL := settings(func(s *trainer.RuntimeSettings) { s.OwnTTL = true })
	for name, tc := range map[string]struct {
		runtime *builder.RuntimeBuilder
		want    trainer.RuntimeSettings
	}{
		"plain":             {torch(), settings(func(*trainer.RuntimeSettings) {})},
		"of a namespace":    {builder.TrainingRuntime("ns", "mine"), trainer.RuntimeSettings{Name: "TrainingRuntime/mine"}},
		"labels":            {torch().Label("a", "b"), settings(func(s *trainer.RuntimeSettings) { s.Labels = map[string]string{"a": "b"} })},
		"annotations":       {torch().Annotation("a", "b"), settings(func(s *trainer.RuntimeSettings) { s.Annotations = map[string]string{"a": "b"} })},
		"of its template":   {torch().Revision("r").Set("b", "spec", "template", "metadata", "labels", "a"), settings(func(*trainer.RuntimeSettings) {})},
		"a deadline":        {torch().Set(int64(5), "spec", "activeDeadlineSeconds"), ownDeadline},
		"of another type":   {torch().Set("5", "spec", "activeDeadlineSeconds"), ownDeadline},
		"in a run policy":   {torch().Set(int64(0), "spec", "runPolicy", "activeDeadlineSeconds"), ownDeadline},
		"a TTL":             {torch().Set(int64(0), "spec", "ttlSecondsAfterFinished"), ownTTL},
		"TTL in run policy": {torch().Set(map[string]any{}, "spec", "runPolicy", "ttlSecondsAfterFinished"), ownTTL},
		"all null":          {torch().Set(nil, "spec", "activeDeadlineSeconds").Set(nil, "spec", "runPolicy", "ttlSecondsAfterFinished"), settings(func(*trainer.RuntimeSettings) {})},
		"no run policy":     {torch().Set("x", "spec", "runPolicy"), settings(func(*trainer.RuntimeSettings) {})},
		"no spec":           {torch().Without("spec"), settings(func(*trainer.RuntimeSettings) {})},
		"on the JobSet":     {torch().Set(int64(5), "spec", "template", "spec", "ttlSecondsAfterFinished"), settings(func(*trainer.RuntimeSettings) {})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, trainer.SettingsOf(tc.runtime.Obj().Object)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
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
