package e2e_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// What the conditions of a Workload say of its way.
const (
	admitted  = "Admitted"
	evicted   = "Evicted"
	requeued  = "Requeued"
	podsReady = "PodsReady"
	finished  = "Finished"
)

func kueueKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: kind}
}

// workload reads the Workload that Kueue made for a TrainJob; nil when there is none.
func (s *scene) workload(name string) *unstructured.Unstructured {
	s.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueueKind("WorkloadList"))
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

// workloadCondition returns a condition of a Workload, an empty one when there is none.
func (s *scene) workloadCondition(workload *unstructured.Unstructured, kind string) metav1.Condition {
	s.Helper()
	var view struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(workload.Object, &view))
	if c := meta.FindStatusCondition(view.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// workloadBecomes waits until a condition of the Workload of a TrainJob reads STATUS/REASON,
// and returns the Workload as it is then.
func (s *scene) workloadBecomes(name, kind, want string) *unstructured.Unstructured {
	s.Helper()
	var workload *unstructured.Unstructured
	s.eventually(fmt.Sprintf("%s=%s of the Workload of %s", kind, want, name), func() (bool, string) {
		if workload = s.workload(name); workload == nil {
			return false, "no Workload; " + s.children(name)
		}
		c := s.workloadCondition(workload, kind)
		return fmt.Sprintf("%s/%s", c.Status, c.Reason) == want, s.text(workload.Object["status"]) + s.children(name)
	})
	return workload
}

// admission waits until Kueue has resumed a TrainJob, and returns it as it is then.
func (s *scene) admission(name string) *trainer.TrainJob {
	s.Helper()
	var job *trainer.TrainJob
	s.eventually("the admission of TrainJob "+name, func() (bool, string) {
		job = s.get(name)
		return job.Active(), s.text(job.Status) + s.children(name)
	})
	return job
}

// activate sets spec.active of the Workload of a TrainJob, by which people take a TrainJob
// out of its queue and put it back.
func (s *scene) activate(name string, active bool) {
	s.Helper()
	workload := s.workload(name)
	if workload == nil {
		s.Fatalf("TrainJob %s has no Workload", name)
	}
	s.must(s.patchAny(bare(workload), fmt.Sprintf(`{"spec":{"active":%t}}`, active)))
}

// priority makes a WorkloadPriorityClass of this value, which goes with the test, and gives
// it to a TrainJob. Without one the value is 0.
func (s *scene) priority(value int64) change {
	s.Helper()
	class := &unstructured.Unstructured{Object: map[string]any{"value": value}}
	class.SetGroupVersionKind(kueueKind("WorkloadPriorityClass"))
	class.SetName(fmt.Sprintf("%s-%d", s.namespace, value))
	s.must(s.cluster.Client.Create(s.ctx, class))
	s.Cleanup(func() {
		s := s.afterwards()
		_ = s.cluster.Client.Delete(s.ctx, bare(class))
	})
	return labelled("kueue.x-k8s.io/priority-class", class.GetName())
}

// preempt creates a TrainJob of higher priority than 0 that takes one CPU of the full queue
// "queue" from the only other one, waits until Kueue has suspended that and the new one runs,
// and returns the other's Workload as it is then. When the new one ends, or goes, the other is
// admitted again.
func (s *scene) preempt(victim, name string, changes ...change) *unstructured.Unstructured {
	s.Helper()
	s.create(name, append([]change{queued(), oneCPU(), s.priority(100)}, changes...)...)
	workload := s.workloadBecomes(victim, requeued, "True/Preempted")
	s.running(name)
	if job := s.get(victim); job.Active() {
		s.Fatalf("TrainJob %s is preempted and active: %s", victim, s.text(workload))
	}
	return workload
}

// queueUse is what the ClusterQueue of the scene's queue says of itself.
type queueUse struct {
	// Reserved and Used are the CPUs that Workloads have in reserve, and of those the ones
	// that admitted Workloads have.
	Reserved, Used               string
	Pending, Reserving, Admitted int64
}

// use reads how much of the scene's queue is in use.
func (s *scene) use() queueUse {
	s.Helper()
	queue := &unstructured.Unstructured{}
	queue.SetGroupVersionKind(kueueKind("ClusterQueue"))
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: s.namespace + "-queue"}, queue))
	type usage []struct {
		Resources []struct {
			Name  string `json:"name"`
			Total string `json:"total"`
		} `json:"resources"`
	}
	var view struct {
		Status struct {
			FlavorsReservation usage `json:"flavorsReservation"`
			FlavorsUsage       usage `json:"flavorsUsage"`
			PendingWorkloads   int64 `json:"pendingWorkloads"`
			ReservingWorkloads int64 `json:"reservingWorkloads"`
			AdmittedWorkloads  int64 `json:"admittedWorkloads"`
		} `json:"status"`
	}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(queue.Object, &view))
	cpu := func(flavors usage) string {
		for _, flavor := range flavors {
			for _, resource := range flavor.Resources {
				if resource.Name == "cpu" {
					return resource.Total
				}
			}
		}
		return ""
	}
	return queueUse{
		Reserved: cpu(view.Status.FlavorsReservation), Used: cpu(view.Status.FlavorsUsage),
		Pending: view.Status.PendingWorkloads, Reserving: view.Status.ReservingWorkloads, Admitted: view.Status.AdmittedWorkloads,
	}
}

// useBecomes waits until this much of the scene's queue is in use.
func (s *scene) useBecomes(want queueUse) {
	s.Helper()
	s.eventually("the use of the queue "+s.text(want), func() (bool, string) {
		is := s.use()
		return is == want, s.text(is)
	})
}
