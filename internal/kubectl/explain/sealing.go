package explain

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// stamped tells what is wrong with when the TrainJob became active.
func stamped(f Facts, now time.Time) *Finding {
	job := f.Job
	if !job.ManagedByTrainer() || !job.Active() || f.Signalbox.Known && !f.Signalbox.Is {
		return nil
	}
	stamp, found := stampOf(job)
	if found && stamp.Sub(now) > deadline.MaxAhead {
		return warning("StampAhead", "", "the stamp of its resume, %s, lies in the future and counts for nothing: it came while no webhook looked",
			stamp.UTC().Format(time.RFC3339))
	}
	suspended := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionSuspended)
	reported := job.CreationTimestamp.Time
	if suspended != nil {
		reported = suspended.LastTransitionTime.Time
	}
	late := found && reported.Sub(stamp) > deadline.Tolerance
	unseen := suspended != nil && suspended.Status == metav1.ConditionTrue && (!found || late)
	switch {
	case job.Terminal() && unseen:
		return nil
	case unseen && now.Sub(reported) > deadline.Tolerance:
		return unseenResume(f, reported)
	case !found && !unseen:
		return webhookAway(f, reported, suspended != nil)
	case late && suspended != nil:
		return note("ReportedLate", "", "the webhook stamped its resume at %s, and Trainer reported one only at %s, from where its time counts: Trainer was late, or no webhook saw that it was suspended and resumed once more",
			whole(stamp).Format(time.RFC3339), whole(reported).Format(time.RFC3339))
	}
	return nil
}

// unseenResume tells of a TrainJob that is active without a stamp while Trainer reports it suspended.
func unseenResume(f Facts, reported time.Time) *Finding {
	text, do := "Trainer reports it suspended, since %s, and it is not any more: its time does not count yet", "see whether Trainer's controller runs"
	if seen(f, reported) {
		text, do = text+"; no webhook saw its resume", do+"; "+check
	}
	return warning("ResumeNotSeen", do, text, whole(reported).Format(time.RFC3339))
}

// webhookAway tells of a TrainJob that became active at that time without a stamp; resumed tells whether
// that was after its creation. One that was there before Signalbox has none either, so it says nothing
// where it is not known since when that is installed.
func webhookAway(f Facts, at time.Time, resumed bool) *Finding {
	if !seen(f, at) {
		return nil
	}
	how := "was created, at %s"
	if resumed {
		how = "was resumed, which Trainer reports at %s"
	}
	return warning("WebhookAway", check, "the webhook was away when it "+how+": nothing stamped that, so its time counts from there",
		whole(at).Format(time.RFC3339))
}

// seen tells whether the webhook is called for the TrainJob, and is known to have been registered by then.
func seen(f Facts, at time.Time) bool {
	return f.Signalbox.Known && f.Signalbox.Is && f.LeavesAlone != nil && !*f.LeavesAlone && !f.Signalbox.Since.IsZero() && at.After(f.Signalbox.Since)
}

// unsealed tells that the TrainJob has started and is not sealed, and why.
func unsealed(f Facts) *Finding {
	job := f.Job
	source := job.Annotations[v1alpha1.AnnotationRuntimeSource]
	switch {
	case !job.ManagedByTrainer() || f.Signalbox.Known && !f.Signalbox.Is || f.Content.Sealed != nil:
		return nil
	case f.Content.SealErr != nil:
		return warning("SealUnreadable", "create the TrainJob anew, or leave it: what Trainer keeps holds", "what is sealed into it cannot be read, and counts for nothing: %v", f.Content.SealErr)
	case !job.Active() && !job.Terminal() && source != "":
		return nil
	}
	level := warning
	if job.Terminal() || !f.Signalbox.Known {
		level = note
	}
	why, do := whyUnsealed(f)
	if job.Terminal() {
		do = ""
	}
	return level("NotSealed", do, "it is not sealed: %s", why)
}

// whyUnsealed says why a TrainJob that has started is not sealed, and what to do.
func whyUnsealed(f Facts) (why, do string) {
	const laterWise = "nothing needs to be done: it is sealed when it is next resumed"
	job := f.Job
	_, stamped := stampOf(job)
	started := f.firstStart()
	switch large := tooLarge(f); {
	case !job.Spec.RuntimeRef.Known():
		return "its runtime is of a kind that Signalbox does not know", ""
	case f.LeavesAlone != nil && *f.LeavesAlone:
		return "the webhook of Signalbox leaves this namespace alone", "see webhook.excludedNamespaces and webhook.namespaceSelector of its chart"
	case large != "":
		return "its runtime is too large: " + large, "make the runtime smaller, for example by a ConfigMap that its pods mount"
	case job.Active() && stamped:
		return "the webhook saw it start and did not seal it: sealing was off then (snapshots.enabled of its chart), or the runtime was larger", ""
	case !f.Signalbox.Known:
		return "it was there before Signalbox, the webhook was away when it started, or Signalbox is not installed; which of these could not be read", ""
	case f.Signalbox.Since.IsZero():
		return "it was there before Signalbox, or the webhook was away when it started; which of these could not be read", laterWise
	case !started.After(f.Signalbox.Since):
		return "it was there before Signalbox was installed", laterWise
	case f.LeavesAlone == nil:
		return "the webhook was away when it started, or leaves this namespace alone; which of these could not be read", ""
	}
	return "the webhook was away when it started", laterWise
}

// firstStart is when the TrainJob started without a seal, as far as that is stored.
func (f Facts) firstStart() time.Time {
	suspended := meta.FindStatusCondition(f.Job.Status.Conditions, trainer.ConditionSuspended)
	if f.Job.Active() && suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime.Time
	}
	return f.Job.CreationTimestamp.Time
}

// tooLarge says by how much what the TrainJob runs on is too large to be sealed into it; "" where it is
// not, or not known.
func tooLarge(f Facts) string {
	taken := f.Content.Snapshot
	if taken == nil && f.Content.LiveRuntime != nil {
		taken, _ = snapshot.Take(f.Content.LiveRuntime.Object)
	}
	if taken == nil {
		return ""
	}
	size, annotations := f.Size, 0
	for key, value := range f.Job.Annotations {
		if strings.HasPrefix(key, v1alpha1.AnnotationRuntimeSnapshot) {
			size -= len(key) + len(value)
			continue
		}
		annotations += len(key) + len(value)
	}
	_, text := taken.Pack().TooLarge(size, annotations)
	return text
}

// otherContent tells of a JobSet that runs on something else than is sealed, or may.
func otherContent(f Facts) *Finding {
	if sealed := f.Content.Sealed; sealed != nil && f.Trainer != nil && !f.Trainer.RuntimeSnapshot && !f.Job.Terminal() {
		return note("SealIsRecord", "", "this Trainer keeps no runtimes: what is sealed, revision %s, is a record, and not what holds it", sealed.Revision)
	}
	if !f.Content.Mismatch {
		return nil
	}
	return warning("OtherContent", "suspend and resume the TrainJob to have it built from its seal; "+check,
		"its JobSet runs on revision %s, not on what is sealed into it: it started while no webhook looked", f.Content.Revision)
}

// changed tells that the runtime is another now than what the TrainJob runs on.
func changed(f Facts) *Finding {
	job, content := f.Job, f.Content
	name := runtimeOf(job)
	if content.Live.Gone {
		if !job.Spec.RuntimeRef.Known() {
			return nil
		}
		if job.Terminal() || !job.ManagedByTrainer() {
			return note("RuntimeGone", "", "%s is gone", name)
		}
		return warning("RuntimeGone", "create the runtime anew", "%s is gone: Trainer refuses every change of the TrainJob, also to suspend or resume it", name)
	}
	different, known := content.Changed(content.Live)
	if !known || !different || content.Mismatch {
		return nil
	}
	diff := "see what: kubectl signalbox diff " + job.Name
	switch content.Next {
	case "":
		return note("RuntimeChanged", diff, "%s has changed since", name)
	case kubectl.FromLive:
		return warning("RuntimeChanged", diff, "%s has changed since, and this Trainer keeps none: the next time that the TrainJob is resumed it runs on the new one", name)
	case kubectl.FromUnknown:
		return warning("RuntimeChanged", diff, "%s has changed since; it is not known on which the TrainJob will run when it is next resumed", name)
	}
	return note("RuntimeChanged", diff, "%s has changed since; the TrainJob keeps %s", name, content.From.Text())
}
