package main

import (
	"encoding/json"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// describe says what an observation changes against what was known before, nil if the
// object is new. What the story is not about gives nothing.
func describe(before client.Object, o observation) []string {
	if event, ok := o.object.(*corev1.Event); ok {
		return eventChanges(o.deleted, event)
	}
	if o.deleted {
		return []string{"gone"}
	}
	var changes []string
	switch after := o.object.(type) {
	case *trainer.TrainJob:
		old, _ := before.(*trainer.TrainJob)
		changes = trainJobChanges(old, after)
	case *unstructured.Unstructured:
		old, _ := before.(*unstructured.Unstructured)
		changes = suspendChanges(old != nil, suspendOf(old), suspendOf(after))
	case *batchv1.Job:
		old, _ := before.(*batchv1.Job)
		changes = suspendChanges(old != nil, old != nil && ptr.Deref(old.Spec.Suspend, false), ptr.Deref(after.Spec.Suspend, false))
	case *corev1.Pod:
		old, _ := before.(*corev1.Pod)
		changes = podChanges(old, after)
	}
	if o.object.GetDeletionTimestamp() != nil && (before == nil || before.GetDeletionTimestamp() == nil) {
		changes = append(changes, "being deleted")
	}
	return changes
}

func suspendOf(jobSet *unstructured.Unstructured) bool {
	if jobSet == nil {
		return false
	}
	suspend, _, _ := unstructured.NestedBool(jobSet.Object, "spec", "suspend")
	return suspend
}

// suspendChanges says what became of spec.suspend. known is false for a new object.
func suspendChanges(known, before, after bool) []string {
	switch {
	case !known && after:
		return []string{"created suspended"}
	case !known:
		return []string{"created active"}
	case after && !before:
		return []string{"suspended"}
	case before && !after:
		return []string{"resumed"}
	}
	return nil
}

func trainJobChanges(before, after *trainer.TrainJob) []string {
	known := before != nil
	if !known {
		before = &trainer.TrainJob{}
	}
	changes := suspendChanges(known, !before.Active(), !after.Active())
	if !known {
		changes = append(changes, limitText(after)...)
	}
	switch was, is := stampOf(before), stampOf(after); {
	case was == is:
	case is == "":
		changes = append(changes, "stamp removed")
	default:
		changes = append(changes, "stamped "+is)
	}
	return append(changes, conditionChanges(before.Status.Conditions, after)...)
}

// limitText shows the deadline as it is stored, whether or not it counts now.
func limitText(job *trainer.TrainJob) []string {
	if limit := job.Spec.ActiveDeadlineSeconds; limit != nil {
		return []string{fmt.Sprintf("deadline %d s", *limit)}
	}
	if limit, found := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]; found {
		return []string{fmt.Sprintf("deadline %s s by annotation", limit)}
	}
	return nil
}

// conditionChanges tells each condition that is new or has changed, and who set it: both
// Trainer and signalbox set Failed.
func conditionChanges(before []metav1.Condition, job *trainer.TrainJob) []string {
	var changes []string
	for _, is := range job.Status.Conditions {
		was := meta.FindStatusCondition(before, is.Type)
		if was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		changes = append(changes, fmt.Sprintf("%s=%s %s: %q, set by %s", is.Type, is.Status, is.Reason, is.Message, writerOf(job, is.Type)))
	}
	for _, was := range before {
		if meta.FindStatusCondition(job.Status.Conditions, was.Type) == nil {
			changes = append(changes, was.Type+" removed")
		}
	}
	return changes
}

// conditionsText sums up the conditions.
func conditionsText(job *trainer.TrainJob) string {
	var texts []string
	for _, c := range job.Status.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(texts, ", ")
}

// writerOf returns who last changed the condition's message according to the API server, as
// far as it can be told. Trainer may write its own over that of signalbox, and the message
// is then all that changes.
func writerOf(job *trainer.TrainJob, conditionType string) string {
	writer := "somebody"
	for _, entry := range job.ManagedFields {
		var fields struct {
			Status struct {
				Conditions map[string]map[string]any `json:"f:conditions"`
			} `json:"f:status"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		condition := fields.Status.Conditions[fmt.Sprintf(`k:{"type":%q}`, conditionType)]
		if _, owns := condition["f:message"]; owns {
			writer = entry.Manager
		}
	}
	return writer
}

func podChanges(before, after *corev1.Pod) []string {
	var changes []string
	if before == nil {
		before = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
		changes = append(changes, "created")
	}
	if after.Spec.NodeName != before.Spec.NodeName {
		changes = append(changes, "on "+after.Spec.NodeName)
	}
	if after.Status.Phase != before.Status.Phase {
		changes = append(changes, string(after.Status.Phase))
	}
	return changes
}

// eventChanges tells events of TrainJobs and JobSets. Those of Jobs and pods only repeat
// what the objects show.
func eventChanges(deleted bool, event *corev1.Event) []string {
	about := event.InvolvedObject.Kind
	if deleted || about != kindTrainJob && about != kindJobSet {
		return nil
	}
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	return []string{fmt.Sprintf("%s %s: %q, from %s", event.Type, event.Reason, event.Message, source)}
}

// heading returns the kind and name under which the timeline shows an object.
func heading(object client.Object) (kind, name string) {
	if event, ok := object.(*corev1.Event); ok {
		return kindEvent, event.InvolvedObject.Kind + " " + event.InvolvedObject.Name
	}
	return kindOf(object), object.GetName()
}
