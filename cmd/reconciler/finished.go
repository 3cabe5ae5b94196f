package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// finished brings together what is said about finished TrainJobs.
type finished struct {
	// cache holds the runtimes.
	cache    client.Reader
	policies *policy.Reader
}

// rules returns what the runtime of the TrainJob and the policies say, as they are now.
func (f *finished) rules(ctx context.Context, job *trainer.TrainJob) (ttl.Rules, error) {
	settings, err := f.settings(ctx, job)
	if err != nil {
		return ttl.Rules{}, err
	}
	rules, err := f.policies.Rules(ctx, job.Namespace, func() (trainer.RuntimeSettings, error) { return settings, nil })
	if err != nil {
		return ttl.Rules{}, err
	}
	return ttl.Rules{
		Runtime:   ttl.Default(settings.Annotations, settings.Name),
		Succeeded: limit(rules.Succeeded),
		Failed:    limit(rules.Failed),
		Max:       limit(rules.MaxTTL),
		OwnTTL:    settings.OwnTTL,
	}, nil
}

// settings returns what the runtime of the TrainJob says: the one that is sealed into it where the
// runtime is gone, be it for a moment. What is removed for want of it would not come back with
// it.
func (f *finished) settings(ctx context.Context, job *trainer.TrainJob) (trainer.RuntimeSettings, error) {
	ref := job.Spec.RuntimeRef
	if !ref.Known() {
		return trainer.RuntimeSettings{}, nil
	}
	runtime := trainer.NewRuntime(ref.GroupVersionKind().Kind)
	err := f.cache.Get(ctx, ref.Key(job.Namespace), runtime, client.UnsafeDisableDeepCopy)
	if err == nil {
		return trainer.SettingsOf(runtime.Object), nil
	}
	if !apierrors.IsNotFound(err) {
		return trainer.RuntimeSettings{}, fmt.Errorf("read runtime: %w", err)
	}
	if sealed, err := snapshot.Of(job); err == nil && sealed != nil {
		return sealed.Settings(), nil
	}
	return trainer.RuntimeSettings{}, nil
}

// limit returns the limit of a policy; nil for none.
func limit(of policy.Limit) *ttl.Limit {
	if of == (policy.Limit{}) {
		return nil
	}
	return &ttl.Limit{After: of.After, By: of.By()}
}
