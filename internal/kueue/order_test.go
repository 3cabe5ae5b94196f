package kueue

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/test/builder"
)

var queued = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// waiting is the Workload of a TrainJob that waits in the queue "team" since this many minutes.
func waiting(name string, minutes int, change func(*unstructured.Unstructured)) unstructured.Unstructured {
	job := builder.TrainJob("ns", name).Obj()
	workload := builder.Workload(job).Created(queued.Add(-time.Duration(minutes) * time.Minute)).Obj()
	set(workload, "team", "spec", "queueName")
	if change != nil {
		change(workload)
	}
	return *workload
}

func set(workload *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(workload.Object, value, path...); err != nil {
		panic(err)
	}
}

// condition adds a condition that is True since this many minutes.
func condition(kind, reason string, minutes int) func(*unstructured.Unstructured) {
	return func(workload *unstructured.Unstructured) {
		set(workload, []any{map[string]any{
			"type": kind, "status": "True", "reason": reason,
			"lastTransitionTime": queued.Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339),
		}}, "status", "conditions")
	}
}

func TestPositions(t *testing.T) {
	workloads := []unstructured.Unstructured{
		waiting("young", 1, nil),
		waiting("old", 60, nil),
		waiting("urgent", 2, func(w *unstructured.Unstructured) { set(w, int64(10), "spec", "priority") }),
		waiting("idle", 90, func(w *unstructured.Unstructured) { set(w, int64(-10), "spec", "priority") }),
		waiting("evicted", 120, condition(Evicted, "PodsReadyTimeout", 30)),
		waiting("preempted", 100, condition(Evicted, "Preempted", 5)),
		waiting("reclaimed", 110, condition("Preempted", "InCohortReclamation", 10)),
		waiting("admitted", 200, condition(QuotaReserved, "QuotaReserved", 100)),
		waiting("deactivated", 200, func(w *unstructured.Unstructured) { set(w, false, "spec", "active") }),
		waiting("finished", 200, condition(Finished, "JobFinished", 1)),
		waiting("elsewhere", 200, func(w *unstructured.Unstructured) { set(w, "other", "spec", "queueName") }),
		waiting("neighbour", 200, func(w *unstructured.Unstructured) { w.SetNamespace("other") }),
		waiting("going", 200, func(w *unstructured.Unstructured) {
			now := metav1.NewTime(queued)
			w.SetDeletionTimestamp(&now)
		}),
		waiting("unqueued", 200, func(w *unstructured.Unstructured) { set(w, "", "spec", "queueName") }),
	}
	positions := Positions(workloads)
	got := map[string]int{}
	for _, workload := range workloads {
		if position := positions[workload.GetUID()]; position > 0 {
			got[workload.GetOwnerReferences()[0].Name] = position
		}
	}
	want := map[string]int{
		"urgent": 1, "reclaimed": 2, "preempted": 3, "old": 4, "evicted": 5, "young": 6, "idle": 7,
		"elsewhere": 1, "neighbour": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

func TestWants(t *testing.T) {
	for name, tc := range map[string]struct {
		workload       unstructured.Unstructured
		pending, wants bool
	}{
		"new":                   {waiting("a", 1, nil), true, true},
		"with quota, no checks": {waiting("a", 1, condition(QuotaReserved, "QuotaReserved", 1)), false, true},
		"admitted": {waiting("a", 1, func(w *unstructured.Unstructured) {
			set(w, []any{
				map[string]any{"type": QuotaReserved, "status": "True"}, map[string]any{"type": Admitted, "status": "True"},
			}, "status", "conditions")
		}), false, true},
		"deactivated": {waiting("a", 1, func(w *unstructured.Unstructured) { set(w, false, "spec", "active") }), false, false},
		"finished":    {waiting("a", 1, condition(Finished, "Failed", 1)), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if pending, wants := Pending(&tc.workload), Wants(&tc.workload); pending != tc.pending || wants != tc.wants {
				t.Errorf("Pending is %t, Wants is %t; want %t, %t", pending, wants, tc.pending, tc.wants)
			}
		})
	}
}

func TestQueueOf(t *testing.T) {
	job := builder.TrainJob("ns", "a").Label(LabelQueue, "asked").Obj()
	own := waiting("a", 1, nil)
	if got := QueueOf(&own, job); got != "team" {
		t.Errorf("the queue of the Workload is %q", got)
	}
	if got := QueueOf(nil, job); got != "asked" {
		t.Errorf("without a Workload it is %q", got)
	}
	if got := QueueOf(nil, builder.TrainJob("ns", "b").Obj()); got != "" {
		t.Errorf("without both it is %q", got)
	}
}
