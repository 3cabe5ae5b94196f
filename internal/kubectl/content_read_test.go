package kubectl

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// trainJobs is the CRD of TrainJobs of a Trainer that keeps the runtimes of TrainJobs, or does not.
func trainJobs(keeps bool) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = trainer.CRDName
	spec := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	if keeps {
		spec.Properties["runtimePatches"] = apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"terminationGracePeriodSeconds": {}}}
	}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name:   trainer.GroupVersion.Version,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}},
	}}
	return crd
}

// readerOver reads from a store in which these objects are; of the kinds in refused nobody may read any.
func readerOver(refused []string, objects ...client.Object) *Reader {
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(builder.Copies(objects)...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, below client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			gvk, err := below.GroupVersionKindFor(object)
			if err != nil {
				return err
			}
			for _, kind := range refused {
				if kind == gvk.Kind {
					return apierrors.NewForbidden(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name, nil)
				}
			}
			return below.Get(ctx, key, object, options...)
		},
	}).Build()
	return &Reader{Reader: store}
}

func TestContent(t *testing.T) {
	runtime := func() *builder.RuntimeBuilder { return builder.ClusterTrainingRuntime("torch") }
	old, err := snapshot.Take(runtime().Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	oldText, err := old.YAML()
	if err != nil {
		t.Fatal(err)
	}
	edited := runtime().Image("image:2").Obj()
	now, err := snapshot.Take(edited.Object)
	if err != nil {
		t.Fatal(err)
	}
	train := func() *builder.TrainJobBuilder {
		return builder.TrainJob("team-a", "train").Runtime(trainer.ClusterTrainingRuntimeKind, "torch")
	}
	sealed := train().Annotations(old.Pack().Seal(time.Unix(1e9, 0))).Obj()
	broken := train().Annotations(old.Pack().Seal(time.Unix(1e9, 0))).Annotation(v1alpha1.AnnotationRuntimeSnapshot, "no gzip").Obj()
	carries := func(revision string) *trainer.JobSet {
		return builder.JobSet(train().Obj()).Annotation(v1alpha1.AnnotationRuntimeRevision, revision).Obj()
	}
	other := builder.TrainJob("team-a", "train").UID("another").Obj()
	for name, tc := range map[string]struct {
		job     *trainer.TrainJob
		objects []client.Object
		refused []string
		want    Built
		image   string   // of the content; "" for none
		notes   []string // a part of each
	}{
		"sealed": {
			job: sealed, objects: []client.Object{trainJobs(true), edited, carries(old.Revision)},
			want: Built{From: FromSeal, Revision: old.Revision, Next: FromSeal}, image: "image:1",
		},
		"sealed, with the right to read nothing else": {
			job: sealed, objects: []client.Object{trainJobs(true), edited, carries(old.Revision)},
			refused: []string{"CustomResourceDefinition", "JobSet", "ClusterTrainingRuntime", "ConfigMap", "TrainingRuntimeSnapshot"},
			want:    Built{From: FromUnknown, Next: FromUnknown},
			notes:   []string{"CRD of TrainJobs", "JobSet train", "ClusterTrainingRuntime torch"},
		},
		"sealed, without the right to read CRDs, and the JobSet tells": {
			job: sealed, objects: []client.Object{trainJobs(true), edited, carries(old.Revision)},
			refused: []string{"CustomResourceDefinition"},
			want:    Built{From: FromSeal, Revision: old.Revision, Next: FromUnknown}, image: "image:1",
			notes: []string{"CRD of TrainJobs"},
		},
		"sealed, and the JobSet runs on the live runtime": {
			job: sealed, objects: []client.Object{trainJobs(false), edited, carries(now.Revision)},
			want: Built{From: FromLive, Revision: now.Revision, Next: FromLive}, image: "image:2",
		},
		"a seal that cannot be read": {
			job: broken, objects: []client.Object{trainJobs(true), edited, builder.ConfigMap(train().Obj(), oldText).Obj()},
			want: Built{From: FromTrainer, Revision: old.Revision, Next: FromTrainer}, image: "image:1",
		},
		"taken over": {
			job: train().Obj(), objects: []client.Object{trainJobs(true), edited, old.Object(train().Obj())},
			want: Built{From: FromSnapshot, Revision: old.Revision, Next: FromSnapshot}, image: "image:1",
		},
		"what Trainer keeps": {
			job: train().Obj(), objects: []client.Object{trainJobs(true), edited, builder.ConfigMap(train().Obj(), oldText).Obj()},
			want: Built{From: FromTrainer, Revision: old.Revision, Next: FromTrainer}, image: "image:1",
		},
		"what was kept for another TrainJob of its name": {
			job: train().Obj(), objects: []client.Object{trainJobs(true), edited, builder.ConfigMap(other, oldText).Obj(), old.Object(other)},
			want: Built{From: FromLive, Revision: now.Revision, Next: FromLive}, image: "image:2",
		},
		"what Trainer keeps is not to be read": {
			job: train().Obj(), objects: []client.Object{trainJobs(true), edited, builder.JobSet(train().Obj()).Obj()},
			refused: []string{"ConfigMap"},
			want:    Built{From: FromUnknown, Next: FromTrainer},
			notes:   []string{"ConfigMap train-runtime-snapshot"},
		},
		"a runtime that is gone": {
			job: sealed, objects: []client.Object{trainJobs(true)},
			want: Built{From: FromSeal, Revision: old.Revision, Next: FromSeal}, image: "image:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			notes := &Notes{}
			got := readerOver(tc.refused, tc.objects...).Content(t.Context(), tc.job, notes)
			got.Why = ""
			if diff := cmp.Diff(tc.want, got.Built); diff != "" {
				t.Error(diff)
			}
			image := ""
			if got.Snapshot != nil {
				text, err := snapshot.ToYAML(got.Snapshot.Spec())
				if err != nil {
					t.Fatal(err)
				}
				_, image, _ = strings.Cut(text, "image: ")
				image, _, _ = strings.Cut(image, "\n")
			}
			if image != tc.image {
				t.Errorf("the content has image %q, want %q", image, tc.image)
			}
			if all := notes.All(); len(all) != len(tc.notes) {
				t.Errorf("notes %q, want parts %q", all, tc.notes)
			} else {
				for i, part := range tc.notes {
					if !strings.Contains(all[i], part) {
						t.Errorf("note %q, want %q in it", all[i], part)
					}
				}
			}
			if (got.SealErr != nil) != (tc.job == broken) {
				t.Errorf("the seal: %v", got.SealErr)
			}
		})
	}
}

// A runtime is gone only where the API server says so.
func TestLiveRuntime(t *testing.T) {
	runtime := builder.TrainingRuntime("team-a", "torch").Obj()
	for name, tc := range map[string]struct {
		refused []string
		objects []client.Object
		want    Live
	}{
		"there":       {objects: []client.Object{runtime}, want: Live{Revision: snapshot.Revision(runtime.Object["spec"].(map[string]any))}},
		"gone":        {objects: []client.Object{&corev1.ConfigMap{}}, want: Live{Gone: true}},
		"not allowed": {refused: []string{trainer.TrainingRuntimeKind}, objects: []client.Object{runtime}},
	} {
		t.Run(name, func(t *testing.T) {
			object, got := readerOver(tc.refused, tc.objects...).LiveRuntime(t.Context(), trainer.TrainingRuntimeKind, client.ObjectKeyFromObject(runtime), &Notes{})
			if got != tc.want || (object != nil) != (tc.want.Revision != "") {
				t.Errorf("%+v, %v; want %+v", got, object, tc.want)
			}
		})
	}
}
