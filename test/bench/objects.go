package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// builtIn is the runtime of the TrainJobs of a bench that is not about runtimes.
const builtIn = "torch-distributed"

// trainJob returns a TrainJob of one node on a ClusterTrainingRuntime, with these fields of its
// spec besides.
func trainJob(namespace, name, runtime string, spec map[string]any) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"runtimeRef": map[string]any{"name": runtime},
		"trainer":    map[string]any{"numNodes": int64(1)},
	}}}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(namespace)
	job.SetName(name)
	for key, value := range spec {
		job.Object["spec"].(map[string]any)[key] = value
	}
	return job
}

// runtimeOf returns a ClusterTrainingRuntime of one container that is about this many bytes of
// JSON: what fills it are environment variables, no two alike.
func runtimeOf(name string, size int) *unstructured.Unstructured {
	const each = 100
	var env []any
	for i := range max(0, size-500) / each {
		key := fmt.Sprintf("SETTING_%05d", i)
		env = append(env, map[string]any{"name": key, "value": strings.Repeat(fmt.Sprintf("%x.", i*7919), each)[:each-40]})
	}
	container := map[string]any{"name": "node", "image": "example.com/image:1"}
	if len(env) > 0 {
		container["env"] = env
	}
	runtime := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
	runtime.SetName(name)
	runtime.SetLabels(map[string]string{"trainer.kubeflow.org/framework": "torch"})
	runtime.Object["spec"] = map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(1), "torch": map[string]any{"numProcPerNode": "auto"}},
		"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{map[string]any{
			"name": "node",
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
					"containers": []any{container},
				}}},
			},
		}}}},
	}
	return runtime
}
