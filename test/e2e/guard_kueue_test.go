package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// kueueErrors counts how often Kueue has failed on a TrainJob with this text.
func (s *scene) kueueErrors(name, text string) int {
	s.Helper()
	return len(s.logged(s.cluster.Kueue, `"Reconciler error"`, fmt.Sprintf(`"namespace":%q,"name":%q,`, s.namespace, name), text))
}

// nudge makes Kueue look at a TrainJob: it does not watch runtimes. Trainer may refuse every
// change of the TrainJob itself.
func (s *scene) nudge(name string) {
	s.Helper()
	if workload := s.workload(name); workload != nil {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"look":"%d"}}}`, time.Now().UnixMilli())
		s.must(client.IgnoreNotFound(s.patchAny(bare(workload), patch)))
	}
}

// twoJobs is a JobSet spec with a trainer and one more replicatedJob.
func twoJobs() string {
	node := jobSetOf(oldImage)
	return node[:len(node)-2] + "," + replicatedJob("more", "", "") + "]}"
}

// disrupted makes an edit of the runtime "train" that the guard denies, with the consent of an
// admin, and waits until Kueue knows of it.
func (s *scene) disrupted(patch string) {
	s.Helper()
	runtime := s.runtimeNamed("train")
	s.inUse(runtime)
	if err := s.alter(runtime, patch); err == nil {
		s.Fatal("it is not denied")
	}
	s.must(s.allowDisruption(runtime))
	s.editTrain(patch)
}

// Kueue fails on a TrainJob whose runtime is gone before it does anything else: the quota of a
// TrainJob that ends is not given back.
func TestGuardWhatFreezesKueue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	runtime := s.stored(s.object(namespaced, "train", twoJobs()))
	s.createOn(runtime, "first", queued(), oneCPU())
	s.comeTo("first", 2)
	s.running("first")
	s.inUse(runtime)
	if err := s.remove(runtime); err == nil {
		t.Fatal("it is not denied")
	}
	s.must(s.allowDisruption(runtime))
	s.must(s.remove(runtime))
	const gone = "runtime 'train' not found"
	s.eventually("an error of Kueue", func() (bool, string) {
		s.nudge("first")
		return s.kueueErrors("first", gone) > 0, s.children("first")
	})

	before := s.kueueErrors("first", gone)
	s.finish("first")
	s.becomes("first", trainer.ConditionComplete, "True/AllJobsCompleted")
	s.create("second", queued(), oneCPU())
	s.eventually("two more errors of Kueue", func() (bool, string) {
		s.nudge("first")
		return s.kueueErrors("first", gone) >= before+2, s.children("first")
	})
	if s.get("second").Active() {
		t.Fatal("the quota of the first is free: Kueue has no such trouble any more")
	}

	// It was the runtime: when it is as it was, all goes on.
	s.must(s.cluster.Client.Create(s.ctx, s.object(namespaced, "train", twoJobs())))
	s.eventually("the start of the second", func() (bool, string) {
		s.nudge("first")
		return s.get("second").Active(), s.children("first")
	})
	s.running("second")
}

// What runs goes on when replicatedJobs come or go, since Kueue is shown the seal; but it resumes
// a TrainJob by how many the runtime has, and gives it up for good when there are others.
func TestGuardWhatKueueCannotResume(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"one more":  `[{"op":"add","path":"/spec/template/spec/replicatedJobs/-","value":` + replicatedJob("third", "", "") + `}]`,
		"one fewer": `[{"op":"remove","path":"/spec/template/spec/replicatedJobs/1"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.runtime("train", twoJobs())
			s.createOn(s.runtimeNamed("train"), "job", queued(), oneCPU())
			s.comeTo("job", 2)
			pods, workload := s.running("job"), s.workload("job")
			s.disrupted(patch)
			s.lookedAt("job")
			s.goesOn("job", pods, workload)

			s.preempt("job", "urgent")
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("urgent")))
			s.workloadBecomes("job", finished, "True/FailedToStart")
			if s.get("job").Active() {
				t.Error("it is active: Kueue has no such trouble any more")
			}
		})
	}
}

// Kueue counts how many Jobs must be ready by the replicas in the runtime: when there are more of
// them, it takes a TrainJob that runs for one that is broken, and evicts it after a while.
func TestGuardWhatKueueTakesForBroken(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.runtime("train", twoJobs())
	s.createOn(s.runtimeNamed("train"), "job", queued(), oneCPU())
	s.comeTo("job", 2)
	pods := s.running("job")
	workload := s.workloadBecomes("job", podsReady, "True/Started")
	s.disrupted(`[{"op":"add","path":"/spec/template/spec/replicatedJobs/1/replicas","value":3}]`)
	s.eventually("pods that are not ready for Kueue", func() (bool, string) {
		s.nudge("job")
		now := s.workload("job")
		return s.workloadCondition(now, podsReady).Reason == "WaitForRecovery", s.text(now)
	})
	s.goesOn("job", pods, workload)
}
