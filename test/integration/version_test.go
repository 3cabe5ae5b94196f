package integration_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// testLaterVersion uses TrainJobs in a version of the API that Signalbox does not know,
// beside the one that it does: the API server converts for it.
func testLaterVersion(t *testing.T) {
	s := newScene(t, releases[len(releases)-1])
	s.install()
	later := func(job *unstructured.Unstructured) { job.SetAPIVersion(trainer.GroupVersion.Group + "/v1beta1") }
	s.invalid(shared.Client.Create(s.ctx, s.trainJob("bad", later, deadline(4294967296))),
		"spec.activeDeadlineSeconds: Invalid value: 4294967296: must be less than or equal to 4294967295")

	job := s.trainJob("job", later, s.rich(), deadline(8))
	s.must(shared.Client.Create(s.ctx, job))
	start := s.stamp(s.view(job))
	s.must(s.apply(s.view(job))) // the JobSet's owner is of the later version, too
	s.run("job")
	got := s.warned(func(c client.Client) error {
		unstructured.RemoveNestedField(job.Object, "spec", "activeDeadlineSeconds")
		job.SetAnnotations(nil)
		return c.Update(s.ctx, job)
	})
	if len(got) != 1 || got[0] != undoneSpec || !s.stamp(s.view(job)).Equal(start) {
		s.Errorf("after a removal the warnings are %q, the annotations %v", got, job.GetAnnotations())
	}
	s.holds("job", start.Add(8*time.Second))
	s.failsAt("job", start.Add(8*time.Second))

	s.must(shared.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job))
	unstructured.RemoveNestedField(job.Object, "status", "conditions")
	s.must(asTrainer.Status().Update(s.ctx, job))
	if !s.view(job).DeadlineExceeded() {
		s.Errorf("a status write of Trainer's left the status %v", job.Object["status"])
	}
	if err := s.apply(s.view(job)); err == nil || !strings.Contains(err.Error(), "TrainJob job is finished") {
		s.Errorf("the JobSet was made again: %v", err)
	}
}
