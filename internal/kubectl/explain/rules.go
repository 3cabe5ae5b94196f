package explain

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// rules reads what the runtime and the policies say about how long the TrainJob stays.
func (r *reading) rules(ctx context.Context, namespace *metav1.PartialObjectMetadata) {
	if !r.facts.Signalbox.May() {
		return
	}
	var policies v1alpha1.LifecyclePolicyList
	read := r.Side(ctx, "LifecyclePolicies", func() error {
		err := r.List(ctx, &policies)
		if meta.IsNoMatchError(err) {
			// Without its CRD there is none.
			return nil
		}
		return err
	}, r.notes)
	var labels labels.Set
	if namespace != nil {
		labels = namespace.Labels
	}
	settings, known := r.settings()
	if !read || !known || namespace == nil && len(policies.Items) > 0 {
		return
	}
	r.facts.TTL = rulesOf(policies.Items, labels, settings)
}

// settings returns what the runtime of the TrainJob says; false where that could not be read.
func (r *reading) settings() (trainer.RuntimeSettings, bool) {
	job, content := r.facts.Job, r.facts.Content
	switch {
	case !job.Spec.RuntimeRef.Known():
		return trainer.RuntimeSettings{}, true
	case content.LiveRuntime != nil:
		return snapshot.SettingsOf(job, content.LiveRuntime.Object), true
	}
	return snapshot.SettingsOf(job, nil), content.Live.Gone
}

// rulesOf puts together what is said about TrainJobs of a namespace with these labels, on a runtime.
func rulesOf(policies []v1alpha1.LifecyclePolicy, namespace labels.Set, settings trainer.RuntimeSettings) *ttl.Rules {
	// What is known of the runtime is known already, so that nothing can fail.
	strictest, _ := policy.Strictest(policies, namespace, func() (trainer.RuntimeSettings, error) { return settings, nil })
	of := func(limit policy.Limit) ttl.Limit { return ttl.Limit{After: limit.After, By: limit.By()} }
	rules := ttl.RulesOf(settings, of(strictest.Succeeded), of(strictest.Failed), of(strictest.MaxTTL))
	return &rules
}

// leavesAlone tells whether the webhook that stamps TrainJobs is not called for those of a namespace, which is
// nil for one that could not be read; nil where that makes a difference.
func leavesAlone(configuration *admissionregistrationv1.MutatingWebhookConfiguration, namespace *metav1.PartialObjectMetadata) *bool {
	for _, hook := range configuration.Webhooks {
		if hook.Name != "trainjob."+v1alpha1.Group || hook.NamespaceSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(hook.NamespaceSelector)
		if err != nil || namespace == nil && !selector.Empty() {
			return nil
		}
		return ptr.To(!selector.Empty() && !selector.Matches(labels.Set(namespace.Labels)))
	}
	return new(bool)
}
