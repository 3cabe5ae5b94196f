package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// initializerJobSet is the JobSet spec of a runtime that loads a dataset before it trains.
const initializerJobSet = `{"replicatedJobs":[
	{"name":"node","template":{
		"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},
		"spec":{"template":{"spec":{"containers":[{"name":"node","image":"example.com/train:old"}]}}}}},
	{"name":"dataset-initializer","template":{
		"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"dataset-initializer"}},
		"spec":{"template":{"spec":{
			"volumes":[{"name":"initializer","emptyDir":{}}],
			"containers":[{"name":"dataset-initializer","image":"example.com/train:old",
				"volumeMounts":[{"name":"initializer","mountPath":"/workspace"}]}]}}}}}]}`

// Trainer checks every update of a TrainJob against the runtime as it is, sealed or not: while
// that lacks the volume mount that an initializer needs, the TrainJob can neither be resumed
// nor changed otherwise, on stock and with Signalbox. With the mount back, it resumes on what
// it ran on before.
func TestSnapshotWithoutTheMountOfAnInitializer(t *testing.T) {
	t.Parallel()
	const (
		containers = "/spec/template/spec/replicatedJobs/1/template/spec/template/spec/containers/0"
		refusal    = `admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: spec.runtimeRef: Invalid value: ` +
			`{"name":"train","apiGroup":"trainer.kubeflow.org","kind":"TrainingRuntime"}: ` +
			`must have volumeMount with name - initializer in container dataset-initializer of the dataset-initializer job`
	)
	for on, c := range both() {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			s := newSceneOn(t, c)
			s.runtime("train", initializerJobSet)
			s.known("train")
			s.create("job", onRuntime("train"), set(map[string]any{"storageUri": "hf://example/data"}, "spec", "initializer", "dataset"))
			s.comeTo("job", 2)
			s.runs("job", oldImage)
			s.suspend("job")
			s.noPods("job")
			// Signalbox lets such an edit through when it is told to.
			s.must(s.patchAny(s.runtimeNamed("train"), `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/allow-disruption":"true"}}}`))
			s.must(s.cluster.Client.Patch(s.ctx, s.runtimeNamed("train"), client.RawPatch(types.JSONPatchType, []byte(`[
				{"op":"replace","path":"`+containers+`/image","value":"example.com/train:new"},
				{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":"example.com/train:new"},
				{"op":"remove","path":"`+containers+`/volumeMounts"}]`))))

			before := s.get("job")
			for what, patch := range map[string]string{
				"resume":     `{"spec":{"suspend":false}}`,
				"label":      `{"metadata":{"labels":{"a":"b"}}}`,
				"annotation": `{"metadata":{"annotations":{"a":"b"}}}`,
			} {
				write := func(options ...client.PatchOption) error {
					return s.cluster.Client.Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.MergePatchType, []byte(patch)), options...)
				}
				s.eventually("Trainer's refusal", func() (bool, string) {
					err := write(client.DryRunAll)
					return err != nil, fmt.Sprint(err)
				})
				if err := write(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal) {
					t.Errorf("%s: %v, want Forbidden: %s", what, err, refusal)
				}
			}
			// Trainer may still write its status.
			if after := s.get("job"); after.Generation != before.Generation || after.Labels["a"] != "" || after.Annotations["a"] != "" {
				t.Errorf("the TrainJob was changed: %s, then %s", s.text(before), s.text(after))
			}

			s.must(s.cluster.Client.Patch(s.ctx, s.runtimeNamed("train"), client.RawPatch(types.JSONPatchType, []byte(`[
				{"op":"add","path":"`+containers+`/volumeMounts","value":[{"name":"initializer","mountPath":"/elsewhere"}]}]`))))
			s.eventually("Trainer's consent", func() (bool, string) {
				err := s.cluster.Client.Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)), client.DryRunAll)
				return err == nil, fmt.Sprint(err)
			})
			job := s.resume("job")
			s.comeTo("job", 2)
			pods := s.runs("job", oldImage)
			mounts := 0
			for _, pod := range pods {
				for _, mount := range pod.Spec.Containers[0].VolumeMounts {
					if mount.Name == "initializer" && mount.MountPath == "/workspace" {
						mounts++
					}
				}
			}
			if len(pods) != 2 || mounts != 1 {
				t.Errorf("%d pods run, %d with the mount of before; want 2 and 1", len(pods), mounts)
			}
			if s.cluster == shared {
				s.inOrder(job, s.sealed(job))
			}
			s.settled("job")
		})
	}
}

// comeTo waits until a TrainJob has so many pods: they come one after the other.
func (s *scene) comeTo(name string, count int) {
	s.Helper()
	s.eventually("pods of TrainJob "+name, func() (bool, string) { return len(s.pods(name)) == count, s.children(name) })
}
