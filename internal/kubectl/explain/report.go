// Package explain tells the story of one TrainJob: what has happened to it, what will stop it and who
// decided that, which content it runs on, and what looks wrong.
package explain

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// Report is what explain says of a TrainJob. Its JSON is what scripts get; all times are those of the
// server's clock, in UTC.
type Report struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	UID       types.UID     `json:"uid"`
	Now       time.Time     `json:"now"`
	State     kubectl.State `json:"state"`
	// Why says what brought it into its state, where that is known; else "".
	Why string `json:"why,omitempty"`
	// ActiveSince is when it last became active; zero while it is suspended, or that is not known yet.
	ActiveSince time.Time `json:"activeSince,omitzero"`
	Finished    time.Time `json:"finished,omitzero"`
	// Queue is the LocalQueue of Kueue that it belongs to, "" for none; Position is its place in that, from
	// 1 on, 0 where it does not wait there or that is not known.
	Queue    string    `json:"queue,omitempty"`
	Position int       `json:"position,omitempty"`
	Timeline []Entry   `json:"timeline"`
	Limits   []Limit   `json:"limits"`
	Content  Content   `json:"content"`
	Findings []Finding `json:"findings"`
	// Notes are what could not be seen.
	Notes []string `json:"notes,omitempty"`
}

// Of makes the report of the facts, at the instant now by the server's clock.
func Of(f Facts, now time.Time) Report {
	job := f.Job
	limit := kubectl.LimitOf(job, f.Signalbox.May(), now)
	end := f.end(now)
	queued := kubectl.InQueue(job, f.Kueue.Workload, f.Kueue.installed())
	report := Report{
		Namespace: job.Namespace, Name: job.Name, UID: job.UID, Now: whole(now),
		State:       kubectl.StateOf(job, queued, f.jobSet(), limit.Decision),
		ActiveSince: whole(kubectl.ActiveSince(job, limit, now)),
		Queue:       kueue.QueueOf(f.Kueue.Workload, job),
		Timeline:    timeline(f, limit, end, now),
		Limits:      limits(f, limit, end),
		Content:     contentOf(f),
	}
	if finished := job.FinishedAt(); finished != nil {
		report.Finished = whole(finished.LastTransitionTime.Time)
	}
	if report.State == kubectl.Queued {
		report.Position = f.Kueue.Position
	}
	report.Why = why(f, report.State)
	report.Findings = findings(f, limit, end, now)
	return report
}

// end is how the TrainJob stands to its removal.
func (f Facts) end(now time.Time) ttl.Decision {
	if f.TTL == nil || !f.Signalbox.May() {
		return ttl.Decision{}
	}
	return ttl.Evaluate(f.Job, *f.TTL, now)
}

// why says what brought the TrainJob into its state.
func why(f Facts, state kubectl.State) string {
	job := f.Job
	switch finished := job.FinishedAt(); {
	case state == kubectl.DeadlineExceeded:
		return finished.Message
	case finished != nil && state != kubectl.Succeeded:
		return reasoned(*finished)
	case state == kubectl.Finishing && !job.DeletionTimestamp.IsZero():
		return "it is being deleted"
	case state == kubectl.Finishing && f.jobSet() != nil && f.jobSet().Finished():
		return "its JobSet has ended, and Trainer has not said how"
	case state == kubectl.Finishing:
		return "its deadline is reached"
	case state == kubectl.Queued:
		return waits(f.Kueue)
	case state == kubectl.Running && !job.ManagedByTrainer():
		return "run by " + ptr.Deref(job.Spec.ManagedBy, "")
	}
	return ""
}

// waits says why Kueue holds a TrainJob back, as its Workload tells.
func waits(k Kueue) string {
	if k.Workload == nil {
		return ""
	}
	for _, is := range kueue.Conditions(k.Workload) {
		if is.Type == kueue.QuotaReserved && is.Status == metav1.ConditionFalse {
			return is.Message
		}
	}
	return ""
}

// reasoned puts a condition into words: its reason, and its message where there is one.
func reasoned(condition metav1.Condition) string {
	if condition.Message == "" {
		return condition.Reason
	}
	return fmt.Sprintf("%s: %s", condition.Reason, condition.Message)
}

// whole returns the instant to the second, as most of what the cluster stores is; in UTC.
func whole(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC().Truncate(time.Second)
}
