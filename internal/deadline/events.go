package deadline

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// reasonApproaching is the reason of the event that announces a deadline.
const reasonApproaching = "DeadlineApproaching"

// aside is how long a request may take that is not needed to enforce a deadline: it must not
// eat the time of those that are.
const aside = 3 * time.Second

// tell writes a warning event about the TrainJob, once for each reason and occasion: its name
// follows from these, so that a second look, a restart or another replica finds it there. It
// is a core/v1 event with a first time stamp, since the Python SDK drops others. An event that
// cannot be written is logged and holds nothing up.
func (r *Reconciler) tell(ctx context.Context, job *trainer.TrainJob, reason, text string, occasion, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	hash := fnv.New64a()
	fmt.Fprint(hash, job.UID, occasion.UnixNano(), reason)
	at := metav1.NewTime(now)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace,
			Name:      fmt.Sprintf("%.200s.%016x", job.Name, hash.Sum64()),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: trainer.GroupVersion.String(), Kind: trainer.TrainJobKind,
			Namespace: job.Namespace, Name: job.Name, UID: job.UID,
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: text,
		Source:         corev1.EventSource{Component: FieldOwner},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	err := r.Client.Create(ctx, event, client.FieldOwner(FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		log.FromContext(ctx).Error(err, "could not write an event", "reason", reason, "message", text)
	}
}

// newsFor is how long an expiry is worth an event: a restart must not tell again of all that
// ever expired.
const newsFor = 5 * time.Minute

// tellOf writes the event of an expiry, unless it is old. The text is that of the condition
// where it says since when, how long and by what; Trainer's own does not, and is made anew.
func (r *Reconciler) tellOf(ctx context.Context, job *trainer.TrainJob, now time.Time) {
	failed := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed)
	if now.Sub(failed.LastTransitionTime.Time) > newsFor {
		return
	}
	text := failed.Message
	if !strings.HasPrefix(text, activeSinceText) {
		running := job.DeepCopy()
		meta.RemoveStatusCondition(&running.Status.Conditions, trainer.ConditionFailed)
		decision := Evaluate(running, now)
		if decision.State == None {
			return
		}
		text = exceeded(decision, false)
	}
	r.tell(ctx, job, trainer.ReasonDeadlineExceeded, text, failed.LastTransitionTime.Time, now)
}

// activeSinceText begins the texts of an expiry.
const activeSinceText = "active since "

// exceeded says what happened, for the condition and the event.
func exceeded(decision Decision, neverReady bool) string {
	text := fmt.Sprintf(activeSinceText+"%s, longer than the limit of %d s (%s)",
		decision.Start.UTC().Format(time.RFC3339), int64(decision.Limit.Seconds()), decision.Source)
	if neverReady {
		text += "; no pod was ever ready"
	}
	return text
}

// approaching says what is about to happen.
func approaching(decision Decision, now time.Time) string {
	return fmt.Sprintf("%s left of the limit of %d s (%s); active since %s",
		decision.Deadline.Sub(now).Round(time.Second), int64(decision.Limit.Seconds()), decision.Source,
		decision.Start.UTC().Format(time.RFC3339))
}
