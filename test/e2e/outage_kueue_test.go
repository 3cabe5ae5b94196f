package e2e_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// While no webhook answers, Kueue sees the edited runtime, as on stock; but it cannot suspend
// what runs, and once the webhook is back it has no reason to.
func TestOutageOfTheWebhookWithKueue(t *testing.T) {
	s := newScene(t)
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.runtime("train", asking(oldImage, "1"))
	s.queuedOn("job")
	pods, workload := s.runs("job", oldImage), s.workload("job")
	back := s.away(s.cluster.Webhook)
	s.alterTrain(newImage, "2")
	s.eventually("an attempt of Kueue to suspend it", func() (bool, string) {
		s.nudge("job")
		return s.kueueErrors("job", "failed calling webhook") > 0, s.children("job")
	})
	s.goesOn("job", pods, workload)
	// What Kueue asks just before the webhook is back and writes just after it passes: it must not be
	// about that here.
	kueue := s.away(s.cluster.Kueue)
	back()
	kueue()
	s.lookedAt("job")
	s.goesOn("job", pods, workload)
	s.useBecomes(inUseByJob)
}

// Where TrainJobs may be changed without the webhook, Kueue restarts the TrainJob for the edit, as
// on stock. When the webhook is back, it is counted for no less than it runs with, and goes on.
func TestOutageOfTheWebhookIgnoredByKueue(t *testing.T) {
	s := newScene(t)
	s.setFailurePolicy(admissionregistrationv1.Ignore, "trainjob", "jobset")
	t.Cleanup(func() { s.afterwards().setFailurePolicy(admissionregistrationv1.Fail, "trainjob", "jobset") })
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "2"))
	s.runtime("train", asking(oldImage, "1"))
	s.queuedOn("job")
	first, workload := s.runs("job", oldImage), s.workload("job")
	back := s.away(s.cluster.Webhook)
	s.alterTrain(newImage, "2")
	s.eventually("a restart by Kueue", func() (bool, string) {
		s.nudge("job")
		now, other := s.pods("job"), s.workload("job")
		return len(now) > 0 && !slices.Contains(uids(first), now[0].UID) && other != nil && other.GetUID() != workload.GetUID(), s.children("job")
	})
	pods, workload := s.runs("job", oldImage), s.workload("job")
	s.lookedAt("job")
	s.goesOn("job", pods, workload)
	back()
	s.lookedAt("job")
	s.goesOn("job", pods, workload)
	if image, cpu, count := s.asked("job"); image != newImage || cpu != "2" || count != 1 {
		t.Errorf("admitted for %d pods of %s with %s CPU", count, image, cpu)
	}
	// The next time it is admitted for what it runs.
	s.activate("job", false)
	s.workloadBecomes("job", requeued, "False/Deactivated")
	s.eventually("a Workload of what it runs", func() (bool, string) {
		s.nudge("job")
		image, cpu, _ := s.asked("job")
		return image == oldImage && cpu == "1", image + " " + cpu
	})
}
