package kueue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestConditions(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	workload := builder.Workload(builder.TrainJob("ns", "job").Obj()).Condition(kueue.Admitted, metav1.ConditionTrue, at).Obj()
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	conditions = append(conditions, "text", map[string]any{"type": "Untimed"}, map[string]any{"lastTransitionTime": "2026-03-01T12:00:00Z"})
	if err := unstructured.SetNestedSlice(workload.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	want := []metav1.Condition{{
		Type: kueue.Admitted, Status: metav1.ConditionTrue, Reason: kueue.Admitted, Message: "as Kueue says", LastTransitionTime: metav1.NewTime(at),
	}}
	if diff := cmp.Diff(want, kueue.Conditions(workload)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestExecution(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		limit    any
		past     string // the field that says how much was used
		admitted metav1.ConditionStatus
		want     time.Duration
		wantEnd  time.Time
	}{
		"no limit":            {admitted: metav1.ConditionTrue},
		"of no use":           {limit: int64(-1), admitted: metav1.ConditionTrue},
		"not admitted":        {limit: int64(60), want: time.Minute},
		"not admitted again":  {limit: int64(60), admitted: metav1.ConditionFalse, want: time.Minute},
		"admitted":            {limit: int64(60), admitted: metav1.ConditionTrue, want: time.Minute, wantEnd: at.Add(time.Minute)},
		"admitted once more":  {limit: int64(60), past: "accumulatedPastExecutionTimeSeconds", admitted: metav1.ConditionTrue, want: time.Minute, wantEnd: at.Add(50 * time.Second)},
		"the same of v1beta1": {limit: int64(60), past: "accumulatedPastExexcutionTimeSeconds", admitted: metav1.ConditionTrue, want: time.Minute, wantEnd: at.Add(50 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := builder.Workload(builder.TrainJob("ns", "job").Obj())
			if tc.admitted != "" {
				b.Condition(kueue.Admitted, tc.admitted, at)
			}
			workload := b.Obj()
			set := func(value any, path ...string) {
				if err := unstructured.SetNestedField(workload.Object, value, path...); err != nil {
					t.Fatal(err)
				}
			}
			if tc.limit != nil {
				set(tc.limit, "spec", "maximumExecutionTimeSeconds")
			}
			if tc.past != "" {
				set(int64(10), "status", tc.past)
			}
			if limit, ends := kueue.Execution(workload); limit != tc.want || !ends.Equal(tc.wantEnd) {
				t.Errorf("Execution = %v, %v; want %v, %v", limit, ends, tc.want, tc.wantEnd)
			}
		})
	}
}
