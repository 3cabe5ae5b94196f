package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// Level tells how much a finding matters.
type Level string

const (
	// Warning: something is not as its author, or its admin, will want it.
	Warning Level = "warning"
	// Note: it is as it should be, and still good to know.
	Note Level = "note"
)

// Finding is something about a TrainJob that looks wrong.
type Finding struct {
	Level Level `json:"level"`
	// Reason is one word for scripts.
	Reason string `json:"reason"`
	Text   string `json:"text"`
	// Do says what to do about it; "" where nothing needs to be done.
	Do string `json:"do,omitempty"`
}

// How long things may take before they look wrong.
const (
	// promptly is for what a controller does at once.
	promptly = time.Minute
	// starting is for pods to get ready: images are large.
	starting = 5 * time.Minute
)

// check is what to do where a part seems to be away.
const check = "look at the parts of Signalbox: kubectl signalbox check"

// findings returns what looks wrong, what matters more first.
func findings(f Facts, limit kubectl.Limit, end ttl.Decision, now time.Time) []Finding {
	found := []Finding{}
	for _, look := range []func() *Finding{
		func() *Finding { return deletion(f, now) },
		func() *Finding { return overdue(f, limit, now) },
		func() *Finding { return outlived(f, end, now) },
		func() *Finding { return left(f, now) },
		func() *Finding { return notBuilt(f, now) },
		func() *Finding { return held(f, now) },
		func() *Finding { return neverReady(f, limit, now) },
		func() *Finding { return restarted(f) },
		func() *Finding { return inKueue(f, now) },
		func() *Finding { return stamped(f, now) },
		func() *Finding { return settings(f) },
		func() *Finding { return unsealed(f) },
		func() *Finding { return otherContent(f) },
		func() *Finding { return changed(f) },
		func() *Finding { return clocks(f) },
		func() *Finding { return absent(f) },
	} {
		if finding := look(); finding != nil {
			found = append(found, *finding)
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return strings.Compare(string(b.Level), string(a.Level)) })
	return found
}

func warning(reason, do, format string, values ...any) *Finding {
	return &Finding{Level: Warning, Reason: reason, Text: fmt.Sprintf(format, values...), Do: do}
}

func note(reason, do, format string, values ...any) *Finding {
	return &Finding{Level: Note, Reason: reason, Text: fmt.Sprintf(format, values...), Do: do}
}

// runs tells whether Trainer's controller is to run the TrainJob now.
func (f Facts) runs() bool { return f.Job.ManagedByTrainer() && f.Job.Active() && !f.Job.Terminal() }

// deletion tells of one that is held up.
func deletion(f Facts, now time.Time) *Finding {
	if f.Job.DeletionTimestamp.IsZero() || now.Sub(f.Job.DeletionTimestamp.Time) < promptly {
		return nil
	}
	return warning("DeletionHeldUp", "whoever put the finalizers there must take them away",
		"its deletion was asked for %s ago, and its finalizers hold it up: %s",
		span(now.Sub(f.Job.DeletionTimestamp.Time)), strings.Join(f.Job.Finalizers, ", "))
}

// overdue tells of a deadline that is over and ended nothing.
func overdue(f Facts, limit kubectl.Limit, now time.Time) *Finding {
	if limit.Decision.State != deadline.Expired || now.Sub(limit.Decision.Deadline) < deadline.Tolerance {
		return nil
	}
	late := span(now.Sub(limit.Decision.Deadline))
	if jobSet := f.jobSet(); jobSet != nil && jobSet.Finished() {
		return warning("Overdue", "see whether Trainer's controller runs",
			"its deadline was %s ago, and its JobSet has ended by itself: how, Trainer has still to say", late)
	}
	if !f.Signalbox.Is {
		return warning("Overdue", "see whether Trainer's controller runs", "its deadline was %s ago, and it has not failed", late)
	}
	return warning("Overdue", check, "its deadline was %s ago, and it has not failed: the reconciler seems to be away", late)
}

// outlived tells of a finished TrainJob that should have been removed.
func outlived(f Facts, end ttl.Decision, now time.Time) *Finding {
	if end.State != ttl.Due || now.Sub(end.Expires) < promptly {
		return nil
	}
	const text = "it should have been deleted %s ago (%s): the reconciler seems to be away, or ttl.enabled of the chart is off"
	if !f.Signalbox.Known {
		return note("NotRemoved", check, text+", or Signalbox is not installed", span(now.Sub(end.Expires)), end.By)
	}
	return warning("NotRemoved", check, text,
		span(now.Sub(end.Expires)), end.By)
}

// left tells of a JobSet that a TrainJob has left behind that failed by its deadline.
func left(f Facts, now time.Time) *Finding {
	jobSet := f.jobSet()
	if !f.Job.DeadlineExceeded() || !f.Job.ManagedByTrainer() || jobSet == nil || jobSet.Finished() ||
		now.Sub(f.Job.FinishedAt().LastTransitionTime.Time) < promptly {
		return nil
	}
	return warning("JobSetLeft", "see what holds it up: kubectl get jobset "+f.Job.Name+" -o yaml",
		"it failed by its deadline %s ago, and its JobSet is still there: pods of it may run",
		span(now.Sub(f.Job.FinishedAt().LastTransitionTime.Time)))
}

// settings tells of annotations that are not what they seem.
func settings(f Facts) *Finding {
	job := f.Job
	text, annotated := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]
	switch {
	case !job.ManagedByTrainer() || job.Terminal() || !f.Signalbox.May():
		return nil
	case annotated && text != v1alpha1.None && job.Spec.ActiveDeadlineSeconds != nil:
		return note("AnnotationIgnored", "", "the annotation %s counts for nothing: spec.activeDeadlineSeconds wins", v1alpha1.AnnotationActiveDeadlineSeconds)
	case annotated && text != v1alpha1.None:
		if _, err := v1alpha1.ParseSeconds(text, v1alpha1.MinDeadlineSeconds); err != nil {
			return warning("AnnotationInvalid", "create the TrainJob anew: its deadline cannot be changed",
				"the annotation %s is %q: it %v, and was stored while no webhook looked", v1alpha1.AnnotationActiveDeadlineSeconds, text, err)
		}
	}
	text, annotated = job.Annotations[v1alpha1.AnnotationTTLSecondsAfterFinished]
	if !annotated || text == v1alpha1.None {
		return nil
	}
	if _, err := v1alpha1.ParseSeconds(text, v1alpha1.MinTTLSeconds); err != nil {
		return warning("AnnotationInvalid", "kubectl annotate --overwrite trainjob "+job.Name+" "+v1alpha1.AnnotationTTLSecondsAfterFinished+"=SECONDS",
			"the annotation %s is %q: it %v", v1alpha1.AnnotationTTLSecondsAfterFinished, text, err)
	}
	return nil
}

// clocks tells of a runtime with clocks of its own.
func clocks(f Facts) *Finding {
	if f.Content.Snapshot == nil || f.Job.Terminal() {
		return nil
	}
	var fields []string
	for _, clock := range guard.Clocks(nil, f.Content.Snapshot.Spec()) {
		fields = append(fields, fmt.Sprintf("%s (%v)", clock.Field, clock.BadValue))
	}
	if len(fields) == 0 {
		return nil
	}
	return warning("SecondClock", "take these fields out of "+runtimeOf(f.Job)+", and create the TrainJob anew",
		"its runtime has clocks of its own, by which pods end, or are deleted, without the TrainJob: %s", strings.Join(fields, ", "))
}

// absent tells that there is no Signalbox.
func absent(f Facts) *Finding {
	if f.Signalbox.May() || f.Job.Terminal() {
		return nil
	}
	return note("NoSignalbox", "", "Signalbox is not installed: only spec.activeDeadlineSeconds counts, as Trainer 2.2 and later counts it, and nothing is sealed")
}

// lastWarning returns what the last warning event says, newer than the given age; "" for none.
func lastWarning(f Facts, now time.Time, age time.Duration) string {
	var text string
	var last time.Time
	for i := range f.Events {
		event := &f.Events[i]
		at, _ := lastOf(event)
		if event.Type == corev1.EventTypeWarning && !ours(event) && at.After(last) && now.Sub(at) <= age {
			text, last = event.Reason+": "+strings.TrimSpace(event.Message), at
		}
	}
	return text
}

// became returns when Trainer's controller was told to run the TrainJob; zero where that is not known.
func (f Facts) became(now time.Time) time.Time {
	if !f.Job.Active() {
		return time.Time{}
	}
	at := deadline.ActiveSince(f.Job, now)
	if stamp, stamped := stampOf(f.Job); at.IsZero() && stamped {
		return stamp
	}
	return at
}
