package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// longLimit is the limit of those TrainJobs that never reach it.
const longLimit = time.Hour

// slack is how long an object may be on its way when a TrainJob ends.
const slack = 2 * time.Second

// leftovers is how long after an outage JobSet's controller may go by a JobSet that is gone: it
// makes a Job of it once more, which garbage collection takes at once. Signalbox has no part
// in it; what stays of it is a problem all the same.
const leftovers = 15 * time.Second

func hasJobSet(objects []client.Object) bool {
	return slices.ContainsFunc(objects, func(object client.Object) bool {
		_, isJobSet := object.(*metav1.PartialObjectMetadata)
		return isJobSet
	})
}

// look compares what is there of each TrainJob with its state, and returns what has yet to
// happen, by the name of the TrainJob. Children that appear where there must be none any
// more are a problem.
func look(ctx context.Context, namespace string, records map[string]*record) (map[string]string, error) {
	var finished []*record
	for _, r := range records {
		if r.markedFinished() {
			finished = append(finished, r)
		}
	}
	found, err := children(ctx, namespace)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, r := range finished {
		r.checkChildren(found[r.name], now)
	}
	pending := map[string]string{}
	for name, r := range records {
		if text := r.pending(found[name], now); text != "" {
			pending[name] = text
		}
	}
	return pending, nil
}

func (r *record) markedFinished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.terminal != nil
}

// checkChildren looks at the children of a finished TrainJob.
func (r *record) checkChildren(found []client.Object, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.terminal.Type == trainer.ConditionComplete {
		// They stay, but none is added. A pod may have been on its way.
		for _, object := range found {
			if late := object.GetCreationTimestamp().Sub(r.seen); late > slack {
				r.problemLocked("%s appeared %s after the TrainJob was complete", describe([]client.Object{object}), late)
			}
		}
		return
	}
	switch {
	case len(found) == 0 && r.gone.IsZero():
		r.gone = now
		r.noteLocked("nothing left but the TrainJob")
	case len(found) > 0 && !r.gone.IsZero() && !hasJobSet(found) && now.Sub(r.gone) < leftovers:
		r.noteLocked("made by JobSet's controller from an old copy of the JobSet: %s", describe(found))
		r.gone = time.Time{}
	case len(found) > 0 && !r.gone.IsZero():
		r.problemLocked("back after all was gone: %s", describe(found))
		r.gone = time.Time{}
	}
	for _, object := range found {
		_, isJobSet := object.(*metav1.PartialObjectMetadata)
		if late := object.GetCreationTimestamp().Sub(r.seen); isJobSet && late > 3*slack {
			r.problemLocked("JobSet %s was created %s after the TrainJob had failed", object.GetName(), late)
		}
	}
}

// pending says what has yet to happen to the TrainJob, "" when it may stay as it is.
func (r *record) pending(found []client.Object, now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last == nil:
		return ""
	case r.terminal != nil && r.terminal.Type == trainer.ConditionFailed && len(found) > 0:
		return "failed, but there are " + describe(found)
	case r.terminal != nil || !r.last.Active() || r.limit == longLimit:
		return ""
	}
	deadline := r.stamp.Add(r.limit)
	suspended := meta.FindStatusCondition(r.last.Status.Conditions, trainer.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse && suspended.LastTransitionTime.After(r.stamp) {
		deadline = suspended.LastTransitionTime.Add(r.limit)
	}
	if late := now.Sub(deadline); late > 0 {
		return fmt.Sprintf("active, %s after its deadline, with %s", late, describe(found))
	}
	return "active until its deadline"
}

// settle looks until all TrainJobs have come to their end, or for as long as that may take.
// What is left then is a problem of its TrainJob.
func settle(ctx context.Context, namespace string, records map[string]*record, most time.Duration) error {
	var pending map[string]string
	var err error
	for end := time.Now().Add(most); time.Now().Before(end); {
		pending, err = look(ctx, namespace, records)
		if err == nil && len(pending) == 0 {
			return nil
		}
		if !pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
	for name, text := range pending {
		records[name].problem("%s after all parts were up: %s", most, text)
	}
	return err
}

// hold looks for as long as given whether something comes back.
func hold(ctx context.Context, namespace string, records map[string]*record, length time.Duration) error {
	for end := time.Now().Add(length); time.Now().Before(end); {
		if _, err := look(ctx, namespace, records); err != nil {
			return err
		}
		if !pause(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// outcome counts how the TrainJobs ended.
func outcome(records map[string]*record) string {
	counts := map[string]int{}
	for _, r := range records {
		counts[r.end()]++
	}
	ends := make([]string, 0, len(counts))
	for end, count := range counts {
		ends = append(ends, fmt.Sprintf("%d %s", count, end))
	}
	sort.Strings(ends)
	return strings.Join(ends, ", ")
}

func (r *record) end() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last == nil:
		return "never created"
	case r.terminal != nil && r.terminal.Reason == trainer.ReasonDeadlineExceeded:
		if strings.HasPrefix(r.terminal.Message, "active since ") {
			return "ended by Signalbox"
		}
		return "ended by Trainer"
	case r.terminal != nil:
		return r.terminal.Type
	case r.last.Active():
		return "active"
	default:
		return "suspended"
	}
}
