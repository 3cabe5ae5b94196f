package multikueue_test

import (
	"context"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// policy creates a LifecyclePolicy with this spec (JSON) for the scene's namespace, which goes with
// the test, and waits until it counts for a TrainJob that is of no queue.
func (s *side) policy(spec string) string {
	s.Helper()
	var fields map[string]any
	s.must(json.Unmarshal([]byte(spec), &fields))
	fields["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.namespace}}
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	policy.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind))
	policy.SetName(s.namespace)
	s.must(s.cluster.Client.Create(s.ctx, policy))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), policy) })
	by := v1alpha1.LifecyclePolicyKind + "/" + s.namespace
	s.eventually("the policy to count", func() (bool, string) {
		probe := s.trainJob("probe", unqueued())
		s.must(s.cluster.Client.Create(s.ctx, probe, client.DryRunAll))
		return probe.GetAnnotations()[v1alpha1.AnnotationActiveDeadlineSource] == by, s.text(probe.GetAnnotations())
	})
	return by
}

// With policies on both clusters that are strict on all other TrainJobs, one that MultiKueue runs
// is none of the manager's policies, and its copy has no more than the worker's maximum; that copy
// is not removed before the manager knows how it ended, whatever the user says.
func TestPolicyOfMultiKueue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m, w := s.manager, s.worker
	m.policy(`{"activeDeadline":{"required":true,"default":"2s","max":"3s"},"ttlAfterFinished":{"succeeded":"1s","max":"1s"}}`)
	by := w.policy(`{"activeDeadline":{"required":true,"default":"2s","max":"1h"},"ttlAfterFinished":{"succeeded":"1s"}}`)

	job := m.create("job", annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, "0"))
	if job.Spec.ActiveDeadlineSeconds != nil || job.Annotations[v1alpha1.AnnotationActiveDeadlineSource] != "" {
		t.Errorf("on the manager it was given a deadline: %v, annotations %v", job.Spec.ActiveDeadlineSeconds, job.Annotations)
	}
	w.running("job")
	found := w.get("job")
	if deadline := found.Spec.ActiveDeadlineSeconds; deadline == nil || *deadline != 3600 || found.Annotations[v1alpha1.AnnotationActiveDeadlineSource] != by {
		t.Errorf("the copy has the deadline %v, annotations %v; want the maximum of %s", deadline, found.Annotations, by)
	}
	w.finish("job")
	m.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
	m.reserves("0")
	w.reserves("0")
	if job := m.get("job"); !job.DeletionTimestamp.IsZero() {
		t.Error("the manager's TrainJob is being deleted")
	}
}
