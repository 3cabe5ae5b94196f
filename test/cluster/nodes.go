package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kyaml "sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// fakeNode marks the nodes that kwok plays.
const fakeNode = "kwok.x-k8s.io/node"

func (c *Cluster) newKwok() (*Process, error) {
	stages, err := c.stages()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.Dir, "kwok.yaml")
	if err := os.WriteFile(path, stages, 0o644); err != nil {
		return nil, err
	}
	server := address(c.ports.take())
	p := c.part(binaries.Kwok, c.binaries[binaries.Kwok], kwokUser,
		"--config="+path, "--kubeconfig="+c.kubeconfig(kwokUser), "--server-address="+server,
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector="+fakeNode+"=fake",
		// The default has room for 254 pods.
		"--cidr=10.64.0.1/10")
	p.ready = c.healthy("http://" + server + "/healthz")
	return p, nil
}

// stages returns the stages that kwok ships, by which it plays nodes and pods.
// Without pod-complete, a pod runs until its status says otherwise.
func (c *Cluster) stages() ([]byte, error) {
	var documents [][]byte
	stage := func(elem ...string) ([]byte, error) {
		return os.ReadFile(filepath.Join(append([]string{c.modules[binaries.KwokModule], "kustomize", "stage"}, elem...)...))
	}
	for _, file := range [][]string{{"node", "fast", "node-initialize.yaml"}, {"pod", "fast", "pod-ready.yaml"}, {"pod", "fast", "pod-delete.yaml"}} {
		data, err := stage(file...)
		if err != nil {
			return nil, err
		}
		if file[0] == "pod" && c.options.Pods {
			if data, err = leavingOut(data, signalboxName); err != nil {
				return nil, err
			}
		}
		documents = append(documents, data)
	}
	if c.options.CompletePodsAfter > 0 {
		data, err := stage("pod", "fast", "pod-complete.yaml")
		if err != nil {
			return nil, err
		}
		if data, err = delayed(data, c.options.CompletePodsAfter); err != nil {
			return nil, err
		}
		documents = append(documents, data)
	}
	return bytes.Join(documents, []byte("\n---\n")), nil
}

// leavingOut keeps a stage from pods whose label app.kubernetes.io/name has this value.
func leavingOut(stage []byte, name string) ([]byte, error) {
	content := object{}
	if err := kyaml.Unmarshal(stage, &content); err != nil {
		return nil, err
	}
	expressions, _, err := unstructured.NestedSlice(content, "spec", "selector", "matchExpressions")
	if err != nil {
		return nil, err
	}
	expressions = append(expressions, object{"key": `.metadata.labels["` + nameLabel + `"]`, "operator": "NotIn", "values": []any{name}})
	if err := unstructured.SetNestedSlice(content, expressions, "spec", "selector", "matchExpressions"); err != nil {
		return nil, err
	}
	return kyaml.Marshal(content)
}

// delayed sets how long after its precondition a stage happens.
func delayed(stage []byte, d time.Duration) ([]byte, error) {
	content := object{}
	if err := kyaml.Unmarshal(stage, &content); err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedField(content, d.Milliseconds(), "spec", "delay", "durationMilliseconds"); err != nil {
		return nil, err
	}
	return kyaml.Marshal(content)
}

// createNodes creates the fake nodes. It must run before kwok starts: kwok takes
// over the capacity that it finds.
func (c *Cluster) createNodes(ctx context.Context) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
		"nvidia.com/gpu":      resource.MustParse("8"),
	}
	for i := range c.options.Nodes {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
			Annotations: map[string]string{fakeNode: "fake"},
		}}
		if err := c.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("creating %s: %w", name, err)
		}
		node.Status.Capacity, node.Status.Allocatable = capacity, capacity
		if err := c.Client.Status().Update(ctx, node); err != nil {
			return fmt.Errorf("giving %s its capacity: %w", name, err)
		}
	}
	return nil
}

// waitNodes waits until pods can be scheduled to every node.
func (c *Cluster) waitNodes(ctx context.Context) error {
	return c.await(ctx, "the nodes", func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := c.Client.List(ctx, &nodes); err != nil {
			return err
		}
		for _, node := range nodes.Items {
			ready := false
			for _, condition := range node.Status.Conditions {
				ready = ready || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
			}
			if !ready || len(node.Spec.Taints) > 0 {
				return fmt.Errorf("%s: ready %t, taints %v", node.Name, ready, node.Spec.Taints)
			}
		}
		return nil
	})
}
