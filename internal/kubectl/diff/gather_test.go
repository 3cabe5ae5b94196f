package diff

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// What may not be read in a namespace is asked for once, and said once.
func TestReadKept(t *testing.T) {
	runtimeIs := builder.ClusterTrainingRuntime("torch")
	text, err := take(t, runtimeIs).YAML()
	if err != nil {
		t.Fatal(err)
	}
	job := func(namespace, name string) *trainer.TrainJob {
		return builder.TrainJob(namespace, name).Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Obj()
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var asked []string
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(builder.ConfigMap(job("open", "a"), text).Obj()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, below client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			asked = append(asked, key.String())
			switch key.Namespace {
			case "closed":
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, nil)
			case "broken":
				return errors.New("no answer")
			}
			return below.Get(ctx, key, object, options...)
		},
	}).Build()
	g := gathered{closed: map[string]bool{}}
	notes := &kubectl.Notes{}
	type read struct {
		Revision string
		Unread   bool
	}
	var got []read
	for _, of := range []*trainer.TrainJob{job("closed", "a"), job("closed", "b"), job("broken", "a"), job("broken", "b"), job("open", "a"), job("open", "b")} {
		revision, unread := g.readKept(t.Context(), &kubectl.Reader{Reader: store}, of, notes)
		got = append(got, read{revision, unread})
	}
	want := []read{{Unread: true}, {Unread: true}, {Unread: true}, {Unread: true}, {Revision: take(t, runtimeIs).Revision}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantAsked := []string{
		"closed/a-runtime-snapshot", "broken/a-runtime-snapshot", "broken/b-runtime-snapshot", "open/a-runtime-snapshot", "open/b-runtime-snapshot",
	}
	if diff := cmp.Diff(wantAsked, asked); diff != "" {
		t.Error(diff)
	}
	wantNotes := []string{
		"no right to read the ConfigMaps in which Trainer keeps runtimes",
		"cannot read the ConfigMaps in which Trainer keeps runtimes: no answer",
	}
	if diff := cmp.Diff(wantNotes, notes.All()); diff != "" {
		t.Error(diff)
	}
}
