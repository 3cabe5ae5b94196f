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
	of := func(limit policy.Limit) ttl.Limit { return ttl.Limit{After: limit.After, By: limit.By()} }
	return ttl.RulesOf(settings, of(rules.Succeeded), of(rules.Failed), of(rules.MaxTTL)), nil
}

// settings returns what the runtime of the TrainJob says, or what is sealed of it where it is gone.
func (f *finished) settings(ctx context.Context, job *trainer.TrainJob) (trainer.RuntimeSettings, error) {
	ref := job.Spec.RuntimeRef
	if !ref.Known() {
		return trainer.RuntimeSettings{}, nil
	}
	runtime := trainer.NewRuntime(ref.GroupVersionKind().Kind)
	err := f.cache.Get(ctx, ref.Key(job.Namespace), runtime, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return snapshot.SettingsOf(job, nil), nil
	case err != nil:
		return trainer.RuntimeSettings{}, fmt.Errorf("read runtime: %w", err)
	}
	return snapshot.SettingsOf(job, runtime.Object), nil
}
