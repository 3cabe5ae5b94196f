package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// The functions of this file look at the world and say in words what is not as it should
// be; "" means that all is well.

// firstOf returns the first answer that is not "".
func firstOf(answers ...string) string {
	for _, answer := range answers {
		if answer != "" {
			return answer
		}
	}
	return ""
}

func count(w world, kind string, want int) string {
	if n := w.count(kind); n != want {
		return fmt.Sprintf("there are %d %ss, want %d", n, kind, want)
	}
	return ""
}

func jobSetSuspended(w world, want bool) string {
	jobSet, ok := w[key{kindJobSet, jobName}].(*unstructured.Unstructured)
	if !ok {
		return "there is no JobSet"
	}
	if suspendOf(jobSet) != want {
		return fmt.Sprintf("the JobSet has suspend: %t, want %t", !want, want)
	}
	return ""
}

func suspendedCondition(w world) string {
	if !meta.IsStatusConditionTrue(w.trainJob().Status.Conditions, trainer.ConditionSuspended) {
		return "the TrainJob does not say Suspended=True"
	}
	return ""
}

func podsRunning(w world) string {
	if n := w.running(); n != workers {
		return fmt.Sprintf("%d pods run, want %d", n, workers)
	}
	return ""
}

func stampMissing(w world) string {
	if stampOf(w.trainJob()) == "" {
		return "the TrainJob has no stamp"
	}
	return ""
}

func stampGone(w world) string {
	if stamp := stampOf(w.trainJob()); stamp != "" {
		return "the TrainJob has the stamp " + stamp
	}
	return ""
}

// started says what should not be there before the TrainJob is first resumed.
func started(w world) string {
	return firstOf(stampGone(w), count(w, kindPod, 0))
}

func completed(w world) string {
	if meta.IsStatusConditionTrue(w.trainJob().Status.Conditions, trainer.ConditionComplete) {
		return "the TrainJob is Complete"
	}
	return ""
}

func finished(w world) string {
	if w.trainJob().Terminal() {
		return "the TrainJob is finished"
	}
	return ""
}

func notExceeded(w world) string {
	if !w.trainJob().DeadlineExceeded() {
		return "the TrainJob has not failed by its deadline"
	}
	return ""
}

// unreported asks for an event only when signalbox was the one to act: Trainer sends none.
func (d *demo) unreported(w world) string {
	if d.exceededBy == v1alpha1.FieldManager && !w.reported(trainer.ReasonDeadlineExceeded) {
		return "there is no event " + trainer.ReasonDeadlineExceeded
	}
	return ""
}
