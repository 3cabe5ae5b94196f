package e2e_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Where Kueue looks at a runtime without asking by a dry run, it sees the live one. These tests
// hold what an edit does there; see docs/kueue.md.

// twoPods is a JobSet spec of a trainer and of a Job with this many pods.
func twoPods(pods int) string {
	node := jobSetOf(oldImage)
	return node[:len(node)-2] + "," + replicatedJob("more", fmt.Sprintf(`"parallelism":%d,"completions":%d,`, pods, pods), "") + "]}"
}

// reclaimed is how many pods of "more" Kueue has taken the quota back of.
func (s *scene) reclaimed(name string) int64 {
	s.Helper()
	list, _, err := unstructured.NestedSlice(s.workload(name).Object, "status", "reclaimablePods")
	s.must(err)
	for _, entry := range list {
		if entry := entry.(map[string]any); entry["name"] == "more" {
			return entry["count"].(int64)
		}
	}
	return 0
}

// finishMore ends the pods of "more" well.
func (s *scene) finishMore(name string) {
	s.Helper()
	for _, pod := range s.running(name) {
		if pod.Labels["jobset.sigs.k8s.io/replicatedjob-name"] == "more" {
			s.must(s.succeed(pod))
		}
	}
}

// Kueue gives quota back for the pods of a replicatedJob that is done, as many as the runtime
// says that a Job has, and no more than the TrainJob has.
func TestKueueReclaimsByTheRuntime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit string
		want int64
	}{
		"as it was":  {want: 2},
		"an image":   {`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/1/template/spec/template/spec/containers/0/image","value":"` + newImage + `"}]`, 2},
		"more pods":  {`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/1/template/spec/parallelism","value":3},{"op":"replace","path":"/spec/template/spec/replicatedJobs/1/template/spec/completions","value":3}]`, 2},
		"fewer pods": {`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/1/template/spec/parallelism","value":1}]`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.runtime("train", twoPods(2))
			s.createOn(s.runtimeNamed("train"), "job", queued(), oneCPU())
			s.comeTo("job", 3)
			s.running("job")
			if tc.edit != "" {
				s.editTrain(tc.edit)
			}
			s.finishMore("job")
			s.eventually("reclaimed quota", func() (bool, string) { return s.reclaimed("job") == tc.want, s.text(s.workload("job")) })
			s.lookedAt("job")
			if got := s.reclaimed("job"); got != tc.want {
				t.Errorf("%d pods reclaimed, want %d", got, tc.want)
			}
			if !s.get("job").Active() {
				t.Error("it is suspended")
			}
		})
	}
}

// What is given back cannot be taken again: a runtime with fewer pods in a Job that is done keeps
// Kueue from all it does with an unfinished TrainJob, until the runtime has as many again.
func TestKueueStuckOnFewerPodsThanReclaimed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.runtime("train", twoPods(2))
	s.createOn(s.runtimeNamed("train"), "job", queued(), oneCPU())
	s.comeTo("job", 3)
	s.running("job")
	s.finishMore("job")
	s.eventually("reclaimed quota", func() (bool, string) { return s.reclaimed("job") == 2, s.text(s.workload("job")) })
	s.editTrain(`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/1/template/spec/parallelism","value":1}]`)
	s.eventually("an error of Kueue", func() (bool, string) {
		s.nudge("job")
		return s.kueueErrors("job", "reclaimablePods") > 0, s.text(s.workload("job"))
	})
	before := s.kueueErrors("job", "reclaimablePods")
	s.activate("job", false)
	s.eventually("two more errors of Kueue", func() (bool, string) {
		s.nudge("job")
		return s.kueueErrors("job", "reclaimablePods") >= before+2, s.text(s.workload("job"))
	})
	if !s.get("job").Active() {
		t.Error("it is suspended: Kueue has no such trouble any more")
	}
	s.must(s.reshape(s.runtimeNamed("train"), twoPods(2)))
	s.eventually("the suspension", func() (bool, string) {
		s.nudge("job")
		return !s.get("job").Active(), s.text(s.workload("job"))
	})
}

// Kueue's webhook checks what the runtime says of topology with every write of a TrainJob: what
// it finds wrong there keeps the TrainJob from being changed, suspended or resumed.
func TestKueueRefusesByTheRuntimesTopology(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.runtime("train", asking(oldImage, "1"))
	s.queuedOn("job")
	pods, workload := s.runs("job", oldImage), s.workload("job")
	s.must(s.alter(s.runtimeNamed("train"), `[{"op":"add","path":"`+podOfNode[:len(podOfNode)-len("/spec")]+`/metadata","value":{"annotations":{
		"kueue.x-k8s.io/podset-required-topology":"a","kueue.x-k8s.io/podset-preferred-topology":"b"}}}]`))
	s.eventually("a refusal", func() (bool, string) {
		err := s.patchAny(s.trainJob("job"), fmt.Sprintf(`{"metadata":{"labels":{"look":%q}}}`, s.namespace))
		return err != nil, fmt.Sprint(err)
	})
	s.goesOn("job", pods, workload)
	s.must(s.reshape(s.runtimeNamed("train"), asking(oldImage, "1")))
	s.eventually("its acceptance", func() (bool, string) {
		err := s.patchAny(s.trainJob("job"), `{"metadata":{"labels":{"look":"again"}}}`)
		return err == nil, fmt.Sprint(err)
	})
	s.lookedAt("job")
	s.goesOn("job", pods, workload)
}
