package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// What is what happened to a TrainJob, or will happen.
type What string

// What there is, in the order in which things come that are of the same second.
const (
	Created   What = "Created"
	Queued    What = "Queued"
	Admitted  What = "Admitted"
	Resumed   What = "Resumed"
	Sealed    What = "Sealed"
	Built     What = "Built"
	Started   What = "Started"
	Warned    What = "Warned"
	Evicted   What = "Evicted"
	Suspended What = "Suspended"
	Deadline  What = "Deadline"
	Ended     What = "Ended"
	Finished  What = "Finished"
	Deletion  What = "Deletion"
)

var order = []What{
	Created, Queued, Admitted, Resumed, Sealed, Built, Started, Warned, Evicted, Suspended, Deadline, Ended, Finished, Deletion,
}

// Entry is one line of the timeline.
type Entry struct {
	At   time.Time `json:"at"`
	What What      `json:"what"`
	Text string    `json:"text"`
	// Where is the place in the cluster that says so.
	Where string `json:"where"`
	// Ahead: it has not happened yet.
	Ahead bool `json:"ahead,omitempty"`
}

// moreEvents is how many warning events are told of, the latest.
const moreEvents = 5

// again is how much later than the TrainJob became active Trainer may report that, before it is worth
// a line.
const again = deadline.Tolerance

type story struct {
	now     time.Time
	entries []Entry
}

func (s *story) tell(at time.Time, what What, where, format string, values ...any) {
	if !at.IsZero() {
		at = whole(at)
		s.entries = append(s.entries, Entry{At: at, What: what, Text: fmt.Sprintf(format, values...), Where: where, Ahead: at.After(s.now)})
	}
}

// timeline puts in order of time what the cluster stores about the TrainJob. Of what happens more than
// once, it stores the last time only.
func timeline(f Facts, limit kubectl.Limit, end ttl.Decision, now time.Time) []Entry {
	s := &story{now: now}
	s.tell(f.Job.CreationTimestamp.Time, Created, "metadata.creationTimestamp", "created")
	s.queue(f)
	s.active(f)
	s.runs(f)
	s.warnings(f)
	s.ends(f, limit, end)
	slices.SortStableFunc(s.entries, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(slices.Index(order, a.What), slices.Index(order, b.What)))
	})
	return s.entries
}

// queue tells what Kueue did.
func (s *story) queue(f Facts) {
	workload := f.Kueue.Workload
	if workload == nil {
		return
	}
	where := "Workload " + workload.GetName()
	s.tell(workload.GetCreationTimestamp().Time, Queued, where, "queued in LocalQueue %s", kueue.QueueOf(workload, f.Job))
	for _, is := range kueue.Conditions(workload) {
		at := is.LastTransitionTime.Time
		switch {
		case is.Status != metav1.ConditionTrue:
		case is.Type == kueue.Admitted:
			if name := kueue.ClusterQueueOf(workload); name != "" {
				s.tell(at, Admitted, where, "admitted by ClusterQueue %s", name)
			}
		case is.Type == kueue.Evicted:
			s.tell(at, Evicted, where, "evicted by Kueue: %s", reasoned(is))
		}
	}
}

// active tells when the TrainJob was suspended or became active, and was sealed.
func (s *story) active(f Facts) {
	job := f.Job
	suspended := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionSuspended)
	const where = "condition " + trainer.ConditionSuspended
	if suspended != nil && suspended.Status == metav1.ConditionTrue {
		s.tell(suspended.LastTransitionTime.Time, Suspended, where, "suspended, as Trainer reports")
	}
	if f.Content.Sealed != nil {
		// The second of its creation may have begun after the webhook sealed it.
		at := slices.MaxFunc([]time.Time{f.Content.Sealed.SealedAt, job.CreationTimestamp.Time}, time.Time.Compare)
		s.tell(at, Sealed, "annotation "+v1alpha1.AnnotationRuntimeSnapshot, "sealed on %s, revision %s",
			snapshot.Name(f.Content.Sealed.Source), f.Content.Sealed.Revision)
	}
	if !job.Active() || !job.ManagedByTrainer() {
		return
	}
	at := deadline.ActiveSince(job, s.now)
	reported := suspended != nil && suspended.Status == metav1.ConditionFalse
	stamp, stamped := stampOf(job)
	// Trainer reports in whole seconds, a moment later.
	byStamp := stamped && at.Sub(stamp).Abs() <= again
	switch {
	case at.IsZero():
	case byStamp && (suspended != nil || at.Sub(job.CreationTimestamp.Time) > firstLook):
		s.tell(at, Resumed, "annotation "+v1alpha1.AnnotationResumedAt, "resumed")
	case byStamp:
		s.tell(at, Resumed, "annotation "+v1alpha1.AnnotationResumedAt, "active, from its creation on")
	case reported && at.Equal(suspended.LastTransitionTime.Time):
		s.tell(at, Resumed, where, "resumed, as Trainer reports")
	case at.Equal(job.CreationTimestamp.Time):
		s.tell(at, Resumed, "metadata.creationTimestamp", "active, from its creation on")
	}
	if reported && stamped && !byStamp && suspended.LastTransitionTime.After(stamp) {
		s.tell(stamp, Resumed, "annotation "+v1alpha1.AnnotationResumedAt, "resumed, by the stamp of the webhook")
	}
}

// firstLook is how much later than a TrainJob was created it may have become active by that creation.
const firstLook = 2 * time.Second

// stampOf returns the stamp of the present active period; false where there is none that can be read.
func stampOf(job *trainer.TrainJob) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
	return at, err == nil
}

// runs tells of its JobSet and its pods.
func (s *story) runs(f Facts) {
	jobSet := f.jobSet()
	if jobSet == nil {
		return
	}
	const where = "JobSet"
	s.tell(jobSet.CreationTimestamp.Time, Built, where, "Trainer made its JobSet")
	if at := firstStart(f.Pods); jobSet.Status.Restarts > 0 {
		s.tell(at, Started, "pods", "the first pod ran, after %s of all of them", times(int(jobSet.Status.Restarts), "restart"))
	} else {
		s.tell(at, Started, "pods", "the first pod ran")
	}
	for _, is := range jobSet.Status.Conditions {
		if !f.Job.Terminal() && is.Status == metav1.ConditionTrue && (is.Type == "Completed" || is.Type == "Failed") {
			s.tell(is.LastTransitionTime.Time, Ended, where, "its JobSet ended: %s", reasoned(is))
		}
	}
}

// firstStart returns when the first of the pods ran; zero where none did.
func firstStart(pods []corev1.Pod) time.Time {
	var first time.Time
	earlier := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for i := range pods {
		for _, container := range pods[i].Status.ContainerStatuses {
			if running := container.State.Running; running != nil {
				earlier(running.StartedAt.Time)
			}
			if ended := container.State.Terminated; ended != nil {
				earlier(ended.StartedAt.Time)
			}
		}
	}
	return first
}

// warnings tells of the latest warning events.
func (s *story) warnings(f Facts) {
	var entries story
	entries.now = s.now
	for i := range f.Events {
		event := &f.Events[i]
		if event.Type != corev1.EventTypeWarning || ours(event) {
			continue
		}
		at, count := lastOf(event)
		text := event.Reason + ": " + strings.TrimSpace(event.Message)
		if count > 1 {
			text += fmt.Sprintf(" (%d times)", count)
		}
		entries.tell(at, Warned, "event of "+event.InvolvedObject.Kind, "%s", text)
	}
	slices.SortStableFunc(entries.entries, func(a, b Entry) int { return b.At.Compare(a.At) })
	s.entries = append(s.entries, entries.entries[:min(moreEvents, len(entries.entries))]...)
}

// ours tells of an event that Signalbox wrote: what it says of a TrainJob, the rest of the story does.
func ours(event *corev1.Event) bool { return event.Source.Component == v1alpha1.FieldManager }

// lastOf returns when an event was last, and how often it was.
func lastOf(event *corev1.Event) (time.Time, int) {
	at, count := event.LastTimestamp.Time, int(event.Count)
	if event.Series != nil {
		at, count = event.Series.LastObservedTime.Time, int(event.Series.Count)
	}
	for _, other := range []time.Time{event.EventTime.Time, event.FirstTimestamp.Time, event.CreationTimestamp.Time} {
		if at.IsZero() {
			at = other
		}
	}
	return at, count
}

// ends tells of its deadline, how it finished, and when it goes.
func (s *story) ends(f Facts, limit kubectl.Limit, end ttl.Decision) {
	job := f.Job
	decision := limit.Decision
	if decision.State == deadline.None && job.DeadlineExceeded() {
		decision = deadlineOf(job, f.Signalbox.May(), s.now)
	}
	if at := whole(decision.Deadline); at.After(s.now) {
		s.tell(at, Deadline, string(decision.Source), "deadline: it fails with %s", trainer.ReasonDeadlineExceeded)
	} else {
		s.tell(at, Deadline, string(decision.Source), "deadline")
	}
	if finished := job.FinishedAt(); finished != nil {
		at, where := finished.LastTransitionTime.Time, "condition "+finished.Type
		if finished.Type == trainer.ConditionComplete {
			s.tell(at, Finished, where, "succeeded")
		} else {
			s.tell(at, Finished, where, "failed: %s", reasoned(*finished))
		}
	}
	switch {
	case !job.DeletionTimestamp.IsZero():
		s.tell(job.DeletionTimestamp.Time, Deletion, "metadata.deletionTimestamp", "deletion asked for")
	case end.State != ttl.None:
		s.tell(end.Expires, Deletion, end.By, "deleted, %s after its end", exact(end.After))
	}
}

// deadlineOf returns how a TrainJob that has failed by its deadline stood to it.
func deadlineOf(job *trainer.TrainJob, signalbox bool, now time.Time) deadline.Decision {
	running := job.DeepCopy()
	meta.RemoveStatusCondition(&running.Status.Conditions, trainer.ConditionFailed)
	return kubectl.LimitOf(running, signalbox, now).Decision
}
