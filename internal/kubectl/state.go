package kubectl

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// State is how a TrainJob is, as its user means it.
type State string

// The states. The last three are for good.
const (
	// Queued: it is held back by Kueue, until there is room.
	Queued State = "Queued"
	// Suspended: it is held back by anybody else.
	Suspended State = "Suspended"
	// Running: it is active, whether its pods have started yet or not.
	Running State = "Running"
	// Finishing: its end has begun. It is being deleted, its deadline is reached, or its JobSet has
	// ended and Trainer has not said how.
	Finishing        State = "Finishing"
	Succeeded        State = "Succeeded"
	Failed           State = "Failed"
	DeadlineExceeded State = "DeadlineExceeded"
)

// Finished tells whether the state is for good.
func (s State) Finished() bool { return s == Succeeded || s == Failed || s == DeadlineExceeded }

// StateOf returns the state of a TrainJob. queued is what InQueue finds; jobSet is that of its name,
// nil where there is none or it was not read; decision is how it stands to its deadline.
func StateOf(job *trainer.TrainJob, queued bool, jobSet *trainer.JobSet, decision deadline.Decision) State {
	if end := job.FinishedAt(); end != nil {
		switch {
		case end.Type == trainer.ConditionComplete:
			return Succeeded
		case end.Reason == trainer.ReasonDeadlineExceeded:
			return DeadlineExceeded
		}
		return Failed
	}
	ended := jobSet != nil && metav1.IsControlledBy(jobSet, job) && jobSet.Finished()
	switch {
	case !job.DeletionTimestamp.IsZero(), ended:
		return Finishing
	case !job.Active() && queued:
		return Queued
	case !job.Active():
		return Suspended
	case decision.State == deadline.Expired:
		return Finishing
	}
	return Running
}

// InQueue tells whether it is Kueue that holds a suspended TrainJob back. workload is the one that the
// TrainJob controls, nil for none or where it could not be read: the TrainJob's label decides then, where
// Kueue is installed.
func InQueue(job *trainer.TrainJob, workload *unstructured.Unstructured, installed bool) bool {
	if workload != nil {
		return kueue.Wants(workload)
	}
	return installed && kueue.QueueOf(nil, job) != ""
}
