package chart_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// kubernetesMinors are the supported versions of Kubernetes. A module in test/kubernetes pins a
// release of each.
var kubernetesMinors = []string{"1.33", "1.34", "1.35", "1.36", "1.37"}

// notOfKubernetes are the kinds that the chart may render and Kubernetes does not know. What they
// hold is not checked here.
var notOfKubernetes = []schema.GroupKind{
	{Group: "cert-manager.io", Kind: "Certificate"},
	{Group: "cert-manager.io", Kind: "Issuer"},
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"},
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"},
}

// TestOpenAPI checks that every supported version of Kubernetes has each field of each object
// with the type that the chart gives it: what a version does not know its API server drops with
// a warning, and installs the rest.
func TestOpenAPI(t *testing.T) {
	objects := map[string][]unstructured.Unstructured{}
	for name, values := range variants {
		manifests, err := template(values...)
		if err != nil {
			t.Fatalf("render with %q: %v", values, err)
		}
		if objects[name], err = decodeAll(manifests); err != nil {
			t.Fatalf("render with %q: %v", values, err)
		}
		if len(objects[name]) == 0 {
			t.Fatalf("rendered nothing with %q", values)
		}
	}
	for _, minor := range kubernetesMinors {
		t.Run(minor, func(t *testing.T) {
			api := openAPIOf(t, minor)
			for name := range variants {
				for _, object := range objects[name] {
					if slices.Contains(notOfKubernetes, object.GroupVersionKind().GroupKind()) {
						continue
					}
					for _, problem := range api.problems(t, object) {
						t.Errorf("%s: %s %s: %s", name, object.GetKind(), object.GetName(), problem)
					}
				}
			}
		})
	}
}

// TestOpenAPISays checks that TestOpenAPI would find what may be wrong.
func TestOpenAPISays(t *testing.T) {
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, labels: {a: b}}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - name: a
        resources: {limits: {cpu: 1, memory: 1Gi}}
        readinessProbe: {httpGet: {port: health}}
`
	const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a}
spec:
  group: a
  names: {kind: A, plural: as}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {a: {type: array, items: {type: string}}}, additionalProperties: false}}
`
	for name, tc := range map[string]struct {
		manifest, minor string // minor "" is the oldest
		old, new        string
		want            []string
	}{
		"nothing": {manifest: deployment},
		"nothing of a schema within it": {
			manifest: crd,
		},
		"a misspelt field": {
			manifest: deployment, old: "replicas:", new: "replica:",
			want: []string{"spec.replica in body is a forbidden property"},
		},
		"a misspelt field in a list": {
			manifest: deployment, old: "readinessProbe:", new: "readyProbe:",
			want: []string{"spec.template.spec.containers[0].readyProbe in body is a forbidden property"},
		},
		"a number for a string": {
			manifest: deployment, old: "- name: a", new: "- name: 1",
			want: []string{`spec.template.spec.containers[0].name in body must be of type string: "integer"`},
		},
		"a string for a number": {
			manifest: deployment, old: "replicas: 2", new: `replicas: "2"`,
			want: []string{`spec.replicas in body must be of type integer: "string"`},
		},
		"a number that is not whole": {
			manifest: deployment, old: "replicas: 2", new: "replicas: 2.5",
			want: []string{
				"Checked value must be of type integer with format int32 in spec.replicas",
				`spec.replicas in body must be of type int32: "float64"`,
			},
		},
		"a boolean among labels": {
			manifest: deployment, old: "labels: {a: b}", new: "labels: {a: true}",
			want: []string{
				`metadata.labels.a in body must be of type string: "boolean"`,
				`spec.template.metadata.labels.a in body must be of type string: "boolean"`,
			},
		},
		"nothing for a map": {
			manifest: deployment, old: "selector: {matchLabels: {a: b}}", new: "selector:",
			want: []string{`spec.selector in body must be of type object: "null"`},
		},
		"a required field is missing": {
			manifest: deployment, old: "selector: {matchLabels: {a: b}}", new: "paused: false",
			want: []string{"spec.selector in body is required"},
		},
		"a boolean for a port": {
			manifest: deployment, old: "port: health", new: "port: true",
			want: []string{
				`"spec.template.spec.containers[0].readinessProbe.httpGet.port" must validate one and only one schema ` +
					"(oneOf). Found none valid",
				`spec.template.spec.containers[0].readinessProbe.httpGet.port in body must be of type integer: "boolean"`,
			},
		},
		"a field that the next version brings": {
			manifest: deployment, old: "containers:", new: "hostnameOverride: a\n      containers:",
			want: []string{"spec.template.spec.hostnameOverride in body is a forbidden property"},
		},
		"nothing of a field that this version has": {
			manifest: deployment, minor: "1.34", old: "containers:", new: "hostnameOverride: a\n      containers:",
		},
		"a misspelt field of a schema within it": {
			manifest: crd, old: "items: {type: string}", new: "items: {typ: string}",
			want: []string{
				"spec.versions[0].schema.openAPIV3Schema.properties.a.items.typ in body is a forbidden property",
			},
		},
		"a kind that it does not know": {
			manifest: deployment, old: "kind: Deployment", new: "kind: Deploymint",
			want: []string{"it has no kind apps/v1, Kind=Deploymint"},
		},
		"a version that it does not know": {
			manifest: deployment, old: "apps/v1", new: "apps/v1beta1",
			want: []string{"it has no kind apps/v1beta1, Kind=Deployment"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			minor := tc.minor
			if minor == "" {
				minor = kubernetesMinors[0]
			}
			if !strings.Contains(tc.manifest, tc.old) {
				t.Fatalf("there is no %q to replace", tc.old)
			}
			objects, err := decodeAll(strings.ReplaceAll(tc.manifest, tc.old, tc.new))
			if err != nil || len(objects) != 1 {
				t.Fatalf("decoded %d objects: %v", len(objects), err)
			}
			if diff := cmp.Diff(tc.want, openAPIOf(t, minor).problems(t, objects[0])); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenAPIRefusesAFieldTwice(t *testing.T) {
	_, err := decodeAll("apiVersion: v1\nkind: Secret\nkind: Secret\n")
	checkError(t, err, `line 3: key "kind" already set in map`)
}

// decodeAll returns the objects of manifests as they are written. A key that a map has twice is
// an error.
func decodeAll(manifests string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, document)
		}
		if string(data) == "null" { // Only comments.
			continue
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

// definitions are schemas by the names by which they refer to each other.
type definitions map[string]*spec.Schema

// openAPI is what one release of Kubernetes says about its kinds.
type openAPI struct {
	folder string
	loaded map[schema.GroupVersion]definitions
}

// openAPIOf returns the OpenAPI of the release that test/kubernetes/MINOR pins, from Go's module
// cache, which it is downloaded to if need be.
func openAPIOf(t *testing.T, minor string) *openAPI {
	t.Helper()
	output, err := command("go", "-C", filepath.Join("test", "kubernetes", minor), "mod", "download", "-json", "k8s.io/kubernetes")
	if err != nil {
		t.Fatalf("download Kubernetes %s: %v %s", minor, err, output)
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal([]byte(output), &module); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(module.Version, "v"+minor+".") {
		t.Fatalf("test/kubernetes/%s pins %s", minor, module.Version)
	}
	return &openAPI{
		folder: filepath.Join(module.Dir, "api", "openapi-spec", "v3"),
		loaded: map[schema.GroupVersion]definitions{},
	}
}

// problems returns what is wrong with the object, sorted.
func (o *openAPI) problems(t *testing.T, object unstructured.Unstructured) []string {
	t.Helper()
	kind := object.GroupVersionKind()
	known := o.load(t, kind.GroupVersion())
	for _, definition := range known {
		if !describes(definition, kind) {
			continue
		}
		var problems []string
		for _, err := range known.validator(definition, "").Validate(object.Object).Errors {
			problems = append(problems, err.Error())
		}
		slices.Sort(problems)
		return problems
	}
	return []string{"it has no kind " + kind.String()}
}

// load returns the definitions of a group's version: none if the release does not have it.
func (o *openAPI) load(t *testing.T, version schema.GroupVersion) definitions {
	t.Helper()
	if known, there := o.loaded[version]; there {
		return known
	}
	if _, err := os.Stat(o.folder); err != nil {
		t.Fatal(err)
	}
	file := "apis__" + version.Group + "__" + version.Version
	if version.Group == "" {
		file = "api__" + version.Version
	}
	data, err := os.ReadFile(filepath.Join(o.folder, file+"_openapi.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Components struct{ Schemas definitions } }
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatalf("OpenAPI of %s: %v", version, err)
	}
	known := document.Components.Schemas
	// These say nothing of what they are: a schema, or something else that they are named for. Of
	// the forms that items may have Kubernetes takes one only.
	const props = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
	if plain := known[props]; plain != nil {
		orBool := *plain
		orBool.Type = append(slices.Clone(plain.Type), "boolean")
		known[props+"OrArray"], known[props+"OrBool"] = plain, &orBool
	}
	o.loaded[version] = known
	return known
}

// describes tells whether the definition is that of the kind.
func describes(definition *spec.Schema, kind schema.GroupVersionKind) bool {
	kinds, _ := definition.Extensions["x-kubernetes-group-version-kind"].([]any)
	return slices.ContainsFunc(kinds, func(entry any) bool {
		is, _ := entry.(map[string]any)
		return is["group"] == kind.Group && is["version"] == kind.Version && is["kind"] == kind.Kind
	})
}

// validator returns the validator of API servers for a schema at a path. Unlike theirs, which
// know no references, it follows these as it goes down into an object, for a schema may hold
// itself, and takes no field that a schema does not list.
func (d definitions) validator(of *spec.Schema, path string) *validate.SchemaValidator {
	// A reference that says more of a field than its type is written as the only one of allOf.
	reference := of.Ref.String()
	if reference == "" && len(of.AllOf) == 1 {
		reference = of.AllOf[0].Ref.String()
	}
	if reference != "" {
		name := strings.TrimPrefix(reference, "#/components/schemas/")
		if of = d[name]; of == nil {
			panic("OpenAPI defines no " + name)
		}
	}
	// The validator takes no number for a format without a type, as IntOrString has it.
	if len(of.Type) == 0 && len(of.OneOf) > 0 {
		either := *of
		either.Format = ""
		of = &either
	}
	if len(of.Properties) > 0 && of.AdditionalProperties == nil {
		closed := *of
		closed.AdditionalProperties = &spec.SchemaOrBool{Allows: false}
		of = &closed
	}
	return validate.NewSchemaValidator(of, nil, path, strfmt.Default, func(options *validate.SchemaValidatorOptions) {
		options.NewValidatorForField = func(_ string, field *spec.Schema, _ any, path string, _ strfmt.Registry,
			_ ...validate.Option) validate.ValueValidator {
			return d.validator(field, path)
		}
		options.NewValidatorForIndex = func(_ int, item *spec.Schema, _ any, path string, _ strfmt.Registry,
			_ ...validate.Option) validate.ValueValidator {
			return d.validator(item, path)
		}
	})
}
