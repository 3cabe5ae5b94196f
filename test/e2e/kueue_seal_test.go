package e2e_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asRuntimeSays leaves out what the manifest of a TrainJob says by itself of its pods.
func asRuntimeSays() change {
	return func(job *unstructured.Unstructured) {
		unstructured.RemoveNestedField(job.Object, "spec", "trainer")
	}
}

// asking is the JobSet spec of a runtime with one node that asks for this much CPU.
func asking(image, cpu string) string {
	return fmt.Sprintf(`{"replicatedJobs":[{"name":"node","template":{
		"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},
		"spec":{"template":{"spec":{"containers":[{"name":"node","image":%q,"resources":{"requests":{"cpu":%q}}}]}}}}}]}`, image, cpu)
}

// queuedOn creates a TrainJob of the queue that is in all as the TrainingRuntime "train" says.
func (s *scene) queuedOn(name string, changes ...change) {
	s.Helper()
	s.createOn(s.runtimeNamed("train"), name, append([]change{asRuntimeSays(), queued()}, changes...)...)
}

// podSets are the pod sets of the Workload of a TrainJob; nil when there is none.
func (s *scene) podSets(name string) []any {
	s.Helper()
	workload := s.workload(name)
	if workload == nil {
		return nil
	}
	podSets, _, err := unstructured.NestedSlice(workload.Object, "spec", "podSets")
	s.must(err)
	return podSets
}

// asked is what of the only pod set of a TrainJob's Workload Kueue counts by.
func (s *scene) asked(name string) (image, cpu string, count int64) {
	s.Helper()
	podSets := s.podSets(name)
	if len(podSets) != 1 {
		return "", "", 0
	}
	podSet := podSets[0].(map[string]any)
	count, _, _ = unstructured.NestedInt64(podSet, "count")
	containers, _, _ := unstructured.NestedSlice(podSet, "template", "spec", "containers")
	container := containers[0].(map[string]any)
	image, _ = container["image"].(string)
	cpu, _, _ = unstructured.NestedString(container, "resources", "requests", "cpu")
	return image, cpu, count
}

// editTrain changes the TrainingRuntime "train" by a JSON patch, and waits until Kueue has the
// edit: until it counts another TrainJob by it, which waits in no queue and so is not sealed.
func (s *scene) editTrain(patch string) {
	s.Helper()
	const probe = "probe"
	s.queuedOn(probe, labelled("kueue.x-k8s.io/queue-name", "nowhere"))
	s.eventually("the Workload of a TrainJob that waits", func() (bool, string) { return s.podSets(probe) != nil, "none" })
	before := s.podSets(probe)
	s.must(s.cluster.Client.Patch(s.ctx, s.runtimeNamed("train"), client.RawPatch(types.JSONPatchType, []byte(patch))))
	s.eventually("its Workload by the edited runtime", func() (bool, string) {
		s.nudge(probe)
		now := s.podSets(probe)
		all := s.complaints()
		return now != nil && !reflect.DeepEqual(now, before), fmt.Sprintf("%s; Kueue says: %s", s.text(now), all[max(0, len(all)-3):])
	})
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob(probe)))
	s.eventually("the end of the probe's Workload", func() (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kueueKind("WorkloadList"))
		s.must(s.cluster.Client.List(s.ctx, list, client.InNamespace(s.namespace)))
		left := slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetOwnerReferences()[0].Name != probe })
		return len(left) == 0, s.text(left)
	})
}

// looks counts how often Kueue has begun to look at a TrainJob.
func (s *scene) looks(name string) int {
	s.Helper()
	return len(s.logged(s.cluster.Kueue, `"msg":"Reconciling Job"`, fmt.Sprintf(`"namespace":%q,"name":%q`, s.namespace, name)))
}

// lookedAt waits until Kueue has looked at a TrainJob from the beginning to the end.
func (s *scene) lookedAt(name string) {
	s.Helper()
	// It looks at a TrainJob once at a time: when it begins again, it has ended before.
	before := s.looks(name)
	s.eventually("looks of Kueue at TrainJob "+name, func() (bool, string) {
		s.nudge(name)
		is := s.looks(name)
		return is >= before+3, fmt.Sprintf("%d looks after %d", is, before)
	})
}

// complaints are the errors of Kueue about this scene. That somebody else wrote meanwhile, as
// nudge does, is none.
func (s *scene) complaints() [][]byte {
	s.Helper()
	return slices.DeleteFunc(s.logged(s.cluster.Kueue, `"level":"error"`, s.namespace), func(line []byte) bool {
		return bytes.Contains(line, []byte("the object has been modified"))
	})
}

// uids are the UIDs of pods, in order.
func uids(pods []corev1.Pod) []types.UID {
	var all []types.UID
	for _, pod := range pods {
		all = append(all, pod.UID)
	}
	slices.Sort(all)
	return all
}

const (
	podOfNode       = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
	containerOfNode = podOfNode + "/containers/0"
)

// edits of a runtime that change what Kueue counts, or may, and whether Kueue restarts for it
// what it has admitted.
var edits = map[string]struct {
	patch    string
	restarts bool
}{
	"image":        {`[{"op":"replace","path":"` + containerOfNode + `/image","value":"` + newImage + `"}]`, true},
	"env":          {`[{"op":"add","path":"` + containerOfNode + `/env","value":[{"name":"A","value":"1"}]}]`, true},
	"args":         {`[{"op":"add","path":"` + containerOfNode + `/args","value":["--more"]}]`, true},
	"more CPU":     {`[{"op":"replace","path":"` + containerOfNode + `/resources/requests/cpu","value":"2"}]`, true},
	"less CPU":     {`[{"op":"replace","path":"` + containerOfNode + `/resources/requests/cpu","value":"500m"}]`, true},
	"nodes":        {`[{"op":"replace","path":"/spec/mlPolicy/numNodes","value":2}]`, true},
	"a sidecar":    {`[{"op":"add","path":"` + podOfNode + `/initContainers","value":[{"name":"side","image":"side","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}]}]`, true},
	"a container":  {`[{"op":"add","path":"` + podOfNode + `/containers/-","value":{"name":"side","image":"side"}}]`, true},
	"a toleration": {`[{"op":"add","path":"` + podOfNode + `/tolerations","value":[{"key":"a","operator":"Exists"}]}]`, false},
}

// On stock, Kueue restarts what it has admitted when the runtime is edited, and the pods then
// run the old content.
func TestKueueRestartsOnStock(t *testing.T) {
	t.Parallel()
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSceneOn(t, stock)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.runtime("train", asking(oldImage, "1"))
			s.queuedOn("job")
			pods, workload := s.runs("job", oldImage), s.workload("job")
			s.editTrain(edit.patch)
			if !edit.restarts {
				s.lookedAt("job")
				if got := s.workload("job"); got == nil || got.GetUID() != workload.GetUID() || !reflect.DeepEqual(uids(s.pods("job")), uids(pods)) {
					t.Errorf("Kueue restarts it: %s", s.children("job"))
				}
				return
			}
			s.eventually("the end of the pods", func() (bool, string) {
				s.nudge("job")
				now := s.workload("job")
				for _, pod := range s.pods("job") {
					if slices.Contains(uids(pods), pod.UID) {
						return false, s.children("job")
					}
				}
				return now == nil || now.GetUID() != workload.GetUID(), s.children("job")
			})
		})
	}
}

// With Signalbox, what runs goes on, and Kueue has no error more.
func TestKueueIsShownTheSeal(t *testing.T) {
	t.Parallel()
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.runtime("train", asking(oldImage, "1"))
			s.queuedOn("job")
			pods, workload := s.runs("job", oldImage), s.workload("job")
			s.useBecomes(queueUse{Reserved: "1", Used: "1", Reserving: 1, Admitted: 1})
			s.editTrain(edit.patch)
			complaints := len(s.complaints())
			s.lookedAt("job")
			s.goesOn("job", pods, workload)
			s.useBecomes(queueUse{Reserved: "1", Used: "1", Reserving: 1, Admitted: 1})
			if all := s.complaints(); len(all) > complaints {
				t.Errorf("Kueue complains: %s", all[complaints:])
			}

			// The runtime as it was is the same again for Kueue. A container that goes is a disruption
			// for Trainer.
			s.must(s.allowDisruption(s.runtimeNamed("train")))
			s.must(s.reshape(s.runtimeNamed("train"), asking(oldImage, "1")))
			s.must(s.patchAny(s.runtimeNamed("train"), `{"spec":{"mlPolicy":{"numNodes":1}}}`))
			s.lookedAt("job")
			s.goesOn("job", pods, workload)
			s.finish("job")
			s.workloadBecomes("job", finished, "True/Succeeded")
			s.useBecomes(queueUse{Reserved: "0", Used: "0"})
		})
	}
}

// goesOn checks that a TrainJob runs the same pods under the same admitted Workload.
func (s *scene) goesOn(name string, pods []corev1.Pod, workload *unstructured.Unstructured) {
	s.Helper()
	now := s.workload(name)
	if now == nil || now.GetUID() != workload.GetUID() || s.workloadCondition(now, admitted).Status != "True" {
		s.Fatalf("Workload %s, want %s, admitted", s.text(now), workload.GetUID())
	}
	if got := s.pods(name); !reflect.DeepEqual(uids(got), uids(pods)) {
		s.Fatalf("other pods of TrainJob %s: %s", name, s.children(name))
	}
	if !s.get(name).Active() {
		s.Fatalf("TrainJob %s is suspended", name)
	}
}
