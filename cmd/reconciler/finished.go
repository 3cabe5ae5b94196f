package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// finished brings together what is said about finished TrainJobs.
type finished struct {
	// cache holds the runtimes.
	cache    client.Reader
	policies *policy.Reader
}

// rules returns what the runtime of the TrainJob and the policies say, as they are now. A runtime
// that is gone says nothing and has no labels.
func (f *finished) rules(ctx context.Context, job *trainer.TrainJob) (ttl.Rules, error) {
	var settings trainer.RuntimeSettings
	if ref := job.Spec.RuntimeRef; ref.Known() {
		runtime := trainer.NewRuntime(ref.GroupVersionKind().Kind)
		err := f.cache.Get(ctx, ref.Key(job.Namespace), runtime, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return ttl.Rules{}, fmt.Errorf("read runtime: %w", err)
		}
		if err == nil {
			settings = trainer.SettingsOf(runtime.Object)
		}
	}
	rules, err := f.policies.Rules(ctx, job.Namespace, labels.Set(settings.Labels))
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

// limit returns the limit of a policy; nil for none.
func limit(of policy.Limit) *ttl.Limit {
	if of == (policy.Limit{}) {
		return nil
	}
	return &ttl.Limit{After: of.After, By: of.By()}
}
