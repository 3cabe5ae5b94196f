package chaos_test

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// truncation is how much earlier than Signalbox stock Trainer may find the spec field
// reached: it counts from the creation or the resume in whole seconds.
const truncation = time.Second

// checkEarly checks that the TrainJob, which has just been seen to be finished by the
// condition, did not fail before its deadline, and by nothing else.
func (r *record) checkEarly(job *trainer.TrainJob, ended *metav1.Condition, next bool, now time.Time) {
	if ended.Type != trainer.ConditionFailed {
		return
	}
	if ended.Reason != trainer.ReasonDeadlineExceeded {
		r.problemLocked("failed by something else: %s", short(ended))
		return
	}
	if next && r.last != nil && !r.last.Active() {
		r.problemLocked("failed while it was suspended: %s", short(ended))
		return
	}
	bySignalbox := strings.HasPrefix(ended.Message, "active since ")
	allowed := time.Duration(0)
	if !bySignalbox {
		allowed = truncation
		if !r.bySpec {
			r.problemLocked("failed by Trainer, which does not know the annotation")
		}
	}
	// It was stored at the latest when it was seen, and set in the second of its time.
	at := ended.LastTransitionTime.Add(time.Second - time.Nanosecond)
	if now.Before(at) {
		at = now
	}
	early := r.stamp.Add(r.limit).Sub(at)
	r.noteLocked("failed %s before its deadline at most, by Signalbox: %t", early, bySignalbox)
	if early <= allowed {
		return
	}
	if bySignalbox {
		r.problemLocked("failed %s before its deadline, active since %s", early, r.stamp)
		return
	}
	r.problemLocked("failed by Trainer %s before its deadline, active since %s; Trainer counted from %s", early, r.stamp, trainerStart(job))
}

// trainerStart is from when stock Trainer counts.
func trainerStart(job *trainer.TrainJob) time.Time {
	suspended := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime.Time
	}
	return job.CreationTimestamp.Time
}
