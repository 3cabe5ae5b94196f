package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

var instant = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func trainJob() *builder.TrainJobBuilder { return builder.TrainJob(namespace, jobName) }

// ownedBy makes the manager own what the field path says of the status.
func ownedBy(job *trainer.TrainJob, manager, fields string) *trainer.TrainJob {
	job.ManagedFields = append(job.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(fields),
	})
	return job
}

func jobSet(suspend any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": kindJobSet, "metadata": map[string]any{"name": jobName}, "spec": map[string]any{"suspend": suspend},
	}}
}

func job(suspend *bool) *batchv1.Job { return &batchv1.Job{Spec: batchv1.JobSpec{Suspend: suspend}} }

func pod(node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

func dying(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{Time: instant}
	return pod
}

func event(kind string, source corev1.EventSource, controller string) *corev1.Event {
	return &corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: jobName},
		Type:           "Warning", Reason: "Late", Message: "too late", Source: source, ReportingController: controller,
	}
}

// change is one observation, and what is to be told of it.
type change struct {
	before, after client.Object
	deleted       bool
	want          []string
}

func testDescribe(t *testing.T, changes map[string]change) {
	t.Helper()
	for name, tc := range changes {
		t.Run(name, func(t *testing.T) {
			got := describe(tc.before, observation{object: tc.after, deleted: tc.deleted})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribeTrainJob(t *testing.T) {
	ownFailed := `{"f:status":{"f:conditions":{"k:{\"type\":\"Failed\"}":{"f:message":{}}}}}`
	suspended := trainJob().Suspended().Deadline(10)
	testDescribe(t, map[string]change{
		"a suspended TrainJob is created with a deadline": {
			after: suspended.Obj(), want: []string{"created suspended", "deadline 10 s"},
		},
		"an active TrainJob is created with a deadline by annotation": {
			after: trainJob().DeadlineAnnotation("7").Stamp(instant).Obj(),
			want:  []string{"created active", "deadline 7 s by annotation", "stamped 2026-03-04T05:06:07Z"},
		},
		"a TrainJob is resumed and stamped in one write": {
			before: suspended.Obj(), after: trainJob().Suspend(false).Stamp(instant).Obj(),
			want: []string{"resumed", "stamped 2026-03-04T05:06:07Z"},
		},
		"a TrainJob is suspended and loses its stamp": {
			before: trainJob().Stamp(instant).Obj(), after: trainJob().Suspended().Obj(),
			want: []string{"suspended", "stamp removed"},
		},
		"a write that changes nothing of interest": {
			before: suspended.Obj(), after: suspended.Obj(),
		},
		"Failed appears, with its writer": {
			before: trainJob().Obj(),
			after: ownedBy(trainJob().Condition("Failed", metav1.ConditionTrue, "DeadlineExceeded", instant).Obj(),
				"signalbox", ownFailed),
			want: []string{`Failed=True DeadlineExceeded: "as Trainer says", set by signalbox`},
		},
		"a condition changes its status, written by nobody known": {
			before: trainJob().Condition("Suspended", metav1.ConditionTrue, "Suspended", instant).Obj(),
			after:  trainJob().Condition("Suspended", metav1.ConditionFalse, "Resumed", instant).Obj(),
			want:   []string{`Suspended=False Resumed: "as Trainer says", set by somebody`},
		},
		"a condition goes": {
			before: trainJob().Condition("Failed", metav1.ConditionTrue, "Other", instant).Obj(),
			after:  trainJob().Obj(),
			want:   []string{"Failed removed"},
		},
		"a TrainJob goes": {before: trainJob().Obj(), after: trainJob().Obj(), deleted: true, want: []string{"gone"}},
	})
}

func TestDescribeOthers(t *testing.T) {
	yes := true
	testDescribe(t, map[string]change{
		"a JobSet is created suspended": {after: jobSet(true), want: []string{"created suspended"}},
		"a JobSet is resumed":           {before: jobSet(true), after: jobSet(false), want: []string{"resumed"}},
		"a JobSet only has a new status": {
			before: jobSet(true), after: jobSet(true),
		},
		"a Job is created active": {after: job(nil), want: []string{"created active"}},
		"a Job is suspended":      {before: job(nil), after: job(&yes), want: []string{"suspended"}},
		"a pod is created":        {after: pod("", corev1.PodPending), want: []string{"created"}},
		"a pod is scheduled": {
			before: pod("", corev1.PodPending), after: pod("node-1", corev1.PodPending), want: []string{"on node-1"},
		},
		"a pod runs": {
			before: pod("node-1", corev1.PodPending), after: pod("node-1", corev1.PodRunning), want: []string{"Running"},
		},
		"a pod is being deleted": {
			before: pod("node-1", corev1.PodRunning), after: dying(pod("node-1", corev1.PodRunning)), want: []string{"being deleted"},
		},
		"a pod that is being deleted is told of once": {
			before: dying(pod("node-1", corev1.PodRunning)), after: dying(pod("node-1", corev1.PodRunning)),
		},
		"an event of a TrainJob": {
			after: event(kindTrainJob, corev1.EventSource{Component: "signalbox"}, "other"),
			want:  []string{`Warning Late: "too late", from signalbox`},
		},
		"an event of the newer API": {
			after: event(kindJobSet, corev1.EventSource{}, "jobset"), want: []string{`Warning Late: "too late", from jobset`},
		},
		"an event of a pod": {after: event(kindPod, corev1.EventSource{}, "kwok")},
		"an event that goes": {
			after: event(kindTrainJob, corev1.EventSource{}, ""), deleted: true,
		},
	})
}

func TestConditionsText(t *testing.T) {
	job := trainJob().
		Condition("Suspended", metav1.ConditionFalse, "Resumed", instant).
		Condition("Failed", metav1.ConditionTrue, "DeadlineExceeded", instant).Obj()
	if got, want := conditionsText(job), "Suspended=False Resumed, Failed=True DeadlineExceeded"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
