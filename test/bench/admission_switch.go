package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// patience is how long anything may take that a bench waits for and does not measure.
const patience = time.Minute

// signalboxSwitch turns Signalbox off and on in a cluster that was started with it. Off, its
// webhook configurations are deleted and the reconciler is stopped; the webhook's process goes on,
// uncalled.
type signalboxSwitch struct {
	cluster        *cluster.Cluster
	configurations []client.Object
}

// newSwitch keeps the webhook configurations as they are. Signalbox is on.
func newSwitch(ctx context.Context, c *cluster.Cluster) (*signalboxSwitch, error) {
	s := &signalboxSwitch{cluster: c, configurations: []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{},
	}}
	for _, configuration := range s.configurations {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: v1alpha1.FieldManager}, configuration); err != nil {
			return nil, fmt.Errorf("read the webhook configuration: %w", err)
		}
		configuration.SetResourceVersion("")
		configuration.SetUID("")
		configuration.SetManagedFields(nil)
	}
	return s, nil
}

// off returns when the API server calls no webhook of Signalbox any more.
func (s *signalboxSwitch) off(ctx context.Context) error {
	for _, configuration := range s.configurations {
		if err := s.cluster.Client.Delete(ctx, configuration); err != nil {
			return fmt.Errorf("delete the webhook configuration: %w", err)
		}
	}
	if err := s.cluster.Reconciler.Stop(ctx); err != nil {
		return err
	}
	return s.prove(ctx, false)
}

// on returns when the API server calls both webhooks of TrainJobs and the reconciler is ready.
func (s *signalboxSwitch) on(ctx context.Context) error {
	for _, configuration := range s.configurations {
		if err := s.cluster.Client.Create(ctx, configuration.DeepCopyObject().(client.Object)); err != nil {
			return fmt.Errorf("create the webhook configuration: %w", err)
		}
	}
	if err := s.cluster.Reconciler.Start(ctx); err != nil {
		return err
	}
	return s.prove(ctx, true)
}

// prove waits until dry runs show that both webhook configurations are called, or that none is: the
// one stamps a TrainJob that is active, the other refuses a deadline of 0 s.
func (s *signalboxSwitch) prove(ctx context.Context, on bool) error {
	return eventually(ctx, "the API server to know whether Signalbox is there", func(ctx context.Context) error {
		job := trainJob(metav1.NamespaceDefault, "probe", builtIn, nil)
		if err := s.cluster.Client.Create(ctx, job, client.DryRunAll); err != nil {
			return err
		}
		if _, stamped := job.GetAnnotations()[v1alpha1.AnnotationResumedAt]; stamped != on {
			return fmt.Errorf("an active TrainJob is stamped = %v", stamped)
		}
		job = trainJob(metav1.NamespaceDefault, "probe", builtIn, nil)
		job.SetAnnotations(map[string]string{v1alpha1.AnnotationActiveDeadlineSeconds: "0"})
		err := s.cluster.Client.Create(ctx, job, client.DryRunAll)
		if !on {
			return err
		}
		if err == nil {
			return errors.New("a deadline of 0 s is not refused")
		}
		if !apierrors.IsInvalid(err) {
			return err
		}
		return nil
	})
}

// eventually asks until check returns nil, for at most patience, and returns its last error then.
func eventually(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
