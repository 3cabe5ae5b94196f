package snapshot

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// A name that is a path leads nowhere: nothing is asked for.
func TestResolverOfNamesThatArePaths(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{trainer.TrainingRuntimeKind, trainer.ClusterTrainingRuntimeKind} {
		for _, name := range []string{"other/torch", "../../other/trainingruntimes/torch", "..%2Ftorch", ".", "..", "torch/"} {
			live := newReads(builder.ClusterTrainingRuntime("torch").Obj(), builder.TrainingRuntime("other", "torch").Obj())
			_, err := NewResolver(live).Runtime(t.Context(), "ns", trainer.RuntimeRef{Name: name, Kind: ptr.To(kind)})
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s %q: %v, want NotFound", kind, name, err)
			}
			if asked := live.since(); len(asked) > 0 {
				t.Errorf("%s %q: asked for %v", kind, name, asked)
			}
		}
	}
}
