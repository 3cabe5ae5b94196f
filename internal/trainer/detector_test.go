package trainer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type schemaOf = apiextensionsv1.JSONSchemaProps

// crdOf makes the CRD of TrainJobs with these properties of the spec, in this version.
func crdOf(version string, properties map[string]schemaOf) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = CRDName
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name:   version,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schemaOf{Properties: map[string]schemaOf{"spec": {Properties: properties}}}},
	}}
	return crd
}

// nested wraps a property into lists and objects.
func nested(name string) schemaOf {
	pod := schemaOf{Properties: map[string]schemaOf{name: {Type: "integer"}}}
	patch := schemaOf{Properties: map[string]schemaOf{"trainingRuntimeSpec": {Properties: map[string]schemaOf{"spec": pod}}}}
	return schemaOf{Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &patch}}
}

var (
	trainer20 = map[string]schemaOf{"suspend": {}}
	trainer22 = map[string]schemaOf{"suspend": {}, "activeDeadlineSeconds": {}, "runtimePatches": nested("tolerations")}
	trainer23 = map[string]schemaOf{"suspend": {}, "activeDeadlineSeconds": {}, "runtimePatches": nested("terminationGracePeriodSeconds")}
)

func TestDetect(t *testing.T) {
	without := &apiextensionsv1.CustomResourceDefinition{}
	without.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: "v1alpha1", Schema: &apiextensionsv1.CustomResourceValidation{}}}
	for name, tc := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want Capabilities
	}{
		"Trainer 2.0":                   {crd: crdOf("v1alpha1", trainer20)},
		"Trainer 2.2":                   {crd: crdOf("v1alpha1", trainer22), want: Capabilities{ActiveDeadline: true}},
		"Trainer 2.3":                   {crd: crdOf("v1alpha1", trainer23), want: Capabilities{ActiveDeadline: true, RuntimeSnapshot: true}},
		"a later one with a TTL":        {crd: crdOf("v1alpha1", map[string]schemaOf{"ttlSecondsAfterFinished": {}}), want: Capabilities{TTL: true}},
		"a later one with a run policy": {crd: crdOf("v1alpha1", map[string]schemaOf{"runPolicy": {Properties: map[string]schemaOf{"ttlSecondsAfterFinished": {}}}}), want: Capabilities{RunPolicy: true}},
		"the field elsewhere":           {crd: crdOf("v1alpha1", map[string]schemaOf{"trainer": nested("terminationGracePeriodSeconds")})},
		"only another version":          {crd: crdOf("v2", trainer23)},
		"without a schema":              {crd: without},
		"empty":                         {crd: &apiextensionsv1.CustomResourceDefinition{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Detect(tc.crd); got != tc.want {
				t.Errorf("Detect = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func newStore(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// The detector follows the CRD as it comes, changes and goes.
func TestDetectorFollowsTheCRD(t *testing.T) {
	store := newStore(t)
	d := &Detector{CRDs: store}
	want := func(want Capabilities) {
		t.Helper()
		if got := d.HasActiveDeadline(t.Context()); got != want.ActiveDeadline {
			t.Errorf("has a deadline: %v, want %v", got, want.ActiveDeadline)
		}
		for range 2 {
			if got, err := d.Capabilities(t.Context()); err != nil || got != want {
				t.Errorf("Capabilities = %+v, %v; want %+v", got, err, want)
			}
		}
		if got := d.KeepsSnapshots(t.Context()); got != want.RuntimeSnapshot {
			t.Errorf("keeps snapshots: %v, want %v", got, want.RuntimeSnapshot)
		}
	}
	want(Capabilities{})
	crd := crdOf("v1alpha1", trainer22)
	if err := store.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	want(Capabilities{ActiveDeadline: true})
	crd.Spec = crdOf("v1alpha1", trainer23).Spec
	if err := store.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	want(Capabilities{ActiveDeadline: true, RuntimeSnapshot: true})
	if err := store.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	want(Capabilities{})
}

// While it is not known what Trainer does, it is taken to keep snapshots, and to have no deadline.
func TestDetectorThatCannotRead(t *testing.T) {
	broken := errors.New("not started")
	d := &Detector{CRDs: interceptor.NewClient(newStore(t), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return broken
	}})}
	if _, err := d.Capabilities(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if !d.KeepsSnapshots(t.Context()) {
		t.Error("taken not to keep snapshots")
	}
	if d.HasActiveDeadline(t.Context()) {
		t.Error("taken to have a deadline")
	}
	if _, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: CRDName}}); !errors.Is(err, broken) {
		t.Errorf("Reconcile: error %v, want %v", err, broken)
	}
}

func TestDetectorTells(t *testing.T) {
	d := &Detector{CRDs: newStore(t, crdOf("v1alpha1", trainer22)), metric: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "signalbox_trainer_capability"}, []string{"capability"})}
	for _, name := range []string{"another.example.com", CRDName, CRDName} {
		if result, err := d.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil || result != (reconcile.Result{}) {
			t.Errorf("Reconcile = %v, %v", result, err)
		}
	}
	want := strings.TrimLeft(`
# HELP signalbox_trainer_capability 
# TYPE signalbox_trainer_capability gauge
signalbox_trainer_capability{capability="active_deadline_seconds"} 1
signalbox_trainer_capability{capability="run_policy"} 0
signalbox_trainer_capability{capability="runtime_snapshot"} 0
signalbox_trainer_capability{capability="ttl_seconds_after_finished"} 0
`, "\n")
	if err := testutil.CollectAndCompare(d.metric, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestCacheCRD(t *testing.T) {
	holds := CacheCRD()
	if value, found := holds.Field.RequiresExactMatch("metadata.name"); !found || value != "trainjobs.trainer.kubeflow.org" {
		t.Errorf("holds %s", holds.Field)
	}
}
