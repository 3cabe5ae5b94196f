package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// record is what is known of one TrainJob: what its user did, what was stored, and what was
// wrong about that.
type record struct {
	name    string
	limit   time.Duration
	bySpec  bool
	started time.Time // of the test

	// finished is closed once a terminal condition was seen.
	finished chan struct{}

	mu       sync.Mutex
	history  []string
	problems []string
	last     *trainer.TrainJob
	// stamp is the last one that was stored: that of the present active period, or of the
	// one before.
	stamp    time.Time
	terminal *metav1.Condition
	// seen is when the terminal condition was seen, gone when the children of the finished
	// TrainJob were seen to be gone.
	seen, gone time.Time
}

// note adds a line to the history.
func (r *record) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(format, args...)
}

func (r *record) noteLocked(format string, args ...any) {
	r.history = append(r.history, fmt.Sprintf("%8.3f ", time.Since(r.started).Seconds())+fmt.Sprintf(format, args...))
}

// problem adds something that must not be.
func (r *record) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problemLocked(format, args...)
}

func (r *record) problemLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if slices.Contains(r.problems, text) {
		return // each look finds it again
	}
	r.problems = append(r.problems, text)
	r.noteLocked("PROBLEM %s", text)
}

// stored takes in a version of the TrainJob, in the order in which they were stored, as seen
// now. Some versions may be missing in between unless next says that this one came right after
// the last.
func (r *record) stored(job *trainer.TrainJob, next bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && r.last.ResourceVersion == job.ResourceVersion {
		return
	}
	r.noteLocked("stored %s", summary(job))
	r.checkStamp(job, next)
	if meta.IsStatusConditionTrue(job.Status.Conditions, trainer.ConditionComplete) &&
		meta.IsStatusConditionTrue(job.Status.Conditions, trainer.ConditionFailed) {
		r.problemLocked("Complete and Failed are both True")
	}
	if r.terminal != nil {
		r.checkStill(job)
	} else if first := terminalOf(job); first != nil {
		r.terminal, r.seen = first, now
		r.checkEarly(job, first, next, now)
		close(r.finished)
	}
	r.last = job
}

// checkStamp checks that an active TrainJob has a stamp, a suspended one has none, and that
// it changes with a resume and else never.
func (r *record) checkStamp(job *trainer.TrainJob, next bool) {
	stamp, err := stampOf(job)
	switch {
	case !job.Active() && err == nil:
		r.problemLocked("suspended with the stamp %s", stamp)
		return
	case !job.Active():
		return
	case err != nil:
		r.problemLocked("active without a stamp: %v", err)
		return
	case stamp.Before(r.stamp):
		r.problemLocked("the stamp went back from %s to %s", r.stamp, stamp)
	case r.last != nil && r.last.Active() && next && !stamp.Equal(r.stamp):
		r.problemLocked("the stamp changed from %s to %s without a resume", r.stamp, stamp)
	case r.last != nil && !r.last.Active() && !stamp.After(r.stamp):
		r.problemLocked("resumed without a new stamp")
	}
	r.stamp = stamp
}

// checkStill checks that the terminal condition is as it was.
func (r *record) checkStill(job *trainer.TrainJob) {
	is := terminalOf(job)
	if is != nil && is.Type == r.terminal.Type && is.Reason == r.terminal.Reason && is.LastTransitionTime.Equal(&r.terminal.LastTransitionTime) {
		return
	}
	r.problemLocked("the end %s became %s", short(r.terminal), short(is))
	if is != nil {
		r.terminal = is
	}
}

// report is the whole history.
func (r *record) report() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	source := "annotation"
	if r.bySpec {
		source = "spec"
	}
	return fmt.Sprintf("TrainJob %s, limit %s by %s:\n%s", r.name, r.limit, source, strings.Join(r.history, "\n"))
}

// terminalOf returns the condition by which the TrainJob is finished, nil if it is not.
func terminalOf(job *trainer.TrainJob) *metav1.Condition {
	for _, kind := range []string{trainer.ConditionComplete, trainer.ConditionFailed} {
		if c := meta.FindStatusCondition(job.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.DeepCopy()
		}
	}
	return nil
}

// summary is what counts of a version of a TrainJob.
func summary(job *trainer.TrainJob) string {
	state := "suspended"
	if job.Active() {
		state = "active"
	}
	text := fmt.Sprintf("%s %s", job.ResourceVersion, state)
	if stamp, err := stampOf(job); err == nil {
		text += " since " + stamp.Format("15:04:05.000000")
	}
	for i := range job.Status.Conditions {
		text += ", " + short(&job.Status.Conditions[i])
	}
	return text
}

func short(c *metav1.Condition) string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s=%s/%s at %s (%s)", c.Type, c.Status, c.Reason, c.LastTransitionTime.UTC().Format("15:04:05"), c.Message)
}
