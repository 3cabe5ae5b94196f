package multikueue_test

import (
	"testing"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// A TrainJob of the manager runs on the worker, with Signalbox on both, and is complete on
// both. Its quota is free again on both.
func TestKueueMultiCompletes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, name := range []string{"first", "second"} {
		s.manager.create(name, deadlineAnnotation(3600))
		s.worker.running(name)
		s.manager.reserves("1")
		s.worker.reserves("1")
		s.worker.finish(name)
		s.manager.becomes(name, trainer.ConditionComplete, "True/AllJobsCompleted")
		s.manager.reserves("0")
		s.worker.reserves("0")
	}
}
