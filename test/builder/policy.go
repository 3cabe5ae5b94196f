package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// LifecyclePolicyBuilder makes a LifecyclePolicy.
type LifecyclePolicyBuilder struct {
	policy v1alpha1.LifecyclePolicy
}

// LifecyclePolicy starts with a policy that selects all TrainJobs and says nothing about them.
func LifecyclePolicy(name string) *LifecyclePolicyBuilder {
	b := &LifecyclePolicyBuilder{}
	b.policy.APIVersion = v1alpha1.GroupVersion.String()
	b.policy.Kind = v1alpha1.LifecyclePolicyKind
	b.policy.Name = name
	b.policy.UID = types.UID("uid-of-policy-" + name)
	b.policy.Generation = 1
	return b
}

// Obj returns the policy.
func (b *LifecyclePolicyBuilder) Obj() *v1alpha1.LifecyclePolicy { return b.policy.DeepCopy() }

// Generation sets how often the spec has been written.
func (b *LifecyclePolicyBuilder) Generation(generation int64) *LifecyclePolicyBuilder {
	b.policy.Generation = generation
	return b
}

// Deleting marks the policy as being deleted since then, held by a finalizer.
func (b *LifecyclePolicyBuilder) Deleting(since time.Time) *LifecyclePolicyBuilder {
	at := metav1.NewTime(since.Truncate(time.Second))
	b.policy.DeletionTimestamp, b.policy.Finalizers = &at, []string{"example.com/keep"}
	return b
}

// Namespaces selects the namespaces with this label.
func (b *LifecyclePolicyBuilder) Namespaces(key, value string) *LifecyclePolicyBuilder {
	return b.NamespaceSelector(&metav1.LabelSelector{MatchLabels: map[string]string{key: value}})
}

// NamespaceSelector selects namespaces.
func (b *LifecyclePolicyBuilder) NamespaceSelector(selector *metav1.LabelSelector) *LifecyclePolicyBuilder {
	b.policy.Spec.NamespaceSelector = selector
	return b
}

// Runtimes selects the runtimes with this label.
func (b *LifecyclePolicyBuilder) Runtimes(key, value string) *LifecyclePolicyBuilder {
	return b.RuntimeSelector(&metav1.LabelSelector{MatchLabels: map[string]string{key: value}})
}

// RuntimeSelector selects runtimes.
func (b *LifecyclePolicyBuilder) RuntimeSelector(selector *metav1.LabelSelector) *LifecyclePolicyBuilder {
	b.policy.Spec.RuntimeSelector = selector
	return b
}

// Default sets the default deadline.
func (b *LifecyclePolicyBuilder) Default(after time.Duration) *LifecyclePolicyBuilder {
	b.deadline().Default = duration(after)
	return b
}

// Max sets the longest deadline.
func (b *LifecyclePolicyBuilder) Max(after time.Duration) *LifecyclePolicyBuilder {
	b.deadline().Max = duration(after)
	return b
}

// Required requires a deadline.
func (b *LifecyclePolicyBuilder) Required() *LifecyclePolicyBuilder {
	b.deadline().Required = true
	return b
}

// Succeeded sets how long a TrainJob that is Complete stays.
func (b *LifecyclePolicyBuilder) Succeeded(after time.Duration) *LifecyclePolicyBuilder {
	b.ttl().Succeeded = duration(after)
	return b
}

// Failed sets how long a TrainJob that is Failed stays.
func (b *LifecyclePolicyBuilder) Failed(after time.Duration) *LifecyclePolicyBuilder {
	b.ttl().Failed = duration(after)
	return b
}

// MaxTTL sets the longest that a finished TrainJob stays.
func (b *LifecyclePolicyBuilder) MaxTTL(after time.Duration) *LifecyclePolicyBuilder {
	b.ttl().Max = duration(after)
	return b
}

func (b *LifecyclePolicyBuilder) deadline() *v1alpha1.ActiveDeadlinePolicy {
	if b.policy.Spec.ActiveDeadline == nil {
		b.policy.Spec.ActiveDeadline = &v1alpha1.ActiveDeadlinePolicy{}
	}
	return b.policy.Spec.ActiveDeadline
}

func (b *LifecyclePolicyBuilder) ttl() *v1alpha1.TTLPolicy {
	if b.policy.Spec.TTLAfterFinished == nil {
		b.policy.Spec.TTLAfterFinished = &v1alpha1.TTLPolicy{}
	}
	return b.policy.Spec.TTLAfterFinished
}

func duration(after time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: after}}
}
