package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	kyaml "sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// kustomize renders the released manifests of the neighbours with the very tool
// that admins use, so that names, namespaces and patches are those of a real
// installation. Trainer's own overlay fetches JobSet over the network, so its
// bases are put together here instead.
func (c *Cluster) kustomize(ctx context.Context) ([]*unstructured.Unstructured, error) {
	dir := filepath.Join(c.Dir, "kustomize")
	rel := func(module string, elem ...string) string {
		path, err := filepath.Rel(dir, filepath.Join(append([]string{c.modules[module]}, elem...)...))
		if err != nil {
			panic(err) // both are absolute
		}
		return path
	}
	trainer := func(elem ...string) string {
		return filepath.Join("..", rel(binaries.TrainerModule, append([]string{"manifests"}, elem...)...))
	}
	if err := writeYAML(filepath.Join(dir, "trainer", "namespace.yaml"), object{
		"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": trainerNamespace},
	}); err != nil {
		return nil, err
	}
	if err := writeYAML(filepath.Join(dir, "trainer", "kustomization.yaml"), object{
		"namespace": trainerNamespace,
		"resources": []string{"namespace.yaml", trainer("base", "crds"), trainer("base", "manager"), trainer("base", "rbac"), trainer("base", "webhook")},
	}); err != nil {
		return nil, err
	}
	resources := []string{
		"trainer",
		rel(binaries.TrainerModule, "manifests", "overlays", "runtimes"),
		rel(binaries.JobSetModule, "config", "default"),
		rel(binaries.KwokModule, "kustomize", "rbac"),
	}
	if c.options.Kueue {
		resources = append(resources, rel(binaries.KueueModule, "config", "default"))
	}
	if err := writeYAML(filepath.Join(dir, "kustomization.yaml"), object{"resources": resources}); err != nil {
		return nil, err
	}
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Kubectl, "kustomize", dir)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env(adminUser), &out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("rendering the neighbours' manifests: %w\n%s", err, stderr.Bytes())
	}
	return decode(&out)
}

type object = map[string]any

func writeYAML(path string, content any) error {
	data, err := kyaml.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// decode reads a stream of YAML documents; empty ones are left out.
func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// install creates the objects: namespaces first, then the definitions of kinds,
// then the rest, when its kinds are served.
func (c *Cluster) install(ctx context.Context, objects []*unstructured.Unstructured) error {
	var namespaces, kinds, rest []*unstructured.Unstructured
	for _, o := range objects {
		switch o.GetKind() {
		case "Namespace":
			namespaces = append(namespaces, o)
		case "CustomResourceDefinition":
			kinds = append(kinds, o)
		case "APIService":
			// Kueue's visibility server is off. An APIService without a server breaks
			// discovery for everyone, the garbage collector included.
		default:
			rest = append(rest, o)
		}
	}
	if err := c.createAll(ctx, namespaces, 8); err != nil {
		return err
	}
	if err := c.createAll(ctx, kinds, 2); err != nil {
		return err
	}
	for _, definition := range kinds {
		c.definitions = append(c.definitions, definition.GetName())
	}
	// The controller manager must not start before: its garbage collector looks for
	// new kinds only every 30 s.
	if err := c.await(ctx, "the kinds of the CRDs", c.served); err != nil {
		return err
	}
	return c.createAll(ctx, rest, 8)
}

// createAll creates objects, so many at a time. A new kind costs the API server seconds of work,
// and on a busy machine many at once would take longer than it lets a request.
func (c *Cluster) createAll(ctx context.Context, objects []*unstructured.Unstructured, atOnce int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, o := range objects {
		group.Go(func() error {
			if err := c.Client.Create(ctx, o); err != nil {
				return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}
