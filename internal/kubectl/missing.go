package kubectl

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
)

// ErrNoTrainer says that there are no TrainJobs because nobody knows the kind.
var ErrNoTrainer = errors.New("this cluster has no TrainJobs: Kubeflow Trainer is not installed")

// WithoutTrainer returns ErrNoTrainer in the place of an error by which the kind of TrainJobs is not known,
// and every other error as it is.
func WithoutTrainer(err error) error {
	if meta.IsNoMatchError(err) {
		return ErrNoTrainer
	}
	return err
}
