package e2e_test

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// stayAnnotation is how long a TrainJob stays after it has finished.
func stayAnnotation(seconds int) change {
	return annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, fmt.Sprint(seconds))
}

// staysFor sets or, with null, takes away the time that a TrainJob says itself that it stays
// (JSON).
func (s *scene) staysFor(name, value string) error {
	s.Helper()
	return s.patchAny(s.trainJob(name), fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationTTLSecondsAfterFinished, value))
}

// finishedAs lets a TrainJob have finished now, as its status says, without waiting for its pods.
func (s *scene) finishedAs(name, kind string) {
	s.Helper()
	s.finishedAt(name, kind, time.Now())
}

// finishedAt lets a TrainJob have finished at an instant. What its condition says, the webhook keeps.
func (s *scene) finishedAt(name, kind string, at time.Time) {
	s.Helper()
	s.must(s.cluster.Client.Status().Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, endPatch(kind, at))))
}

func endPatch(kind string, at time.Time) []byte {
	reason := "AllJobsCompleted"
	if kind == trainer.ConditionFailed {
		// Any other Trainer takes away.
		reason = trainer.ReasonDeadlineExceeded
	}
	return fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True","reason":%q,"message":"by a test","lastTransitionTime":%q}]}}`,
		kind, reason, at.UTC().Format(time.RFC3339))
}

// stayed is for how long stays looks: longer than the time that a TrainJob would have there.
const stayed = 2500 * time.Millisecond

// stays checks for a while that a finished TrainJob is not removed.
func (s *scene) stays(names ...string) {
	s.Helper()
	s.staysUntil(time.Now().Add(stayed), names...)
}

// staysUntil checks, again and again until the instant end, that TrainJobs are not removed.
func (s *scene) staysUntil(end time.Time, names ...string) {
	s.Helper()
	for ; time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, name := range names {
			job := s.trainJob(name)
			err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job)
			if (apierrors.IsNotFound(err) || err == nil && job.GetDeletionTimestamp() != nil) && time.Now().Before(end) {
				s.Fatalf("TrainJob %s is removed %s before it may be: %v", name, time.Until(end), s.events(name, "TTLExpired"))
			}
			s.must(client.IgnoreNotFound(err))
		}
	}
}

// removedText is what the event of a removal says.
func removedText(finished time.Time, seconds int, by string) string {
	return fmt.Sprintf("finished at %s, to stay %d s (%s)", finished.UTC().Format(time.RFC3339), seconds, by)
}

// byAnnotation is how the time to stay is named that a TrainJob says itself.
const byAnnotation = "annotation " + v1alpha1.AnnotationTTLSecondsAfterFinished

// sight is what was seen of a TrainJob by a watch: its versions and its end.
type sight struct {
	s    *scene
	name string

	mu       sync.Mutex
	versions []*trainer.TrainJob
	// finished is when the first finished version came, removed when it was deleted.
	finished, removed time.Time
}

// watched watches a TrainJob that is to be created, until the test ends.
func (s *scene) watched(name string) *sight {
	s.Helper()
	seen := &sight{s: s, name: name}
	s.each(name, seen.add)
	return seen
}

func (w *sight) add(object *unstructured.Unstructured, kind watch.EventType) {
	now, job := time.Now(), &trainer.TrainJob{}
	// A test may fail in its own goroutine alone; what cannot be read has no end, which is seen.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions = append(w.versions, job)
	if w.finished.IsZero() && job.Terminal() {
		w.finished = now
	}
	if kind == watch.Deleted {
		w.removed = now
	}
}

// goes waits until the TrainJob is deleted, checks that this was not before it had finished for
// so many seconds, nor much later, and returns it as it was last, and how long after its time that
// was seen. The time of a finish is that of its condition, in whole seconds, so one that is to go
// at once is measured from when that was seen.
func (w *sight) goes(seconds int) (*trainer.TrainJob, time.Duration) {
	w.s.Helper()
	w.s.eventually("the end of TrainJob "+w.name, func() (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.removed.IsZero(), w.s.text(w.versions)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.versions[len(w.versions)-1]
	end := last.FinishedAt()
	if end == nil {
		w.s.Fatalf("TrainJob %s is removed unfinished: %s", w.name, w.s.text(last))
	}
	due := end.LastTransitionTime.Add(time.Duration(seconds) * time.Second)
	if w.removed.Before(due) {
		w.s.Errorf("TrainJob %s is removed %s too early", w.name, due.Sub(w.removed))
	}
	if w.finished.After(due) {
		due = w.finished
	}
	late := w.removed.Sub(due)
	if late > lateness {
		w.s.Errorf("TrainJob %s is removed %s too late", w.name, late)
	}
	return last, late
}

// leavesNothing waits until nothing is left of what was made of a TrainJob that is gone.
func (s *scene) leavesNothing(name string) {
	s.Helper()
	s.deleted(name)
	s.gone(name)
	s.eventually("the end of what is kept of TrainJob "+name, func() (bool, string) {
		config, filed := s.configMap(name), s.filed(name)
		return config == nil && filed == nil, s.text([]any{config, filed})
	})
}

// cleanUps is how often the clean-up has looked at a TrainJob.
func (s *scene) cleanUps() float64 {
	s.Helper()
	return s.figure(shared.Reconciler, "controller_runtime_reconcile_total", "controller", "ttl")
}

// removals is how many TrainJobs the clean-up has removed by such a source.
func (s *scene) removals(source string) float64 {
	s.Helper()
	return s.figure(shared.Reconciler, "signalbox_ttl_deletions_total", "source", source)
}

// namespaceGone deletes the scene's namespace and waits for its end.
func (s *scene) namespaceGone() {
	s.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.must(s.cluster.Client.Delete(s.ctx, namespace))
	s.eventually("the end of the namespace", func() (bool, string) {
		err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), s.text(namespace.Status)
	})
}
