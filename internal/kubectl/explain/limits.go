package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// Kind is what a limit limits.
type Kind string

// The limits that a TrainJob can have.
const (
	// ActiveDeadline is how long it may be active each time.
	ActiveDeadline Kind = "ActiveDeadline"
	// RunPolicy is the same, as a later Trainer looks after it.
	RunPolicy Kind = "RunPolicy"
	// KueueExecution is how long Kueue admits it, all admissions together.
	KueueExecution Kind = "KueueExecution"
	// RuntimeClock is one of its runtime, by which its pods end without it.
	RuntimeClock Kind = "RuntimeClock"
	// TimeToStay is how long it stays once it has finished, TimeToStaySucceeded and TimeToStayFailed
	// where that depends on how it finishes.
	TimeToStay          Kind = "TimeToStay"
	TimeToStaySucceeded Kind = "TimeToStaySucceeded"
	TimeToStayFailed    Kind = "TimeToStayFailed"
)

// author is who decided on a limit that came with the TrainJob.
const author = "its author"

// Limit is one of what can end a TrainJob.
type Limit struct {
	Kind Kind `json:"kind"`
	// Seconds is how long it is; nil for none, or where that is not known.
	Seconds *int64 `json:"seconds,omitempty"`
	// At is when it is reached; zero while it does not count.
	At time.Time `json:"at,omitzero"`
	// Text says what becomes of the TrainJob then, or why nothing does.
	Text string `json:"text"`
	// DecidedBy is who decided on it, KIND/NAME or the TrainJob's author; "" where nobody did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Where it is written; "" where nobody decided.
	Where string `json:"where,omitempty"`
}

// limits returns all that limits the TrainJob. The first is its deadline, be there one or not.
func limits(f Facts, limit kubectl.Limit, end ttl.Decision) []Limit {
	all := []Limit{deadlineLimit(f, limit)}
	if own := f.Job.OwnDeadline(); own != nil {
		all = append(all, Limit{
			Kind: RunPolicy, Seconds: own.Seconds, DecidedBy: author, Where: "spec.runPolicy.activeDeadlineSeconds",
			Text: "Trainer itself looks after it",
		})
	}
	if of := kueueLimit(f); of != nil {
		all = append(all, *of)
	}
	all = append(all, clockLimits(f)...)
	return append(all, staying(f, end)...)
}

// seconds returns a length of time as limits carry it.
func seconds(after time.Duration) *int64 { return ptr.To(int64(after / time.Second)) }

func deadlineLimit(f Facts, limit kubectl.Limit) Limit {
	job := f.Job
	if !job.ManagedByTrainer() {
		return Limit{Kind: ActiveDeadline, Text: fmt.Sprintf("not decided here: it is run by %s", ptr.Deref(job.Spec.ManagedBy, ""))}
	}
	if limit.After == 0 {
		return Limit{Kind: ActiveDeadline, Text: noDeadline(f)}
	}
	of := Limit{Kind: ActiveDeadline, Seconds: seconds(limit.After), DecidedBy: limit.By, Where: string(limit.Source)}
	if of.DecidedBy == "" {
		of.DecidedBy = author
	}
	const fails = "it fails with " + trainer.ReasonDeadlineExceeded
	switch {
	case job.DeadlineExceeded() && job.FinishedAt().Reason == trainer.ReasonDeadlineExceeded:
		of.Text = "it has failed by it"
	case job.Terminal():
		of.Text = "it counts no more: the TrainJob has finished"
	case !job.Active():
		of.Text = fmt.Sprintf("%s after it is resumed %s; it does not count while the TrainJob is suspended", exact(limit.After), fails)
	case limit.Decision.State == deadline.None:
		of.Text = "it does not count yet: Trainer still reports the TrainJob suspended"
	default:
		of.At, of.Text = whole(limit.Decision.Deadline), fails
	}
	return of
}

// noDeadline says why the TrainJob has no deadline.
func noDeadline(f Facts) string {
	text, annotated := f.Job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]
	switch after, _, _ := deadline.Limit(f.Job); {
	case after != 0 && f.Signalbox.Known:
		return "none that counts: Signalbox, which looks after the annotation " + v1alpha1.AnnotationActiveDeadlineSeconds + ", is not installed"
	case annotated && text == v1alpha1.None:
		return "none: its author opted out, by the annotation " + v1alpha1.AnnotationActiveDeadlineSeconds
	case annotated:
		return fmt.Sprintf("none: %q, in the annotation %s, is no number of seconds", text, v1alpha1.AnnotationActiveDeadlineSeconds)
	}
	return "none: nobody gave it one"
}

// kueueLimit returns how long Kueue lets the TrainJob run; nil for no limit.
func kueueLimit(f Facts) *Limit {
	label, labelled := f.Job.Labels[kueue.LabelMaxExecution]
	of := &Limit{
		Kind: KueueExecution, DecidedBy: author, Where: "label " + kueue.LabelMaxExecution,
		Text: "Kueue takes it out of its queue: it is suspended, and does not fail",
	}
	var after time.Duration
	switch {
	case f.Kueue.Workload != nil:
		after, of.At = kueue.Execution(f.Kueue.Workload)
		of.At = whole(of.At)
		if !labelled {
			of.DecidedBy, of.Where = "", "spec.maximumExecutionTimeSeconds of Workload "+f.Kueue.Workload.GetName()
		}
	case f.Kueue.installed() && labelled:
		parsed, err := strconv.ParseInt(label, 10, 32)
		if err != nil {
			return nil
		}
		after = time.Duration(parsed) * time.Second
	}
	if after <= 0 {
		return nil
	}
	of.Seconds = seconds(after)
	switch {
	case f.Job.Terminal():
		of.At, of.Text = time.Time{}, "it counts no more: the TrainJob has finished"
	case of.At.IsZero():
		of.Text = exact(after) + " of all its admissions together; then " + of.Text
	}
	return of
}

// clockLimits returns the clocks of the content that the TrainJob runs on by which pods end.
func clockLimits(f Facts) []Limit {
	if f.Content.Snapshot == nil || f.Job.Terminal() {
		return nil
	}
	var all []Limit
	for _, clock := range guard.Clocks(nil, f.Content.Snapshot.Spec()) {
		of := Limit{Kind: RuntimeClock, DecidedBy: runtimeOf(f.Job), Where: clock.Field, Text: "its pods end, and the TrainJob is not told why"}
		if value, ok := clock.BadValue.(int64); ok {
			of.Seconds = &value
		}
		if strings.HasSuffix(clock.Field, "activeDeadlineSeconds") {
			all = append(all, of)
		}
	}
	return all
}

// runtimeOf names the runtime of the TrainJob as KIND/NAME.
func runtimeOf(job *trainer.TrainJob) string {
	ref := job.Spec.RuntimeRef
	return ref.GroupVersionKind().Kind + "/" + ref.Name
}

// staying returns how long the TrainJob stays once it has finished.
func staying(f Facts, end ttl.Decision) []Limit {
	job := f.Job
	switch {
	case !job.ManagedByTrainer():
		return nil
	case job.OwnTTL():
		return []Limit{{Kind: TimeToStay, DecidedBy: author, Text: "Trainer itself removes it", Where: "its spec"}}
	case !f.Signalbox.May():
		return nil
	case f.TTL == nil:
		return []Limit{{Kind: TimeToStay, Text: "not known: what is said of it could not be read"}}
	case end.State != ttl.None:
		of := stay(TimeToStay, &ttl.Limit{After: end.After, By: end.By}, "it is deleted")
		of.At = whole(end.Expires)
		return []Limit{of}
	case f.TTL.OwnTTL:
		return []Limit{{Kind: TimeToStay, DecidedBy: runtimeOf(job), Text: "Trainer itself removes it", Where: "spec of the runtime"}}
	}
	succeeded, failed := ttl.LimitOf(job, *f.TTL, true), ttl.LimitOf(job, *f.TTL, false)
	switch finished := job.FinishedAt(); {
	case succeeded == nil && failed == nil:
		return []Limit{{Kind: TimeToStay, Text: "stays for good: nobody says how long, once it has finished"}}
	case finished != nil && !job.Active():
		return []Limit{{Kind: TimeToStay, Text: "stays as long as it is suspended"}}
	case finished != nil:
		return []Limit{{Kind: TimeToStay, Text: "stays for good: nobody says how long, as it finished"}}
	case succeeded != nil && failed != nil && *succeeded == *failed:
		return []Limit{stay(TimeToStay, succeeded, "deleted "+exact(succeeded.After)+" after it has finished")}
	}
	return []Limit{ifSo(TimeToStaySucceeded, succeeded, "succeeded"), ifSo(TimeToStayFailed, failed, "failed")}
}

// ifSo is how long the TrainJob stays if it ends in one of two ways; nil is for good.
func ifSo(kind Kind, of *ttl.Limit, how string) Limit {
	if of == nil {
		return Limit{Kind: kind, Text: "stays for good, once it has " + how}
	}
	return stay(kind, of, "deleted "+exact(of.After)+" after it has "+how)
}

// stay puts a limit of how long a TrainJob stays into the words of all limits.
func stay(kind Kind, of *ttl.Limit, text string) Limit {
	limit := Limit{Kind: kind, Seconds: seconds(of.After), Text: text, DecidedBy: of.By}
	switch name, _, _ := strings.Cut(of.By, "/"); {
	case strings.HasPrefix(of.By, "annotation "):
		limit.DecidedBy, limit.Where = author, of.By
	case name == trainer.ClusterTrainingRuntimeKind || name == trainer.TrainingRuntimeKind:
		limit.Where = "annotation " + v1alpha1.AnnotationDefaultTTLSecondsAfterFinished
	default:
		limit.Where = "spec.ttlAfterFinished"
	}
	return limit
}

// exact writes a length of time in full, such as 8h or 1h30m5s.
func exact(after time.Duration) string {
	text := after.Truncate(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// times counts what happened.
func times(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
