package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// applied applies an example as a user would, with strict validation. Where it brings a runtime,
// Trainer may come to know of that a moment too late.
func (s *scene) applied(file string) {
	s.Helper()
	s.knowing(func() error {
		out, err := exec.CommandContext(s.ctx, s.cluster.Kubectl, "--kubeconfig", s.cluster.Kubeconfig, "--namespace", s.namespace,
			"apply", "--validate=strict", "--filename", file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kubectl apply: %w\n%s", err, out)
		}
		return nil
	})
}

// Each example of a TrainJob is applied as a user would, with strict validation, and runs or
// waits as it says.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/trainjob-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.applied(file)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
			s.must(s.cluster.Client.List(s.ctx, list, client.InNamespace(s.namespace)))
			if len(list.Items) != 1 {
				t.Fatalf("%d TrainJobs, want 1", len(list.Items))
			}
			job := s.view(&list.Items[0])
			if !job.Active() {
				s.becomes(job.Name, trainer.ConditionSuspended, "True/Suspended")
				s.resume(job.Name)
			}
			s.stamp(s.get(job.Name))
			s.running(job.Name)
		})
	}
}
