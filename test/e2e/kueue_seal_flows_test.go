package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// muchMore is an edit by which there would be no room for what runs.
const muchMore = `[{"op":"replace","path":"` + containerOfNode + `/image","value":"` + newImage + `"},
	{"op":"replace","path":"` + containerOfNode + `/resources/requests/cpu","value":"2"},
	{"op":"replace","path":"/spec/mlPolicy/numNodes","value":3}]`

// inUseByJob is what the queue of one CPU says while TrainJob "job" has it.
var inUseByJob = queueUse{Reserved: "1", Used: "1", Reserving: 1, Admitted: 1}

// Whatever Kueue does with a TrainJob, it does the same when the runtime was edited meanwhile.
func TestKueueWithAnEditedRuntime(t *testing.T) {
	t.Parallel()
	for name, flow := range map[string]struct {
		changes []change
		play    func(s *scene, pods []corev1.Pod, workload *unstructured.Unstructured)
	}{
		"preempted":            {play: preemptedAndBack},
		"deactivated":          {play: deactivatedAndBack},
		"suspended by a user":  {play: suspendedByAUser},
		"another priority":     {play: reprioritized},
		"completed":            {play: completed},
		"past its deadline":    {changes: []change{deadlineAnnotation(45)}, play: pastItsDeadline},
		"deleted":              {play: deletedWhileItRuns},
		"without its Workload": {play: workloadDeleted},
	} {
		for edited, patch := range map[string]string{"as it was": "", "edited": muchMore} {
			t.Run(name+", "+edited, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
				s.runtime("train", asking(oldImage, "1"))
				s.queuedOn("job", append(flow.changes, s.priority(10))...)
				pods, workload := s.runs("job", oldImage), s.workload("job")
				if patch != "" {
					s.editTrain(patch)
				}
				s.useBecomes(inUseByJob)
				flow.play(s, pods, workload)
			})
		}
	}
}

// runsAsBefore waits until the TrainJob runs again, and checks that it does so on what it ran
// before, admitted for that.
func (s *scene) runsAsBefore(workload *unstructured.Unstructured) {
	s.Helper()
	s.admission("job")
	s.comesToRun("job", oldImage)
	s.useBecomes(inUseByJob)
	s.lookedAt("job")
	if image, cpu, count := s.asked("job"); image != oldImage || cpu != "1" || count != 1 {
		s.Errorf("admitted for %d pods of %s with %s CPU", count, image, cpu)
	}
	if now := s.workload("job"); workload != nil && now.GetUID() != workload.GetUID() {
		s.Errorf("it has another Workload: %s", s.text(now))
	}
	for _, pod := range s.runs("job", oldImage) {
		if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "1" {
			s.Errorf("Pod %s asks for %s CPU", pod.Name, cpu)
		}
	}
}

func preemptedAndBack(s *scene, _ []corev1.Pod, workload *unstructured.Unstructured) {
	s.preempt("job", "urgent")
	s.noPods("job")
	s.lookedAt("job")
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("urgent")))
	s.runsAsBefore(workload)
}

func deactivatedAndBack(s *scene, _ []corev1.Pod, workload *unstructured.Unstructured) {
	s.activate("job", false)
	s.workloadBecomes("job", requeued, "False/Deactivated")
	s.useBecomes(queueUse{Reserved: "0", Used: "0"})
	s.noPods("job")
	s.lookedAt("job")
	if s.get("job").Active() {
		s.Error("it is active")
	}
	if now := s.workload("job"); now.GetUID() != workload.GetUID() || s.workloadCondition(now, admitted).Status == metav1.ConditionTrue {
		s.Errorf("Workload %s", s.text(now))
	}
	s.activate("job", true)
	s.runsAsBefore(workload)
}

// Kueue resumes at once what it has admitted.
func suspendedByAUser(s *scene, _ []corev1.Pod, workload *unstructured.Unstructured) {
	before := s.stamp(s.get("job"))
	s.suspend("job")
	s.eventually("a later start", func() (bool, string) {
		job := s.get("job")
		return job.Active() && s.stamp(job).After(before), s.text(job) + s.children("job")
	})
	s.runsAsBefore(workload)
}

func reprioritized(s *scene, pods []corev1.Pod, workload *unstructured.Unstructured) {
	class := s.trainJob("job", s.priority(20)).GetLabels()["kueue.x-k8s.io/priority-class"]
	s.patch("job", fmt.Sprintf(`{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":%q}}}`, class))
	s.eventually("the priority of the Workload", func() (bool, string) {
		now := s.workload("job")
		value, _, _ := unstructured.NestedInt64(now.Object, "spec", "priority")
		return value == 20, s.text(now)
	})
	s.goesOn("job", pods, workload)
}

func completed(s *scene, _ []corev1.Pod, workload *unstructured.Unstructured) {
	s.finish("job")
	s.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
	s.ends(workload, "True/Succeeded")
}

func pastItsDeadline(s *scene, _ []corev1.Pod, workload *unstructured.Unstructured) {
	s.failsAt("job", s.stamp(s.get("job")).Add(45*time.Second))
	s.ends(workload, "True/Failed")
}

// ends waits until Kueue has seen the end of the TrainJob and its quota is free.
func (s *scene) ends(workload *unstructured.Unstructured, want string) {
	s.Helper()
	if now := s.workloadBecomes("job", finished, want); now.GetUID() != workload.GetUID() {
		s.Errorf("it has another Workload: %s", s.text(now))
	}
	s.useBecomes(queueUse{Reserved: "0", Used: "0"})
}

func deletedWhileItRuns(s *scene, _ []corev1.Pod, workload *unstructured.Unstructured) {
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
	s.eventually("the end of the Workload", func() (bool, string) {
		now := bare(workload)
		err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(workload), now)
		return apierrors.IsNotFound(err), s.text(now)
	})
	s.useBecomes(queueUse{Reserved: "0", Used: "0"})
}

// A TrainJob that has lost its Workload is suspended and queued for what it will run.
func workloadDeleted(s *scene, _ []corev1.Pod, workload *unstructured.Unstructured) {
	s.must(s.cluster.Client.Delete(s.ctx, bare(workload)))
	s.eventually("another Workload", func() (bool, string) {
		now := s.workload("job")
		return now != nil && now.GetUID() != workload.GetUID(), s.text(now)
	})
	s.runsAsBefore(nil)
	// What is admitted stays when the runtime is as it was.
	pods, workload := s.pods("job"), s.workload("job")
	s.must(s.reshape(s.runtimeNamed("train"), asking(oldImage, "1")))
	s.must(s.patchAny(s.runtimeNamed("train"), `{"spec":{"mlPolicy":{"numNodes":1}}}`))
	s.lookedAt("job")
	s.goesOn("job", pods, workload)
}

// Kueue gives the pods of a TrainJob a minute here to get ready. That counts also when the
// runtime is edited in this time, and is enough for those that are in time.
func TestKueueWaitsForPodsWithAnEditedRuntime(t *testing.T) {
	t.Parallel()
	for _, ready := range []bool{true, false} {
		t.Run(fmt.Sprintf("ready %t", ready), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.runtime("train", asking(oldImage, "1"))
			node := "example.com/on-" + s.namespace
			s.queuedOn("job", onNodes(node))
			start := s.stamp(s.admission("job"))
			workload := s.workloadBecomes("job", podsReady, "False/WaitForStart")
			s.editTrain(muchMore)
			if ready {
				s.labelNode(node)
				workload := s.workloadBecomes("job", podsReady, "True/Started")
				s.lookedAt("job")
				s.goesOn("job", s.runs("job", oldImage), workload)
				return
			}
			s.holds("job", start.Add(55*time.Second))
			s.eventually("the eviction of the Workload", func() (bool, string) {
				now := s.workload("job")
				if now == nil {
					return false, "there is none"
				}
				// How often it was put back stays, when it has long been admitted again.
				count, _, _ := unstructured.NestedInt64(now.Object, "status", "requeueState", "count")
				return count > 0, s.text(now)
			})
			// It is admitted again, for the same, when its turn comes.
			s.labelNode(node)
			s.runsAsBefore(workload)
		})
	}
}

// Kueue takes the resources of a TrainJob in the place of its runtime's, where Trainer adds them:
// it counts less than runs. That is no reason to stop what it has admitted.
func TestKueueCountsResourcesInItsOwnWay(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	const limits = `"resources":{"limits":{"nvidia.com/gpu":"2"}}`
	spec := func(image string) string {
		return strings.Replace(jobSetOf(image), `"name":"node","image"`, limits+`,"name":"node","image"`, 1)
	}
	s.runtime("train", spec(oldImage))
	s.createOn(s.runtimeNamed("train"), "job", queued(), oneCPU())
	pods, workload := s.runs("job", oldImage), s.workload("job")
	if got := pods[0].Spec.Containers[0].Resources; got.Limits["nvidia.com/gpu"] != resource.MustParse("2") || got.Requests.Cpu().String() != "1" {
		t.Errorf("the pod has %v", got)
	}
	if podSets := s.text(s.podSets("job")); strings.Contains(podSets, "nvidia.com/gpu") {
		t.Errorf("Kueue counts as Trainer does: %s", podSets)
	}
	for _, image := range []string{newImage, oldImage} {
		s.editTrain(`[{"op":"replace","path":"` + containerOfNode + `/image","value":"` + image + `"}]`)
		s.lookedAt("job")
		s.goesOn("job", pods, workload)
	}
	// Also when what the runtime has now does not tell how Kueue counts.
	s.editTrain(`[{"op":"remove","path":"` + containerOfNode + `/resources"}]`)
	s.preempt("job", "urgent")
	s.lookedAt("job")
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("urgent")))
	s.admission("job")
	s.comesToRun("job", oldImage)
	s.lookedAt("job")
	if now := s.workload("job"); now == nil || now.GetUID() != workload.GetUID() || strings.Contains(s.text(s.podSets("job")), "nvidia.com/gpu") {
		t.Errorf("admitted for other pods: %s", s.text(now))
	}
}
