package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alterTrain changes the TrainingRuntime "train".
func (s *scene) alterTrain(image, cpu string) {
	s.Helper()
	s.must(s.reshape(s.runtimeNamed("train"), asking(image, cpu)))
}

// agrees waits until a TrainJob runs this image on this much CPU, and checks that the seal, its
// Workload and the use of the queue say the same.
func (s *scene) agrees(name, image, cpu string) {
	s.Helper()
	s.comesToRun(name, image)
	s.useBecomes(queueUse{Reserved: cpu, Used: cpu, Reserving: 1, Admitted: 1})
	s.lookedAt(name)
	if askedImage, askedCPU, count := s.asked(name); askedImage != image || askedCPU != cpu || count != 1 {
		s.Errorf("admitted for %d pods of %s with %s CPU", count, askedImage, askedCPU)
	}
	if sealed := s.imageIn(s.sealed(s.get(name))); sealed != image {
		s.Errorf("sealed on %s", sealed)
	}
	for _, pod := range s.runs(name, image) {
		if got := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); got != cpu {
			s.Errorf("Pod %s asks for %s CPU", pod.Name, got)
		}
	}
}

// What is edited while a TrainJob waits for room is what it is admitted for, and runs.
func TestKueueAdmitsWhatIsEditedInTheQueue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "2"))
	two := set(map[string]any{"requests": map[string]any{"cpu": "2"}}, "spec", "trainer", "resourcesPerNode")
	s.create("first", queued(), two)
	s.running("first")
	s.runtime("train", asking(oldImage, "1"))
	s.queuedOn("job")
	s.eventually("a Workload of one CPU", func() (bool, string) {
		image, cpu, count := s.asked("job")
		return image == oldImage && cpu == "1" && count == 1, image + " " + cpu
	})
	// Kueue is not told of it.
	s.alterTrain(newImage, "2")
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("first")))
	s.admission("job")
	s.agrees("job", newImage, "2")
	// It stays at that.
	s.alterTrain(oldImage, "500m")
	s.lookedAt("job")
	s.agrees("job", newImage, "2")
}

// Whoever may edit a runtime gets nothing admitted for less than it runs with: not by an edit
// while it is in the queue, not after a start of their own, with which it is sealed.
func TestKueueAdmitsForNoLessThanRuns(t *testing.T) {
	t.Parallel()
	for name, less := range map[string]string{"edited once more": "500m", "as at first": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "4"))
			four := set(map[string]any{"requests": map[string]any{"cpu": "4"}}, "spec", "trainer", "resourcesPerNode")
			s.create("first", queued(), four)
			s.running("first")
			s.runtime("train", asking(oldImage, "1"))
			s.queuedOn("job")
			s.eventually("its Workload", func() (bool, string) { return s.workload("job") != nil, "none" })
			s.alterTrain(newImage, "3")
			// The user starts it. Kueue stops it, since it is not admitted.
			s.resume("job")
			s.eventually("its suspension by Kueue", func() (bool, string) {
				job := s.get("job")
				return !job.Active(), s.text(job)
			})
			if image := s.imageIn(s.sealed(s.get("job"))); image != newImage {
				t.Fatalf("sealed on %s", image)
			}
			s.alterTrain(oldImage, less)
			s.eventually("a Workload of what is sealed", func() (bool, string) {
				s.nudge("job")
				image, cpu, count := s.asked("job")
				return image == newImage && cpu == "3" && count == 1, fmt.Sprintf("%s %s %d, %s", image, cpu, count, s.children("job"))
			})
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("first")))
			s.admission("job")
			s.agrees("job", newImage, "3")
		})
	}
}

// A user may still change what of the pods may change while a TrainJob waits, and Kueue sees it
// as it does without an edit.
func TestKueueSeesAUsersTolerations(t *testing.T) {
	t.Parallel()
	for edited, patch := range map[string]string{"as it was": "", "edited": muchMore} {
		t.Run(edited, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.runtime("train", asking(oldImage, "1"))
			s.queuedOn("job")
			s.runs("job", oldImage)
			s.preempt("job", "urgent")
			if patch != "" {
				s.editTrain(patch)
			}
			tolerate := fmt.Sprintf(`[{"op":"add","path":"/spec/runtimePatches/-","value":{"manager":"example.com/user","trainingRuntimeSpec":{"template":{"spec":{
				"replicatedJobs":[{"name":"node","template":{"spec":{"template":{"spec":{"tolerations":[{"key":%q,"operator":"Exists"}]}}}}}]}}}}}]`, s.namespace)
			s.must(s.cluster.Client.Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.JSONPatchType, []byte(tolerate))))
			s.eventually("the toleration in the Workload", func() (bool, string) {
				s.nudge("job")
				podSets := s.text(s.podSets("job"))
				return s.podSets("job") != nil && strings.Contains(podSets, `"tolerations":[{"key":"`+s.namespace+`","operator":"Exists"}]`), podSets
			})
			if image, cpu, count := s.asked("job"); image != oldImage || cpu != "1" || count != 1 {
				t.Errorf("counted as %d pods of %s with %s CPU", count, image, cpu)
			}
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("urgent")))
			s.admission("job")
			s.agrees("job", oldImage, "1")
			for _, pod := range s.pods("job") {
				if !strings.Contains(s.text(pod.Spec.Tolerations), s.namespace) {
					t.Errorf("Pod %s tolerates %v", pod.Name, pod.Spec.Tolerations)
				}
			}
		})
	}
}
