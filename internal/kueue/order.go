package kueue

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Group is the API group of Kueue.
const Group = "kueue.x-k8s.io"

// LabelQueue is on a job and names the LocalQueue in which it waits.
const LabelQueue = "kueue.x-k8s.io/queue-name"

// Finished is the condition of a Workload that tells that its job has ended.
const Finished = "Finished"

// Reasons for which Kueue counts the time of a Workload in its queue anew.
const (
	evictedByPodsReady = "PodsReadyTimeout"
	evictedByCheck     = "AdmissionCheck"
)

// OrderFields are the paths of the fields of a Workload, beside its metadata, that this file reads.
func OrderFields() [][]string {
	return [][]string{{"spec", "queueName"}, {"spec", "priority"}, {"spec", "active"}, {"status", "conditions"}}
}

// QueueOf names the LocalQueue of the TrainJob: that of its Workload, nil for none, else the one
// that its label asks for; "" for none.
func QueueOf(workload *unstructured.Unstructured, job *trainer.TrainJob) string {
	if workload != nil {
		if name, _, _ := unstructured.NestedString(workload.Object, "spec", "queueName"); name != "" {
			return name
		}
	}
	return job.Labels[LabelQueue]
}

// Deactivated tells whether the Workload is out of its queue until somebody activates it again.
func Deactivated(workload *unstructured.Unstructured) bool {
	active, found, _ := unstructured.NestedBool(workload.Object, "spec", "active")
	return found && !active
}

// Pending tells whether the Workload waits in its queue for room.
func Pending(workload *unstructured.Unstructured) bool {
	return Wants(workload) && !Is(workload, QuotaReserved)
}

// Wants tells whether Kueue has the Workload on its way to run, or run already: it is neither finished,
// nor deactivated, nor being deleted. A TrainJob of such a one that is suspended is queued.
func Wants(workload *unstructured.Unstructured) bool {
	return workload.GetDeletionTimestamp() == nil && !Deactivated(workload) && !Is(workload, Finished)
}

// Positions returns the place of each pending Workload among those of its LocalQueue, from 1 on, by
// its UID: by priority, then by how long it has waited, as Kueue orders them by default. It is exact
// only if all Workloads of the namespace are among those given. Kueue may admit another first that
// fits where the first does not.
func Positions(workloads []unstructured.Unstructured) map[types.UID]int {
	queues := map[types.NamespacedName][]*unstructured.Unstructured{}
	for i := range workloads {
		workload := &workloads[i]
		name, _, _ := unstructured.NestedString(workload.Object, "spec", "queueName")
		if name != "" && Pending(workload) {
			key := types.NamespacedName{Namespace: workload.GetNamespace(), Name: name}
			queues[key] = append(queues[key], workload)
		}
	}
	positions := map[types.UID]int{}
	for _, queue := range queues {
		slices.SortFunc(queue, compare)
		for i, workload := range queue {
			positions[workload.GetUID()] = i + 1
		}
	}
	return positions
}

// compare orders Workloads of one queue, the next one first.
func compare(a, b *unstructured.Unstructured) int {
	return cmp.Or(
		cmp.Compare(priority(b), priority(a)),
		queuedSince(a).Compare(queuedSince(b)),
		cmp.Compare(a.GetUID(), b.GetUID()),
	)
}

func priority(workload *unstructured.Unstructured) int64 {
	return number(child(workload.Object, "spec"), "priority", 0)
}

// queuedSince is since when the Workload has waited, as Kueue reckons: from its creation, or from when
// it was put back for a reason that has it wait behind others.
func queuedSince(workload *unstructured.Unstructured) time.Time {
	for _, is := range list(child(workload.Object, "status"), "conditions") {
		reason := is["reason"]
		back := is["type"] == Evicted && (reason == evictedByPodsReady || reason == evictedByCheck)
		if !back || is["status"] != "True" {
			continue
		}
		text, _ := is["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at
		}
	}
	return workload.GetCreationTimestamp().Time
}
