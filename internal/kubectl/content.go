package kubectl

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// From says what a TrainJob is built from.
type From string

const (
	// FromSeal is what is sealed into the TrainJob.
	FromSeal From = "seal"
	// FromSnapshot is what was filed for it as a TrainingRuntimeSnapshot when it was taken over.
	FromSnapshot From = "snapshot"
	// FromTrainer is what Trainer keeps for it in a ConfigMap.
	FromTrainer From = "trainer"
	// FromLive is the runtime as it is now.
	FromLive From = "live"
	// FromJobSet is content of which only the revision is known, which its JobSet carries.
	FromJobSet From = "jobset"
	// FromElsewhere is the content of another cluster, or of another controller.
	FromElsewhere From = "elsewhere"
	// FromUnknown is content of which nothing is known.
	FromUnknown From = "unknown"
)

// Text says it for people, to be put after "it runs on".
func (f From) Text() string {
	switch f {
	case FromSeal:
		return "what is sealed into it"
	case FromSnapshot:
		return "what was filed when it was taken over"
	case FromTrainer:
		return "what Trainer keeps for it"
	case FromLive:
		return "the runtime as it is now"
	case FromJobSet:
		return "what its JobSet was built from"
	case FromElsewhere:
		return "what the controller has that runs it"
	}
	return "content that is not known"
}

// Live is the runtime that a TrainJob refers to, as it is now. The zero value is one that was not
// read, or could not be.
type Live struct {
	// Revision of its content.
	Revision string
	// Gone: there is none of that name.
	Gone bool
}

// Facts are what is known of a TrainJob and of what belongs to it.
type Facts struct {
	Job *trainer.TrainJob
	// Keeps tells whether the installed Trainer keeps the runtime of a TrainJob and builds from
	// that alone (trainer.Capabilities); nil while that is not known. One that does not builds from
	// the live runtime whenever the TrainJob is suspended or resumed, whatever is sealed.
	Keeps *bool
	// JobSet is the one of the TrainJob's name; nil for none.
	JobSet *trainer.JobSet
	// JobSetUnread: it could not be read whether there is one.
	JobSetUnread bool
	// Filed and Kept are the revisions of what the TrainingRuntimeSnapshot and Trainer's ConfigMap
	// of the TrainJob hold; "" for none. They count for a TrainJob that is not sealed.
	Filed, Kept string
	// KeptUnread: one of the two could not be read.
	KeptUnread bool
	Live       Live
}

// Built is what a TrainJob runs on, has run on, or will run on when it first starts.
type Built struct {
	From From
	// Revision of the content; "" when it is not known.
	Revision string
	// Why is a sentence that says why the revision is not known; "" when it is.
	Why string
	// Next is what the TrainJob will be built from when it is next resumed; "" when it is finished.
	Next From
	// Mismatch: its JobSet runs on another revision than is sealed, which no JobSet that passed
	// Signalbox's webhook does.
	Mismatch bool
}

// Content is what one TrainJob runs on, with the content itself.
type Content struct {
	Built
	Live Live
	// LiveRuntime is the runtime as it is now; nil where it is gone or could not be read.
	LiveRuntime *unstructured.Unstructured
	// Sealed is what is sealed into the TrainJob; nil where nothing is, or SealErr says why it cannot
	// be read: it counts for nothing then.
	Sealed  *snapshot.Snapshot
	SealErr error
	// Snapshot is the content that the TrainJob runs on, of the revision of Built; nil where no more
	// than that is known of it.
	Snapshot *snapshot.Snapshot
	// JobSet is the one of the TrainJob's name; nil where there is none or, by JobSetUnread, that could
	// not be read.
	JobSet       *trainer.JobSet
	JobSetUnread bool
}

// Changed tells whether the runtime has changed since the content was taken that the TrainJob
// runs on; known is false where that cannot be told. One that is gone has not changed.
func (b Built) Changed(live Live) (changed, known bool) {
	if b.Revision == "" || live.Revision == "" {
		return false, false
	}
	return b.Revision != live.Revision, true
}

// SealedRevision returns the revision of what is sealed into the TrainJob, as its annotations say,
// without unpacking it; "" when it is not sealed.
func SealedRevision(job *trainer.TrainJob) string {
	if job.Annotations[v1alpha1.AnnotationRuntimeSnapshot] == "" {
		return ""
	}
	return job.Annotations[v1alpha1.AnnotationRuntimeRevision]
}

// Follows tells whether the TrainJob, which waits and has not been active yet, follows its
// runtime: its creation was seen, and it is sealed when it first starts.
func Follows(job *trainer.TrainJob) bool {
	return !job.Active() && !job.Terminal() && job.Annotations[v1alpha1.AnnotationRuntimeSource] != ""
}

// BuiltFrom tells what a TrainJob is built from. It says nothing that the facts do not show: a
// seal is what runs only where Trainer builds from it, or a JobSet carries its revision.
func BuiltFrom(f Facts) Built {
	if !f.Job.ManagedByTrainer() {
		why := fmt.Sprintf("it is run by %s, and the content that counts is there", ptr.Deref(f.Job.Spec.ManagedBy, ""))
		return Built{From: FromElsewhere, Why: why, Next: FromElsewhere}.finish(f)
	}
	if f.Keeps != nil && *f.Keeps {
		return f.kept().finish(f)
	}
	if f.Keeps == nil && SealedRevision(f.Job) == "" && Follows(f.Job) && f.Filed == "" {
		// Every Trainer builds it from the runtime when it first starts.
		return f.fromLive(FromLive).finish(f)
	}
	return f.rebuilt().finish(f)
}

// kept is for a Trainer that builds a TrainJob from what is kept for it alone.
func (f Facts) kept() Built {
	sealed, runs := SealedRevision(f.Job), f.running()
	switch {
	case sealed != "" && runs != nil && *runs != "" && *runs != sealed:
		return Built{From: FromJobSet, Revision: *runs, Next: FromSeal, Mismatch: true}
	case sealed != "":
		return Built{From: FromSeal, Revision: sealed, Next: FromSeal}
	case f.Filed != "":
		return Built{From: FromSnapshot, Revision: f.Filed, Next: FromSnapshot}
	case Follows(f.Job):
		return f.fromLive(FromLive)
	case f.Kept != "":
		return Built{From: FromTrainer, Revision: f.Kept, Next: FromTrainer}
	case runs != nil && *runs != "":
		return Built{From: FromJobSet, Revision: *runs, Next: FromTrainer}
	case f.KeptUnread:
		return unknown("what Trainer keeps for it could not be read", FromTrainer)
	case runs != nil || f.Job.Terminal():
		return unknown("nothing is kept of the runtime that it was built from", FromUnknown)
	case f.JobSetUnread:
		return unknown("its JobSet could not be read", FromUnknown)
	}
	// Trainer has not looked at it yet.
	return f.fromLive(FromLive)
}

// rebuilt is for a Trainer that keeps nothing, and for one of which that is not known.
func (f Facts) rebuilt() Built {
	sealed, runs := SealedRevision(f.Job), f.running()
	next := FromLive
	if f.Keeps == nil {
		next = FromUnknown
	}
	if runs != nil && *runs != "" {
		from := FromJobSet
		switch *runs {
		case sealed:
			from = FromSeal
		case f.Filed:
			from = FromSnapshot
		case f.Kept:
			from = FromTrainer
		case f.Live.Revision:
			from = FromLive
		}
		return Built{From: from, Revision: *runs, Next: next}
	}
	switch {
	case f.Keeps == nil:
		return unknown("whether this Trainer builds from what is kept for a TrainJob is told by the CRD of TrainJobs, which could not be read", next)
	case f.Job.Terminal():
		return unknown("this Trainer keeps no runtimes, and no JobSet of the TrainJob tells which revision it ran on", next)
	case runs != nil:
		return unknown("this Trainer keeps no runtimes, and the JobSet of the TrainJob does not tell its revision", next)
	case f.Job.Active() && f.JobSetUnread:
		return unknown("this Trainer keeps no runtimes, and the JobSet of the TrainJob could not be read", next)
	}
	return f.fromLive(next)
}

// running returns the revision that the JobSet of the TrainJob carries, "" for none, where that
// runs or has run to its end; nil when there is no such JobSet.
func (f Facts) running() *string {
	if f.JobSet == nil || !metav1.IsControlledBy(f.JobSet, f.Job) || f.JobSet.DeletionTimestamp != nil || f.JobSet.Suspended() {
		return nil
	}
	return ptr.To(f.JobSet.Annotations[v1alpha1.AnnotationRuntimeRevision])
}

func (f Facts) fromLive(next From) Built {
	built := Built{From: FromLive, Revision: f.Live.Revision, Next: next}
	switch {
	case f.Live.Gone:
		built.Why = "its runtime is gone"
	case f.Live.Revision == "":
		built.Why = "its runtime could not be read"
	}
	return built
}

func unknown(why string, next From) Built { return Built{From: FromUnknown, Why: why, Next: next} }

// finish takes from a finished TrainJob what it would be built from next.
func (b Built) finish(f Facts) Built {
	if f.Job.Terminal() {
		b.Next = ""
	}
	return b
}
