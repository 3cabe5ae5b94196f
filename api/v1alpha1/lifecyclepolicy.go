package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LifecyclePolicyKind is the kind of a LifecyclePolicy.
const LifecyclePolicyKind = "LifecyclePolicy"

// ConditionReady is the condition of a LifecyclePolicy that tells whether it is in force.
const ConditionReady = "Ready"

// LifecyclePolicy says how long the TrainJobs that it selects may run, and how long they stay
// after they have finished. Of several that select a TrainJob, the strictest of each limit
// counts. Deadlines are decided when a TrainJob is created, so a policy does not touch the
// deadlines of those that exist; how long a finished TrainJob stays is decided by the policies
// as they are at the moment.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=lifecyclepolicies,scope=Cluster,shortName=lcp
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.activeDeadline.default`
// +kubebuilder:printcolumn:name="Max",type=string,JSONPath=`.spec.activeDeadline.max`
// +kubebuilder:printcolumn:name="Required",type=boolean,JSONPath=`.spec.activeDeadline.required`
// +kubebuilder:printcolumn:name="TTL-Succeeded",type=string,JSONPath=`.spec.ttlAfterFinished.succeeded`
// +kubebuilder:printcolumn:name="TTL-Failed",type=string,JSONPath=`.spec.ttlAfterFinished.failed`
// +kubebuilder:printcolumn:name="TTL-Max",type=string,JSONPath=`.spec.ttlAfterFinished.max`,priority=1
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.matchingNamespaces`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LifecyclePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the policy selects and what it limits.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.activeDeadline) || has(self.ttlAfterFinished)",message="must set activeDeadline, ttlAfterFinished or both"
	Spec LifecyclePolicySpec `json:"spec"`

	// status is what the reconciler has found.
	// +optional
	Status LifecyclePolicyStatus `json:"status,omitempty"`
}

// LifecyclePolicySpec is what a policy selects and what it limits.
type LifecyclePolicySpec struct {
	// namespaceSelector selects the namespaces of the TrainJobs by their labels; absent or empty,
	// all. It is checked as the label selectors of Kubernetes are, but only once it is stored:
	// see the condition Ready.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// runtimeSelector selects the runtimes of the TrainJobs by their labels; absent or empty,
	// all. A runtime that is gone has no labels.
	// +optional
	RuntimeSelector *metav1.LabelSelector `json:"runtimeSelector,omitempty"`

	// activeDeadline limits how long a TrainJob may be active.
	// +optional
	ActiveDeadline *ActiveDeadlinePolicy `json:"activeDeadline,omitempty"`

	// ttlAfterFinished limits how long a TrainJob stays after it has finished.
	// +optional
	TTLAfterFinished *TTLPolicy `json:"ttlAfterFinished,omitempty"`
}

// ActiveDeadlinePolicy limits how long TrainJobs may be active, each time that they become
// active.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.max) || [self.default, self.max].exists(d, !d.matches('^([0-9]{1,6}h([0-9]{1,6}m)?([0-9]{1,8}s)?|[0-9]{1,6}m([0-9]{1,8}s)?|[0-9]{1,8}s)$')) || duration(self.default) <= duration(self.max)",message="default must not be more than max",fieldPath=".default"
type ActiveDeadlinePolicy struct {
	// default is the deadline of a TrainJob that has none of its own or of its runtime. A
	// TrainJob may opt out of it, by the annotation active-deadline-seconds with the value
	// "none", where no max and no requirement applies.
	// +optional
	Default *Duration `json:"default,omitempty"`

	// max is the longest deadline that a TrainJob may have. A TrainJob without a deadline gets
	// it, a longer default is cut to it, and a TrainJob that asks for more is refused.
	// +optional
	Max *Duration `json:"max,omitempty"`

	// required refuses TrainJobs that have no deadline, neither of their own nor by a default.
	// +optional
	Required bool `json:"required,omitempty"`
}

// TTLPolicy limits how long TrainJobs stay after they have finished.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.succeeded) || !has(self.max) || [self.succeeded, self.max].exists(d, !d.matches('^([0-9]{1,6}h([0-9]{1,6}m)?([0-9]{1,8}s)?|[0-9]{1,6}m([0-9]{1,8}s)?|[0-9]{1,8}s)$')) || duration(self.succeeded) <= duration(self.max)",message="succeeded must not be more than max",fieldPath=".succeeded"
// +kubebuilder:validation:XValidation:rule="!has(self.failed) || !has(self.max) || [self.failed, self.max].exists(d, !d.matches('^([0-9]{1,6}h([0-9]{1,6}m)?([0-9]{1,8}s)?|[0-9]{1,6}m([0-9]{1,8}s)?|[0-9]{1,8}s)$')) || duration(self.failed) <= duration(self.max)",message="failed must not be more than max",fieldPath=".failed"
type TTLPolicy struct {
	// succeeded is how long a TrainJob that is Complete stays, where neither it nor its runtime
	// says so.
	// +optional
	Succeeded *Duration `json:"succeeded,omitempty"`

	// failed is how long a TrainJob that is Failed stays, where neither it nor its runtime says
	// so.
	// +optional
	Failed *Duration `json:"failed,omitempty"`

	// max is the longest that any finished TrainJob stays, whatever it, its runtime or another
	// policy says.
	// +optional
	Max *Duration `json:"max,omitempty"`
}

// Duration is a length of time in whole seconds, at least one, at most 119 years: a text of
// hours, minutes and seconds, each at most once and in this order, such as 8h, 90m or 1h30m0s.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h([0-9]{1,6}m)?([0-9]{1,8}s)?|[0-9]{1,6}m([0-9]{1,8}s)?|[0-9]{1,8}s)$') && duration(self) >= duration('1s')",message="must be hours, minutes and seconds in this order, of at most 6, 6 and 8 digits, at least 1s in all, such as 8h, 90m or 1h30m0s"
type Duration struct {
	metav1.Duration `json:",inline"`
}

// LifecyclePolicyStatus is what the reconciler has found of a policy.
type LifecyclePolicyStatus struct {
	// observedGeneration is the generation of the policy that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchingNamespaces is how many namespaces the policy selects.
	// +optional
	MatchingNamespaces *int32 `json:"matchingNamespaces,omitempty"`

	// conditions: Ready is True where the policy is in force, and False where it selects nothing
	// because one of its selectors is not valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LifecyclePolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type LifecyclePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LifecyclePolicy `json:"items"`
}
