// Package chart_test renders the Helm chart with the Helm that tools/helm pins and checks
// what comes out.
package chart_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	chart     = "charts/signalbox"
	namespace = "signalbox-system"
)

// helm is the path of the pinned Helm.
var helm string

// operators are the groups of kinds that others bring: what is of one comes unstructured.
var operators = []string{"cert-manager.io", "monitoring.coreos.com"}

// codecs know the kinds of Kubernetes and of its extension by CRDs, and refuse a field that a
// type does not have.
var codecs = func() serializer.CodecFactory {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(types))
	}
	return serializer.NewCodecFactory(types, serializer.EnableStrict)
}()

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	home, err := os.MkdirTemp("", "signalbox-helm-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(home)
	// Plugins and repositories of whoever runs the tests have no part in them.
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		os.Setenv(name, filepath.Join(home, name))
	}
	if helm, err = tool("helm", "helm"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// tool builds a tool that tools/FOLDER pins, unless it is built already, and returns its path.
func tool(folder, name string) (string, error) {
	path, err := command("go", "tool", "-modfile=tools/"+folder+"/go.mod", "-n", name)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return strings.TrimSpace(path), nil
}

// command runs a program in the root of the project and returns what it wrote to its
// standard output. The error holds what it wrote to its standard error.
func command(name string, args ...string) (string, error) {
	var output, complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &output, &complaint
	if err := cmd.Run(); err != nil {
		return output.String(), fmt.Errorf("%w: %s", err, complaint.String())
	}
	return output.String(), nil
}

// rendered holds what Helm made of values before: nothing else goes into it.
var rendered sync.Map

// template renders the chart with these --set arguments of Helm.
func template(values ...string) (string, error) {
	key := strings.Join(values, "\n")
	if manifests, found := rendered.Load(key); found {
		return manifests.(string), nil
	}
	args := []string{"template", "signalbox", chart, "--namespace", namespace}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	manifests, err := command(helm, args...)
	if err == nil {
		rendered.Store(key, manifests)
	}
	return manifests, err
}

// render renders the chart and decodes every object into its type. A field that the type
// does not have is an error. Kinds of operators have no type here.
func render(t *testing.T, values ...string) []runtime.Object {
	t.Helper()
	manifests, err := template(values...)
	if err != nil {
		t.Fatalf("render with %q: %v", values, err)
	}
	decoder := codecs.UniversalDeserializer()
	reader := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(manifests)))
	defer reader.Close()
	var objects []runtime.Object
	buffer := make([]byte, len(manifests)+1)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("split the manifests: %v", err)
		}
		if strings.TrimSpace(string(buffer[:n])) == "" {
			continue
		}
		object, err := decodeAny(decoder, buffer[:n])
		if err != nil {
			t.Fatalf("render with %q: decode: %v\n%s", values, err, buffer[:n])
		}
		objects = append(objects, object)
	}
}

// decodeAny decodes an object into its type, and one of an operator into none.
func decodeAny(decoder runtime.Decoder, manifest []byte) (runtime.Object, error) {
	free := &unstructured.Unstructured{}
	if err := sigsyaml.UnmarshalStrict(manifest, &free.Object); err != nil {
		return nil, err
	}
	if slices.Contains(operators, free.GroupVersionKind().Group) {
		return free, nil
	}
	object, _, err := decoder.Decode(manifest, nil, nil)
	return object, err
}

// named returns the objects of type T by their names.
func named[T runtime.Object](t *testing.T, objects []runtime.Object) map[string]T {
	t.Helper()
	found := map[string]T{}
	for _, object := range objects {
		typed, ok := object.(T)
		if !ok {
			continue
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := found[accessor.GetName()]; twice {
			t.Errorf("two objects of type %T are named %q", typed, accessor.GetName())
		}
		found[accessor.GetName()] = typed
	}
	return found
}
