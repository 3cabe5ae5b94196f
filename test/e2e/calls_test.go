package e2e_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// The API server calls the webhooks only where something of theirs can be at stake.
func TestDeadlineWebhooksAreCalledOnlyWhenNeeded(t *testing.T) {
	s := newScene(t)
	paths := []string{"/mutate-trainjob", "/validate-trainjob", "/mutate-trainjob-status", "/validate-jobset"}
	before := map[string]float64{}
	count := func(step string, want ...float64) {
		t.Helper()
		for i, path := range paths {
			now := s.webhookCalls(path)
			if got := now - before[path]; step != "" && got != want[i] {
				t.Errorf("%s: %v calls of %s, want %v", step, got, path, want[i])
			}
			before[path] = now
		}
	}
	count("")
	s.create("job", suspended(), deadlineAnnotation(3600), set([]any{"example.com/keep"}, "metadata", "finalizers"))
	s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
	count("creation and Trainer's first look", 1, 1, 0, 1)

	// The API server makes a patch anew, webhooks and all, when somebody else writes meanwhile.
	s.rests("job")
	s.resume("job")
	s.running("job")
	s.becomes("job", trainer.ConditionSuspended, "False/Resumed")
	count("a resume", 1, 1, 0, 1)

	s.patch("job", `{"metadata":{"labels":{"a":"b"},"annotations":{"team":"x"}}}`)
	s.must(s.cluster.Client.Status().Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"jobsStatus":[]}}`))))
	count("labels, annotations of others and status", 0, 0, 0, 0)

	foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": true, "replicatedJobs": []any{map[string]any{
		"name": "a", "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "a", "image": "a"}}, "restartPolicy": "Never",
		}}}},
	}}}}}
	foreign.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	foreign.SetNamespace(s.namespace)
	foreign.SetName("foreign")
	s.must(s.cluster.Client.Create(s.ctx, foreign))
	s.must(s.cluster.Client.Patch(s.ctx, foreign, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))))
	s.must(s.cluster.Client.Delete(s.ctx, foreign))
	count("a JobSet that no TrainJob made", 0, 0, 0, 0)

	s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job"), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.patch("job", `{"metadata":{"finalizers":null}}`)
	s.gone("job")
	count("deletion, a finalizer and garbage collection", 0, 0, 0, 0)
}
