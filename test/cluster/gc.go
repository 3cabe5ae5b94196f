package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// proveGarbageCollector waits until the garbage collector knows TrainJobs and
// JobSets: it removes a JobSet after its owner. Until then a test would see
// orphans that no real cluster has. No controller acts on the pair, since it is
// managed by Kueue's multi-cluster dispatcher, which does not run.
func (c *Cluster) proveGarbageCollector(ctx context.Context) error {
	owner := newTrainJobObject("garbage-collector-probe", "torch-distributed")
	dependent := newJobSetObject("garbage-collector-probe")
	for _, o := range []object{owner.Object, dependent.Object} {
		o["spec"].(object)["managedBy"] = "kueue.x-k8s.io/multikueue"
	}
	if err := c.Client.Create(ctx, owner); err != nil {
		return err
	}
	dependent.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}})
	if err := c.Client.Create(ctx, dependent); err != nil {
		return err
	}
	if err := c.Client.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	return c.await(ctx, "the garbage collector", func(ctx context.Context) error {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(dependent), dependent)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			return errors.New("a JobSet outlives its TrainJob")
		default:
			return err
		}
	})
}
