package list

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestEvidence(t *testing.T) {
	runtime := torch("one")
	taken, err := snapshot.Take(runtime.Object)
	if err != nil {
		t.Fatal(err)
	}
	text, err := taken.YAML()
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) *builder.TrainJobBuilder {
		return builder.TrainJob("ns", name).Runtime(trainer.ClusterTrainingRuntimeKind, "torch")
	}
	job, other := of("job").Obj(), of("other").Obj()
	elsewhere := of("job").Runtime(trainer.ClusterTrainingRuntimeKind, "jax").Obj()
	forged := taken.Object(job)
	forged.Spec.Revision = "0123456789abcdef"
	for name, tc := range map[string]struct {
		job         *trainer.TrainJob
		object      any
		filed, kept bool
	}{
		"what Signalbox filed":            {job: job, object: taken.Object(job), filed: true},
		"what it filed of another":        {job: job, object: taken.Object(other)},
		"what it filed of a namesake":     {job: job, object: taken.Object(of("job").UID("earlier").Obj())},
		"what says to be of another text": {job: job, object: forged},
		"what Trainer keeps":              {job: job, object: builder.ConfigMap(job, text).Obj(), kept: true},
		"what Trainer keeps of another":   {job: job, object: builder.ConfigMap(other, text).Obj()},
		"what is no runtime":              {job: job, object: builder.ConfigMap(job, "a: b").Obj()},
		"nothing":                         {job: job, object: builder.ConfigMap(job, text).Emptied().Obj()},
		"another runtime":                 {job: elsewhere, object: builder.ConfigMap(elsewhere, text).Obj()},
		"a ConfigMap of another name": {job: job, object: func() any {
			config := builder.ConfigMap(job, text).Obj()
			config.Name = "mine"
			return config
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			e := evidenceOf([]*trainer.TrainJob{tc.job})
			object := stored(t, tc.object)
			for _, look := range []struct {
				name string
				of   func(*unstructured.Unstructured) (*trainer.TrainJob, string)
				want bool
			}{{"filed", e.filed, tc.filed}, {"kept", e.kept, tc.kept}} {
				found, revision := look.of(object)
				switch {
				case !look.want && found != nil:
					t.Errorf("%s is %s of %s, want nothing", look.name, revision, found.Name)
				case look.want && (found != tc.job || revision != taken.Revision):
					t.Errorf("%s is %q of %v, want %s", look.name, revision, found, taken.Revision)
				}
			}
		})
	}
}

func TestEvidenceWhere(t *testing.T) {
	var jobs []*trainer.TrainJob
	var want []string
	for i := range manyNamespaces {
		namespace := string(rune('a' + i))
		if i < manyNamespaces-1 {
			want = append(want, namespace)
		}
		jobs = append(jobs, builder.TrainJob(namespace, namespace+"1").Obj(), builder.TrainJob(namespace, namespace+"2").Obj())
	}
	few := evidenceOf(jobs[:len(jobs)-2]).where()
	slices.Sort(few)
	if diff := cmp.Diff(want, few); diff != "" {
		t.Errorf("few (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{""}, evidenceOf(jobs).where()); diff != "" {
		t.Errorf("many (-want +got):\n%s", diff)
	}
}
