package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// bareWorkers is how many TrainJobs the bare client works on side by side: more than Signalbox's
// reconciler does, so that the API server is the limit.
const bareWorkers = 32

// bareUser is who the bare client is. The API server queues its requests as those of any service
// account; those of the cluster's admin would be exempt.
const bareUser = "system:serviceaccount:default:bare-client"

// bareClient ends TrainJobs by what cannot be left out: the status and the deletion.
type bareClient struct{ client.Client }

func newBareClient(ctx context.Context, c *cluster.Cluster) (*bareClient, error) {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bare-client"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: bareUser}},
	}
	if err := c.Client.Create(ctx, binding); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := trainer.AddToScheme(scheme); err != nil {
		return nil, err
	}
	opened, err := client.New(c.ConfigFor(bareUser), client.Options{Scheme: scheme})
	return &bareClient{opened}, err
}

// end ends the TrainJobs of the namespace, and returns when each status was
// stored.
func (b *bareClient) end(ctx context.Context, namespace string, count int) (map[client.ObjectKey]time.Time, error) {
	patch, err := failedPatch()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	answered := map[client.ObjectKey]time.Time{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bareWorkers)
	for i := range count {
		group.Go(func() error {
			job, jobSet := &trainer.TrainJob{}, &trainer.JobSet{}
			job.Namespace, job.Name = namespace, numbered(i)
			jobSet.Namespace, jobSet.Name = job.Namespace, job.Name
			if err := b.Status().Patch(ctx, job, patch); err != nil {
				return fmt.Errorf("set Failed: %w", err)
			}
			mu.Lock()
			answered[client.ObjectKeyFromObject(job)] = time.Now()
			mu.Unlock()
			if err := b.Delete(ctx, jobSet, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				return fmt.Errorf("delete JobSet: %w", err)
			}
			return nil
		})
	}
	return answered, group.Wait()
}

// failedPatch is the patch that sets Failed.
func failedPatch() (client.Patch, error) {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{
		Type: trainer.ConditionFailed, Status: metav1.ConditionTrue, Reason: trainer.ReasonDeadlineExceeded,
		Message: "active since 2026-03-01T12:00:00Z, longer than the limit of 60 s (spec.activeDeadlineSeconds)", LastTransitionTime: metav1.Now(),
	}}}})
	return client.RawPatch(types.MergePatchType, patch), err
}

// again is how often it is looked whether what has ended still has.
const again = time.Second

// keep ends once more, until the context is over, what Trainer took up again: it may write a status
// that it took before the TrainJob failed, and make the JobSet anew.
func (b *bareClient) keep(ctx context.Context, namespace string) error {
	patch, err := failedPatch()
	for err == nil && pass(ctx, again) == nil {
		var jobs trainer.TrainJobList
		var jobSets trainer.JobSetList
		err = errors.Join(b.List(ctx, &jobs, client.InNamespace(namespace)), b.List(ctx, &jobSets, client.InNamespace(namespace)))
		for i := range jobs.Items {
			if !jobs.Items[i].Terminal() {
				err = errors.Join(err, b.Status().Patch(ctx, &jobs.Items[i], patch))
			}
		}
		for i := range jobSets.Items {
			if jobSets.Items[i].DeletionTimestamp.IsZero() {
				gone := b.Delete(ctx, &jobSets.Items[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
				err = errors.Join(err, client.IgnoreNotFound(gone))
			}
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
