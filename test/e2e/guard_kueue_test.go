package e2e_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// workload reads the Workload that Kueue made for a TrainJob; nil when there is none.
func (s *scene) workload(name string) *unstructured.Unstructured {
	s.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "WorkloadList"})
	s.must(s.cluster.Client.List(s.ctx, list, client.InNamespace(s.namespace)))
	job := s.get(name)
	for i := range list.Items {
		for _, owner := range list.Items[i].GetOwnerReferences() {
			if owner.UID == job.UID {
				return &list.Items[i]
			}
		}
	}
	return nil
}

// twoJobs is a JobSet spec with a trainer and one more replicatedJob.
func twoJobs() string {
	node := jobSetOf(oldImage)
	return node[:len(node)-2] + "," + replicatedJob("more", "", "") + "]}"
}

// Kueue fails on a TrainJob whose runtime, or a replicatedJob of it, is gone, before it does
// anything else: the quota of a TrainJob that ends is not given back.
func TestGuardWhatFreezesKueue(t *testing.T) {
	t.Parallel()
	const invalid = `Workload.kueue.x-k8s.io \"first\" is invalid: [spec.podSets[`
	for name, tc := range map[string]struct {
		disrupt func(*scene, client.Object) error
		// error is what Kueue then says.
		error string
	}{
		"the runtime is deleted": {
			func(s *scene, runtime client.Object) error { return s.remove(runtime) }, "runtime 'train' not found",
		},
		"a replicatedJob is renamed": {
			func(s *scene, runtime client.Object) error {
				return s.alter(runtime, `[{"op":"replace","path":"/spec/template/spec/replicatedJobs/1/name","value":"other"}]`)
			}, invalid,
		},
		"a replicatedJob is removed": {
			func(s *scene, runtime client.Object) error {
				return s.alter(runtime, `[{"op":"remove","path":"/spec/template/spec/replicatedJobs/1"}]`)
			}, invalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			runtime := s.stored(s.object(namespaced, "train", twoJobs()))
			s.createOn(runtime, "first", queued(), oneCPU())
			s.running("first")
			s.inUse(runtime)
			if err := tc.disrupt(s, runtime); err == nil {
				t.Fatal("it is not denied")
			}
			s.must(s.allowDisruption(runtime))
			s.must(tc.disrupt(s, runtime))
			s.eventually("an error of Kueue", func() (bool, string) {
				s.nudge("first")
				all := s.logged(s.cluster.Kueue, `"level":"error"`, s.namespace)
				return s.kueueErrors("first", tc.error) > 0, fmt.Sprintf("%s, and in all %d, %.600s", s.children("first"), len(all), bytes.Join(all[max(0, len(all)-2):], nil))
			})

			before := s.kueueErrors("first", tc.error)
			s.finish("first")
			s.becomes("first", trainer.ConditionComplete, "True/AllJobsCompleted")
			s.create("second", queued(), oneCPU())
			s.eventually("two more errors of Kueue", func() (bool, string) {
				s.nudge("first")
				return s.kueueErrors("first", tc.error) >= before+2, s.children("first")
			})
			if s.get("second").Active() {
				t.Fatal("the quota of the first is free: Kueue has no such trouble any more")
			}

			// It was the runtime: when it is as it was, all goes on.
			if tc.error == invalid {
				s.must(s.allowDisruption(runtime))
				s.must(s.reshape(runtime, twoJobs()))
			} else {
				s.must(s.cluster.Client.Create(s.ctx, s.object(namespaced, "train", twoJobs())))
			}
			s.eventually("the start of the second", func() (bool, string) {
				s.nudge("first")
				return s.get("second").Active(), s.children("first")
			})
			s.running("second")
		})
	}
}

// When a replicatedJob comes, Kueue suspends the TrainJob, admits it again, and has it patch
// what it does not have: it holds its quota and never runs again.
func TestGuardWhatStopsAQueuedTrainJob(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	runtime := s.stored(s.object(namespaced, "train", jobSetOf(oldImage)))
	s.createOn(runtime, "first", queued(), oneCPU())
	s.running("first")
	s.inUse(runtime)
	add := `[{"op":"add","path":"/spec/template/spec/replicatedJobs/-","value":` + replicatedJob("more", "", "") + `}]`
	if err := s.alter(runtime, add); err == nil {
		t.Fatal("it is not denied")
	}
	s.must(s.allowDisruption(runtime))
	s.must(s.alter(runtime, add))
	s.eventually("a failure to start", func() (bool, string) {
		s.nudge("first")
		events := s.warnings("first")
		return len(s.logged(s.cluster.Trainer, s.namespace, `JobSet.jobset.x-k8s.io \"first\" is invalid`, "containers: Required value")) > 0, events + s.children("first")
	})
	s.noPods("first")
	s.create("second", queued(), oneCPU())
	if s.get("first").Active() && s.get("second").Active() {
		t.Error("both have quota for one")
	}
}

// When replicas change, Kueue restarts the TrainJob and counts pods that do not run.
func TestGuardWhatKueueCountsWrong(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	runtime := s.stored(s.object(namespaced, "train", twoJobs()))
	s.createOn(runtime, "first", queued(), oneCPU())
	before := s.running("first")
	s.inUse(runtime)
	more := `[{"op":"add","path":"/spec/template/spec/replicatedJobs/1/replicas","value":3}]`
	if err := s.alter(runtime, more); err == nil {
		t.Fatal("it is not denied")
	}
	s.must(s.allowDisruption(runtime))
	s.must(s.alter(runtime, more))
	s.eventually("other pods", func() (bool, string) {
		s.nudge("first")
		pods := s.pods("first")
		for _, pod := range pods {
			if pod.UID == before[0].UID || pod.UID == before[1].UID || pod.Status.Phase != "Running" {
				return false, s.children("first")
			}
		}
		return len(pods) > 0, s.children("first")
	})
	workload := s.workload("first")
	if workload == nil {
		t.Fatal("there is no Workload")
	}
	podSets, _, err := unstructured.NestedSlice(workload.Object, "spec", "podSets")
	s.must(err)
	counted := int64(0)
	for _, podSet := range podSets {
		count, _, _ := unstructured.NestedInt64(podSet.(map[string]any), "count")
		counted += count
	}
	if pods := s.pods("first"); len(pods) != 2 || counted != 4 {
		t.Errorf("%d pods run, Kueue counts %d: it has no such fault any more", len(pods), counted)
	}
}
