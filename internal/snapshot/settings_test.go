package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// What a runtime says about the lifecycle of its TrainJobs is packed with it: the labels, and the
// annotations of Signalbox.
func TestPackHasTheSettings(t *testing.T) {
	runtime := builder.TrainingRuntime("ns", "mine").Label("gpu", "yes").
		Annotation("team", "x").
		Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "60").
		Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "0").
		Set(int64(5), "spec", "runPolicy", "activeDeadlineSeconds")
	taken, err := Take(runtime.Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	want := trainer.RuntimeSettings{
		Name:   "TrainingRuntime/mine",
		Labels: map[string]string{"gpu": "yes"},
		Annotations: map[string]string{
			v1alpha1.AnnotationDefaultActiveDeadlineSeconds: "60", v1alpha1.AnnotationDefaultTTLSecondsAfterFinished: "0",
		},
		OwnDeadline: true,
	}
	if diff := cmp.Diff(want, taken.Pack().Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	// They are still known of what is sealed.
	job := builder.TrainJob("ns", "job").Runtime(trainer.TrainingRuntimeKind, "mine").Annotations(taken.Pack().Seal(time.Now())).Obj()
	sealed, err := Of(job)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, sealed.Settings()); diff != "" {
		t.Errorf("settings of what is sealed (-want +got):\n%s", diff)
	}
}

// The settings are those of the runtime as it is now, though its content is the same.
func TestResolverFollowsTheSettings(t *testing.T) {
	one := builder.ClusterTrainingRuntime("torch")
	store := newStore(one.Obj())
	resolver := NewResolver(store)
	for _, value := range []string{"60", "61", ""} {
		stored := one.Obj()
		if err := store.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
			t.Fatal(err)
		}
		edited := builder.ClusterTrainingRuntime("torch").ResourceVersion(stored.GetResourceVersion())
		if value != "" {
			edited.Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, value).Label("of", value)
		}
		if err := store.Update(t.Context(), edited.Obj()); err != nil {
			t.Fatal(err)
		}
		packed, err := resolver.Runtime(t.Context(), "ns", trainer.RuntimeRef{Name: "torch"})
		if err != nil {
			t.Fatal(err)
		}
		got := packed.Settings
		if got.Name != "ClusterTrainingRuntime/torch" || got.Annotations[v1alpha1.AnnotationDefaultActiveDeadlineSeconds] != value || got.Labels["of"] != value {
			t.Errorf("settings %+v, want those of %q", got, value)
		}
	}
}
