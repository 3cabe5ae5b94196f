package kueue

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LabelMaxExecution is on a job and says how many seconds it may be admitted, all admissions together.
const LabelMaxExecution = "kueue.x-k8s.io/max-exec-time-seconds"

// Conditions returns the conditions of the Workload; those that are of another shape are left out.
func Conditions(workload *unstructured.Unstructured) []metav1.Condition {
	var conditions []metav1.Condition
	for _, is := range list(child(workload.Object, "status"), "conditions") {
		text := func(key string) string {
			value, _ := is[key].(string)
			return value
		}
		at, err := time.Parse(time.RFC3339, text("lastTransitionTime"))
		if text("type") == "" || err != nil {
			continue
		}
		conditions = append(conditions, metav1.Condition{
			Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
			LastTransitionTime: metav1.NewTime(at),
		})
	}
	return conditions
}

// ClusterQueueOf names the ClusterQueue that has given quota to the Workload; "" for none.
func ClusterQueueOf(workload *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(workload.Object, "status", "admission", "clusterQueue")
	return name
}

// Execution returns how long the Workload may be admitted, all admissions together, zero for no
// limit; and when that is over, at which Kueue takes it out of its queue: the zero time while it is not
// admitted.
func Execution(workload *unstructured.Unstructured) (limit time.Duration, ends time.Time) {
	spec, status := child(workload.Object, "spec"), child(workload.Object, "status")
	limit = time.Duration(number(spec, "maximumExecutionTimeSeconds", 0)) * time.Second
	if limit <= 0 {
		return 0, time.Time{}
	}
	// v1beta1 spells it in its own way.
	past := number(status, "accumulatedPastExecutionTimeSeconds", number(status, "accumulatedPastExexcutionTimeSeconds", 0))
	for _, is := range Conditions(workload) {
		if is.Type == Admitted && is.Status == metav1.ConditionTrue {
			return limit, is.LastTransitionTime.Add(limit - time.Duration(past)*time.Second)
		}
	}
	return limit, time.Time{}
}
