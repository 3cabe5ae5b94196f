package multikueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// MultiKueue gives its copy on the worker the annotations of the TrainJob on the manager. None
// of those that Signalbox alone writes counts: the copy is stamped and sealed anew, from the
// runtime of the worker, and has its whole deadline from its start there. When it ends by
// that, the manager's TrainJob does, and both give their quota back.
func TestKueueMultiCopyStartsAnew(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second
	for name, tc := range map[string]struct {
		namespace string
		limit     change
		// early is how much too early stock Trainer may be, which counts in whole seconds.
		early time.Duration
		// kept says that the manager's TrainJob keeps what is forged, and the copy brings it.
		kept bool
	}{
		"Signalbox on both, a deadline by annotation": {"", deadlineAnnotation(int(limit.Seconds())), 0, false},
		"Signalbox on both, a deadline in the spec":   {"", deadline(int64(limit.Seconds())), time.Second, false},
		"Signalbox on the worker alone":               {notOnManager, deadlineAnnotation(int(limit.Seconds())), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSceneIn(t, tc.namespace)
			m, w := s.manager, s.worker
			// Kueue does not compare this part of a runtime, so it may be another on each.
			w.must(w.alter(inPodTemplate("metadata/labels/team"), `"worker"`))
			forged := m.forged()
			changes := []change{tc.limit, annotated("example.com/team", "x")}
			for key, value := range forged {
				changes = append(changes, annotated(key, value))
			}
			created := m.create("job", changes...)
			want := map[string]string{}
			if tc.kept {
				want = forged
			}
			if diff := cmp.Diff(want, protected(created.Annotations)); diff != "" {
				t.Fatalf("annotations on the manager (-want +got):\n%s", diff)
			}

			for _, pod := range w.running("job") {
				if pod.Labels["team"] != "worker" {
					t.Errorf("pod %s is of the runtime of %s, want the worker's", pod.Name, pod.Labels["team"])
				}
			}
			m.reserves("1")
			w.reserves("1")
			copied := w.get("job")
			if copied.Annotations["example.com/team"] != "x" {
				t.Errorf("MultiKueue copies no annotations, so nothing forged comes to the worker: %v", copied.Annotations)
			}
			is := protected(copied.Annotations)
			maps.DeleteFunc(is, func(key, value string) bool { return value != forged[key] || key == v1alpha1.AnnotationRuntimeSource })
			if len(is) > 0 {
				t.Errorf("the copy has of what was forged %v", is)
			}
			start := w.stamp(copied)
			if start.Before(created.CreationTimestamp.Time) || start.After(time.Now()) {
				t.Errorf("the copy is stamped %s, the TrainJob was created %s", start, created.CreationTimestamp)
			}
			if sealed, revision := w.sealed(copied), w.revision(); sealed.Revision != revision || revision == m.revision() {
				t.Errorf("the copy is sealed on revision %s, want the worker's %s; the manager's is %s", sealed.Revision, revision, m.revision())
			}

			m.failsAt("job", start.Add(limit-tc.early))
			m.reserves("0")
			w.reserves("0")
			// MultiKueue deletes the copy of what is finished.
			w.eventually("the end of the copy", func() (bool, string) { return w.stored("job") == nil, w.state("job") })
		})
	}
}

// What the worker preempts waits there for room: as a suspended copy, or as a Workload alone,
// when the manager has taken the copy back and sends another with the room. In both cases the
// time between costs nothing, and a new active period begins.
func TestKueueMultiCopyPreempted(t *testing.T) {
	t.Parallel()
	// Long enough for the preemption, also on a busy machine.
	const limit = 30 * time.Second
	s := newScene(t)
	m, w := s.manager, s.worker
	m.create("job", deadlineAnnotation(int(limit.Seconds())))
	w.running("job")
	first := w.stamp(w.get("job"))
	w.create("urgent", w.priority(100))
	w.running("urgent")
	m.eventually("the end of the active period", func() (bool, string) {
		copied := w.stored("job")
		return !m.get("job").Active() && (copied == nil || !w.view(copied).Active()), m.state("job") + "; on the worker " + w.state("job")
	})
	for end := first.Add(limit + 2*time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if m.get("job").Terminal() {
			t.Fatalf("it ends by the deadline of the first period: %s", m.state("job"))
		}
	}
	w.must(w.cluster.Client.Delete(w.ctx, w.trainJob("urgent")))
	// MultiKueue may take the copy back before it has brought its last status to the manager,
	// and then waits for pods that are gone: that status is brought here.
	w.eventually("the copy", func() (bool, string) {
		if w.stored("job") == nil {
			m.noneActive("job")
		}
		copied := w.stored("job")
		return copied != nil && w.view(copied).Active(), w.state("job") + "; on the manager " + m.state("job")
	})
	w.running("job")
	copied := w.get("job")
	if again := w.stamp(copied); !again.After(first.Add(limit)) {
		t.Errorf("stamped %s, and %s before", again, first)
	}
	w.sealed(copied)
	w.finish("job")
	m.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
}

// noneActive says in the status of a TrainJob that none of its Jobs is active.
func (s *side) noneActive(name string) {
	s.Helper()
	job := s.stored(name)
	jobs, _, err := unstructured.NestedSlice(job.Object, "status", "jobsStatus")
	s.must(err)
	active := false
	for _, of := range jobs {
		of := of.(map[string]any)
		active = active || of["active"] != nil && of["active"] != int64(0)
		of["active"] = int64(0)
	}
	if !active {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"jobsStatus": jobs}})
	s.must(err)
	s.must(s.cluster.Client.Status().Patch(s.ctx, job, client.RawPatch(types.MergePatchType, patch)))
}

// failsAt waits until a TrainJob fails by its deadline, and checks that this was not before it,
// nor much later.
func (s *side) failsAt(name string, deadline time.Time) {
	s.Helper()
	failed, seen := s.becomes(name, trainer.ConditionFailed, "True/DeadlineExceeded")
	if seen.Before(deadline) || failed.LastTransitionTime.Time.Before(deadline.Truncate(time.Second)) {
		s.Errorf("TrainJob %s failed at %s on the %s, seen at %s, before its deadline at %s",
			name, failed.LastTransitionTime, s.name, seen, deadline)
	}
	// The test may have looked late. The condition says in which second it was set.
	if set := failed.LastTransitionTime.Add(time.Second); set.Before(seen) {
		seen = set
	}
	if late := seen.Sub(deadline); late > lateness {
		s.Errorf("TrainJob %s failed %s after its deadline on the %s", name, late, s.name)
	}
}

// priority makes a WorkloadPriorityClass of this value, which goes with the test, and gives
// it to a TrainJob. Without one the value is 0.
func (s *side) priority(value int64) change {
	s.Helper()
	class := kueueObject("WorkloadPriorityClass", "", fmt.Sprintf("%s-%d", s.namespace, value), nil)
	class.Object["value"] = value
	s.must(s.cluster.Client.Create(s.ctx, class))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), class) })
	return set(class.GetName(), "metadata", "labels", "kueue.x-k8s.io/priority-class")
}

// The manager leaves it to the worker to judge a deadline. One that is out of bounds is stored
// on the manager and never becomes a copy: MultiKueue tries again and again, with quota on both.
func TestKueueMultiDeadlineOutOfBounds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m, w := s.manager, s.worker
	m.create("job", deadline(9223372037))
	m.eventually("a refusal by the worker", func() (bool, string) {
		return m.logged(m.cluster.Kueue, s.namespace, "must be less than or equal to 4294967295") > 0, m.state("job")
	})
	m.reserves("1")
	w.reserves("1")
	if m.get("job").Active() || w.stored("job") != nil {
		t.Errorf("it has come to the worker: %s", w.state("job"))
	}
}
