package multikueue_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// When a runtime of the worker is edited while a copy runs on it, the worker's Kueue must find
// the Workload that MultiKueue made to be that of the copy still. Without Signalbox it finds it
// out of sync, finishes it and suspends the copy; the manager's Kueue wants to send the TrainJob
// anew. That does not come about while the Workload of the worker is the finished one: the
// TrainJob keeps its quota on the manager and runs no more.
func TestKueueMultiRuntimeEditedOnWorker(t *testing.T) {
	t.Parallel()
	const outOfSync = "is out of sync with its user job"
	t.Run("without Signalbox on the worker", func(t *testing.T) {
		t.Parallel()
		s := newSceneIn(t, notOnWorker)
		m, w := s.manager, s.worker
		m.create("job")
		before := w.running("job")
		w.edit(newImage)
		m.eventually("the worker's Workload to be out of sync", func() (bool, string) {
			w.nudge("job")
			return m.tells(outOfSync), m.state("job") + "; on the worker " + w.state("job")
		})
		w.eventually("the end of the pod", func() (bool, string) { return !w.has(before[0]), w.state("job") })
	})
	t.Run("with Signalbox", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		m, w := s.manager, s.worker
		m.create("job")
		before := w.running("job")
		onManager, onWorker := m.workload("job"), w.workload("job")
		sealed := w.sealed(w.get("job")).Revision
		w.edit(newImage)
		w.knows("job", newImage)
		w.looksAgain("job")

		if is := w.workload("job"); is == nil || is.GetUID() != onWorker.GetUID() || conditionOf(is, "Finished").Status != "" {
			t.Errorf("the worker's Workload is another or finished: %s", w.text(is))
		}
		if is := m.workload("job"); is == nil || is.GetUID() != onManager.GetUID() {
			t.Errorf("the manager's Workload is another: %s", m.text(is))
		}
		if copied := w.get("job"); !copied.Active() || w.sealed(copied).Revision != sealed || w.revision() == sealed {
			t.Errorf("the copy is not as it was: %s", w.state("job"))
		}
		for _, pod := range w.running("job") {
			if pod.UID != before[0].UID || pod.Spec.Containers[0].Image != oldImage {
				t.Errorf("pod %s of %s is not the one of before", pod.Name, pod.Spec.Containers[0].Image)
			}
		}
		w.finish("job")
		m.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
		m.reserves("0")
		if m.tells(outOfSync) {
			t.Error("the worker's Workload was out of sync")
		}
	})
}

// On the manager a TrainJob of MultiKueue has no seal, but a Workload that was admitted: an edit of
// the manager's runtime changes nothing of it. Where Kueue sees the edit, it suspends the
// TrainJob and deletes its Workload, and MultiKueue takes the copy away; as the status of the
// TrainJob is brought up to date no more, Kueue mostly waits for the end of its pods for ever.
func TestKueueMultiRuntimeEditedOnManager(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m, w := s.manager, s.worker
	m.create("job")
	before, workload := w.running("job"), m.workload("job")
	m.edit(newImage)
	m.knows("job", newImage)
	m.looksAgain("job")
	if is := m.workload("job"); is == nil || is.GetUID() != workload.GetUID() {
		t.Errorf("the Workload is another: %s", m.state("job"))
	}
	if !w.has(before[0]) {
		t.Errorf("the pod is gone: %s", w.state("job"))
	}
	w.finish("job")
	m.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
	m.reserves("0")
}

// has tells whether a pod is still there.
func (s *side) has(pod corev1.Pod) bool {
	s.Helper()
	is := &corev1.Pod{ObjectMeta: pod.ObjectMeta}
	return s.find(is) && is.UID == pod.UID
}

// nudge makes Kueue look at a TrainJob: it does not watch runtimes.
func (s *side) nudge(name string) {
	s.Helper()
	if workload := s.workload(name); workload != nil {
		workload = kueueObject("Workload", s.namespace, workload.GetName(), nil)
		s.must(client.IgnoreNotFound(s.mergePatch(workload, fmt.Sprintf(`{"metadata":{"labels":{"look":"%d"}}}`, time.Now().UnixMilli()))))
	}
}

// looks is how often Kueue has looked at a TrainJob.
func (s *side) looks(name string) int {
	s.Helper()
	return s.logged(s.cluster.Kueue, `"msg":"Reconciling Job"`, `"logger":"trainjob"`, fmt.Sprintf(`"job":"%s/%s"`, s.namespace, name))
}

// looksAgain makes Kueue look at a TrainJob two times more.
func (s *side) looksAgain(name string) {
	s.Helper()
	for range 2 {
		before := s.looks(name)
		s.nudge(name)
		s.eventually("another look of Kueue at TrainJob "+name, func() (bool, string) {
			return s.looks(name) > before, s.state(name)
		})
	}
}

// knows waits until Kueue knows that the runtime "train" has this image: it says so for a
// TrainJob that waits behind the given one.
func (s *side) knows(ahead, image string) {
	s.Helper()
	next := "after-" + ahead
	s.create(next)
	s.eventually("Kueue to know of the edit", func() (bool, string) {
		workload := s.workload(next)
		if workload == nil {
			return false, s.state(next)
		}
		containers, _, _ := unstructured.NestedSlice(podSets(workload)[0].(map[string]any), "template", "spec", "containers")
		is := containers[0].(map[string]any)["image"]
		if is != image {
			// What Kueue has computed for a TrainJob that waits, it computes again.
			s.nudge(next)
		}
		return is == image, fmt.Sprint(is)
	})
	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob(next)))
}

// tells tells whether there is an event with this text in the scene's namespace.
func (s *side) tells(text string) bool {
	s.Helper()
	var list corev1.EventList
	s.must(s.cluster.Client.List(s.ctx, &list, client.InNamespace(s.namespace)))
	for _, event := range list.Items {
		if bytes.Contains([]byte(event.Message), []byte(text)) {
			return true
		}
	}
	return false
}

// logged counts the lines in the log of a part that have all these texts.
func (s *side) logged(part *cluster.Process, texts ...string) int {
	s.Helper()
	log, err := os.ReadFile(part.LogPath)
	s.must(err)
	count := 0
	for line := range bytes.Lines(log) {
		all := true
		for _, text := range texts {
			all = all && bytes.Contains(line, []byte(text))
		}
		if all {
			count++
		}
	}
	return count
}
