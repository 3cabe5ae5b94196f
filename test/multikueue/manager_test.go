package multikueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// The manager's Signalbox does nothing with TrainJobs of MultiKueue, also when they are active
// and past their deadline. A TrainJob of Trainer's own shows what it would have done.
func TestKueueMultiLeavesAloneOnManager(t *testing.T) {
	s := newScene(t)
	m := s.manager
	before := m.figures()
	forged := m.forged()
	limits := map[string]change{"by-spec": deadline(1), "by-annotation": deadlineAnnotation(1)}
	for name, limit := range limits {
		// Nobody has a queue for it, so nobody runs it, and only its deadline could end it.
		changes := []change{managed(), unqueued(), limit}
		for key, value := range forged {
			changes = append(changes, annotated(key, value))
		}
		job := m.create(name, changes...)
		if !job.Active() || job.ManagedByTrainer() {
			t.Fatalf("TrainJob %s is not what this test is about: %s", name, m.state(name))
		}
	}
	own := m.create("own", unqueued(), deadlineAnnotation(4))
	m.stamp(own)
	m.becomes("own", trainer.ConditionFailed, "True/DeadlineExceeded")
	m.eventually("the figures of one TrainJob", func() (bool, string) {
		is := m.figures()
		want := figures{Waiting: before.Waiting, Expired: before.Expired + 1, Filed: is.Filed, Sealed: before.Sealed + 1}
		return is == want && is.Filed > before.Filed, cmp.Diff(want, is)
	})
	for _, found := range m.made() {
		if !strings.Contains(found, " own") {
			t.Errorf("the manager has %s", found)
		}
	}
	for name := range limits {
		job := m.stored(name)
		if status := job.Object["status"]; status != nil {
			t.Errorf("TrainJob %s has status %v", name, status)
		}
		if found := protected(job.GetAnnotations()); len(found) > 0 {
			t.Errorf("TrainJob %s has kept or got %v", name, found)
		}
	}
}

// A TrainJob that runs on the worker has there all that Signalbox makes, and on the manager
// nothing but a copy of the worker's status. What is forged is stripped on every way in.
func TestKueueMultiRunsWithoutTraceOnManager(t *testing.T) {
	s := newScene(t)
	m, w := s.manager, s.worker
	before, beforeOnWorker := m.figures(), w.figures()
	m.create("job", deadlineAnnotation(25))
	w.running("job")
	m.eventually("the worker's status", func() (bool, string) {
		is, copied := m.stored("job"), w.stored("job")
		return is.Object["status"] != nil && copied != nil && cmp.Equal(copied.Object["status"], is.Object["status"]) && m.view(is).Active(),
			m.state("job") + "; on the worker " + w.state("job")
	})
	w.filed(w.get("job"), w.revision())
	if waiting := w.figures().Waiting - beforeOnWorker.Waiting; waiting != 1 {
		t.Errorf("the worker has %v TrainJobs more whose deadline counts, want 1", waiting)
	}
	forged := m.forged()
	for key, value := range forged {
		job := m.trainJob("job")
		m.must(m.mergePatch(job, `{"metadata":{"annotations":{"`+key+`":"`+value+`"}}}`))
		if found := protected(job.GetAnnotations()); len(found) > 0 {
			t.Errorf("a patch of %s brought %v to the manager", key, found)
		}
	}
	m.becomes("job", trainer.ConditionFailed, "True/DeadlineExceeded")
	if found := m.made(); len(found) > 0 {
		t.Errorf("the manager has %v", found)
	}
	if is := m.figures(); is != before {
		t.Errorf("the manager's figures, before and after: %s", cmp.Diff(before, is))
	}
	if found := protected(m.get("job").Annotations); len(found) > 0 {
		t.Errorf("the manager's TrainJob has %v", found)
	}
	w.eventually("the event of the expiry", func() (bool, string) {
		return slices.Contains(w.events(), "Event DeadlineExceeded of job"), w.text(w.events())
	})
	// A write that is refused as a conflict, and made again, is sealed twice.
	if is := w.figures(); is.Expired != beforeOnWorker.Expired+1 || is.Sealed <= beforeOnWorker.Sealed {
		t.Errorf("the worker's figures, before and after: %s", cmp.Diff(beforeOnWorker, is))
	}
}

// Kueue itself makes a TrainJob one of MultiKueue when it comes to such a queue. What our
// webhook has done before, it takes back when it is called once more.
func TestKueueMultiWebhookBeforeKueue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m := s.manager
	m.before("kueue-mutating-webhook-configuration")
	// An active TrainJob of Trainer's is what our webhook sees first, and seals.
	var job *trainer.TrainJob
	var name string
	m.eventually("our webhook to be called before Kueue's", func() (bool, string) {
		if job != nil {
			// The API server did not know yet. Its room is for the next one.
			m.must(m.cluster.Client.Delete(m.ctx, m.trainJob(name)))
		}
		name = fmt.Sprint("job-", time.Now().UnixNano())
		before := m.figure(m.cluster.Webhook, "signalbox_runtime_seals_total")
		job = m.create(name, deadline(3600))
		return m.figure(m.cluster.Webhook, "signalbox_runtime_seals_total") > before, m.state(name)
	})
	if job.ManagedByTrainer() || job.Active() {
		t.Fatalf("Kueue has not taken it: %s", m.state(name))
	}
	if found := protected(job.Annotations); len(found) > 0 {
		t.Errorf("it is stored with %v", found)
	}
	w := s.worker
	w.running(name)
	w.stamp(w.get(name))
	if found := protected(m.get(name).Annotations); len(found) > 0 {
		t.Errorf("it has %v while it runs on the worker", found)
	}
}

// The guard of the manager counts TrainJobs of MultiKueue as users of their runtime. It must:
// the manager's Kueue computes their pods from the manager's runtime, and fails without one.
func TestKueueMultiGuardOnManager(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m := s.manager
	m.create("job", managed())
	s.worker.running("job")
	m.eventually("the guard to know of the TrainJob", func() (bool, string) {
		err := m.cluster.Client.Delete(m.ctx, m.runtimeNamed("train"), client.DryRunAll)
		return says(err, "in use by 1 unfinished TrainJob: "+s.namespace+"/job"), fmt.Sprint(err)
	})
	if err := m.alter("/spec/template/spec/replicatedJobs/0/replicas", "2"); !says(err, "cannot be changed from 1 to 2") {
		t.Errorf("other replicas: %v, want a refusal", err)
	}
	if err := m.alter(inPodTemplate("spec/containers/0/image"), `"`+newImage+`"`, client.DryRunAll); err != nil {
		t.Errorf("another image: %v", err)
	}

	m.must(m.cluster.Client.Delete(m.ctx, m.trainJob("job")))
	m.eventually("the deletion of the runtime", func() (bool, string) {
		err := m.cluster.Client.Delete(m.ctx, m.runtimeNamed("train"))
		return err == nil, fmt.Sprint(err)
	})
	// The copy goes with its TrainJob, and with it what Signalbox made of it.
	w := s.worker
	w.eventually("the end of the copy", func() (bool, string) {
		return w.stored("job") == nil && len(w.made()) == 0, w.text(w.made())
	})
	w.reserves("0")
}

// says tells whether an error has this text.
func says(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// before calls Signalbox's webhooks of the scene's namespace before those of a configuration,
// and not after: the API server calls configurations in the order of their names.
func (s *side) before(name string) {
	s.Helper()
	ours := &admissionregistrationv1.MutatingWebhookConfiguration{}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: name}, ours))
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, ours))
	if ours.Name < name {
		s.Fatalf("%s sorts before %s by itself: the order is not what this test thinks", ours.Name, name)
	}
	before := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "before-" + s.namespace}, Webhooks: ours.DeepCopy().Webhooks,
	}
	for i := range ours.Webhooks {
		excluded := &ours.Webhooks[i].NamespaceSelector.MatchExpressions[0]
		excluded.Values = append(excluded.Values, s.namespace)
		before.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
	}
	s.must(s.cluster.Client.Create(s.ctx, before))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), before) })
	s.must(s.cluster.Client.Update(s.ctx, ours))
}
