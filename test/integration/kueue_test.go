package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// kueueUser is Kueue as it is released; the test plays it.
const kueueUser = "system:serviceaccount:kueue-system:kueue-controller-manager"

// installKueue brings the kind of Workloads, while Signalbox runs without having known it.
var installKueue sync.Once

// withKueue makes sure that there are Workloads, and returns Kueue's client.
func (s *scene) withKueue() client.Client {
	s.Helper()
	installKueue.Do(func() {
		root, err := binaries.Root()
		s.must(err)
		dirs, err := binaries.ModuleDirs(s.ctx, root, os.Stderr, binaries.KueueModule)
		s.must(err)
		data, err := os.ReadFile(filepath.Join(dirs[binaries.KueueModule], "config", "components", "crd", "bases", "kueue.x-k8s.io_workloads.yaml"))
		s.must(err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		s.must(yaml.UnmarshalStrict(data, crd))
		// Kueue, which is not there, would convert between them.
		crd.Spec.Conversion = nil
		s.must(shared.Client.Create(s.ctx, crd))
	})
	kueue, err := shared.ClientFor(kueueUser, "system:masters")
	s.must(err)
	s.eventually("Workloads", func() (bool, string) {
		err := kueue.List(s.ctx, s.workloads(), client.InNamespace(s.namespace))
		return err == nil, fmt.Sprint(err)
	})
	return kueue
}

func (s *scene) workloads() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	list.SetKind("WorkloadList")
	return list
}

// workloadOf is a Workload of a TrainJob with this image.
func (s *scene) workloadOf(name, image string) *unstructured.Unstructured {
	workload := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"queueName": "queue",
		"podSets": []any{map[string]any{
			"name": "node", "count": int64(1),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "node", "image": image}}}},
		}},
	}}}
	workload.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	workload.SetKind("Workload")
	workload.SetNamespace(s.namespace)
	workload.SetName(name)
	return workload
}

// shown is the image that a client gets back when it asks by a dry run, as Kueue does, for the
// pods of a TrainJob that would have this one.
func (s *scene) shown(by client.Client, name, image string) (string, error) {
	s.Helper()
	workload := s.workloadOf(name, image)
	if err := by.Create(s.ctx, workload, client.DryRunAll); err != nil {
		return "", err
	}
	return imageOf(workload), nil
}

// sees checks what a client is shown.
func (s *scene) sees(by client.Client, name, image, want string) {
	s.Helper()
	if got, err := s.shown(by, name, image); err != nil || got != want {
		s.Errorf("asked for %s of TrainJob %s, shown %q, %v; want %s", image, name, got, err, want)
	}
}

// testKueueView: Kueue, and nobody else, is shown what a TrainJob lives on, for as long as
// Trainer does build it from that. Kueue comes after Signalbox.
func testKueueView(s *scene) {
	const was, is, built = "image:1", "image:2", "example.com/image"
	s.runtime("train", was)
	s.create("waiting", suspended(), on("train"))
	job := s.create("job", on("train"))
	s.create("bare", on("train"))
	s.create("elsewhere", on("train"), set("kueue.x-k8s.io/multikueue", "spec", "managedBy"))
	s.edit("train", is)

	kueue := s.withKueue()
	admitted := s.workloadOf("trainjob-job-1f2e3", was)
	admitted.SetLabels(map[string]string{"kueue.x-k8s.io/job-uid": string(job.UID)})
	admitted.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, trainer.GroupVersion.WithKind(trainer.TrainJobKind))})
	s.must(kueue.Create(s.ctx, admitted))
	s.sees(kueue, "job", is, was)
	s.sees(kueue, "waiting", is, is)
	s.sees(kueue, "elsewhere", is, is)
	s.sees(kueue, "none", is, is)
	s.sees(shared.Client, "job", is, is)
	// Without a Workload and a JobSet, nothing tells.
	if _, err := s.shown(kueue, "bare", is); !apierrors.IsForbidden(err) {
		s.Errorf("for a TrainJob without a Workload and a JobSet: %v, want forbidden", err)
	}
	// What is stored is not touched.
	stored := s.workloadOf("waiting", is)
	s.must(kueue.Create(s.ctx, stored))
	if got := imageOf(stored); got != is {
		s.Errorf("stored with %s, want %s", got, is)
	}

	// A JobSet of the sealed revision tells what will run when it is suspended; older Trainers
	// build it anew from the runtime.
	s.suspend("job")
	s.must(shared.Client.Delete(s.ctx, admitted))
	s.must(s.applyWith(s.get("job"), map[string]string{"lifecycle.trainer.kubeflow.org/runtime-revision": s.isSealed(job, was).Revision}))
	want := is
	if s.release.knows.RuntimeSnapshot {
		want = built
	}
	s.sees(kueue, "job", is, want)
}

// imageOf is the image of the only container of a Workload.
func imageOf(workload *unstructured.Unstructured) string {
	podSets, _, _ := unstructured.NestedSlice(workload.Object, "spec", "podSets")
	containers, _, _ := unstructured.NestedSlice(podSets[0].(map[string]any), "template", "spec", "containers")
	return containers[0].(map[string]any)["image"].(string)
}
