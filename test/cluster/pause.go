package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trainerLease is what Trainer's released configuration calls its lease.
var trainerLease = client.ObjectKey{Namespace: trainerNamespace, Name: "trainer.kubeflow.org"}

const (
	pauseHolder  = "held-by-a-test"
	pauseSeconds = 60
)

// PauseTrainer restarts Trainer in such a way that its webhooks serve but its
// controller does nothing, as if another replica led and had died: this process
// holds and renews its lease until ResumeTrainer or Close. A second call in a row
// is an error.
func (c *Cluster) PauseTrainer(ctx context.Context) error {
	if c.trainerPaused() {
		return errors.New("trainer is paused already")
	}
	if err := c.Trainer.Stop(ctx); err != nil {
		return err
	}
	if err := c.setTrainerLease(ctx, pauseHolder); err != nil {
		return err
	}
	renew, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.renewTrainerLease(renew)
	}()
	c.mu.Lock()
	c.unpause = func() { stop(); <-done }
	c.mu.Unlock()
	return c.Trainer.Start(ctx)
}

// ResumeTrainer lets a paused Trainer act and returns when it leads, about a
// second later. Its caches are warm: it works through what has come up at once.
func (c *Cluster) ResumeTrainer(ctx context.Context) error {
	if !c.endPause() {
		return errors.New("trainer is not paused")
	}
	if err := c.setTrainerLease(ctx, ""); err != nil {
		return err
	}
	return c.await(ctx, "Trainer to take its lease", c.trainerLeads)
}

func (c *Cluster) trainerPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unpause != nil
}

// endPause stops the renewal of the lease; it returns false if there is none.
func (c *Cluster) endPause() bool {
	c.mu.Lock()
	unpause := c.unpause
	c.unpause = nil
	c.mu.Unlock()
	if unpause == nil {
		return false
	}
	unpause()
	return true
}

func (c *Cluster) renewTrainerLease(ctx context.Context) {
	ticker := time.NewTicker(pauseSeconds / 6 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// The API server may be stopped just now; the lease outlives some failures.
			if err := c.setTrainerLease(ctx, pauseHolder); err != nil && ctx.Err() == nil {
				c.log.step("renewing Trainer's lease: %v", err)
			}
		}
	}
}

// setTrainerLease gives the lease to the holder, or to nobody with "". The last write of a Trainer
// that was killed may come between.
func (c *Cluster) setTrainerLease(ctx context.Context, holder string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return c.writeTrainerLease(ctx, holder) })
}

func (c *Cluster) writeTrainerLease(ctx context.Context, holder string) error {
	now := metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To(holder),
		LeaseDurationSeconds: ptr.To[int32](pauseSeconds),
		AcquireTime:          &now,
		RenewTime:            &now,
	}
	lease := &coordinationv1.Lease{}
	err := c.Client.Get(ctx, trainerLease, lease)
	switch {
	case apierrors.IsNotFound(err) && holder == "":
		return nil
	case apierrors.IsNotFound(err):
		lease.Namespace, lease.Name, lease.Spec = trainerLease.Namespace, trainerLease.Name, spec
		return c.Client.Create(ctx, lease)
	case err != nil:
		return err
	}
	lease.Spec = spec
	return c.Client.Update(ctx, lease)
}

func (c *Cluster) trainerLeads(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	if err := c.Client.Get(ctx, trainerLease, lease); err != nil {
		return err
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "" || holder == pauseHolder {
		return fmt.Errorf("the lease is held by %q", holder)
	}
	return nil
}
