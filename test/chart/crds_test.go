package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestCRDs checks that the chart installs the generated CRDs as they are, but for what Helm
// needs to know them by.
func TestCRDs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, chart, "files/crds/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of CRDs: %q, error %v; want some", files, err)
	}
	for name, tc := range map[string]struct {
		values []string
		kept   bool
	}{
		"default values":      {kept: true},
		"kept":                {values: []string{"crds.install=true", "crds.keep=true"}, kept: true},
		"not kept":            {values: []string{"crds.keep=false"}},
		"everything optional": {values: variants["everything optional"], kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, tc.values...)
			want := map[string]*apiextensionsv1.CustomResourceDefinition{}
			for _, file := range files {
				crd := generated(t, file)
				crd.Labels = apiLabels(t, objects)
				if tc.kept {
					crd.Annotations["helm.sh/resource-policy"] = "keep"
				}
				want[crd.Name] = crd
			}
			got := named[*apiextensionsv1.CustomResourceDefinition](t, objects)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("CRDs (-generated +rendered):\n%s", diff)
			}
		})
	}
}

// TestCRDsAreUpgraded checks that no CRD is where Helm installs it once and never again.
func TestCRDsAreUpgraded(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, chart, "crds")); !os.IsNotExist(err) {
		t.Errorf("the chart has a folder crds (error %v)", err)
	}
}

// generated reads the CRD in a file.
func generated(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		t.Fatalf("decode %s: %v", file, err)
	}
	return object.(*apiextensionsv1.CustomResourceDefinition)
}

// apiLabels returns the labels of an object that belongs to neither component: those of
// another, with its own component.
func apiLabels(t *testing.T, objects []runtime.Object) map[string]string {
	t.Helper()
	service := named[*corev1.Service](t, objects)["signalbox-webhook"]
	if service == nil {
		t.Fatal("there is no Service signalbox-webhook")
	}
	labels := maps.Clone(service.Labels)
	labels["app.kubernetes.io/component"] = "api"
	return labels
}
