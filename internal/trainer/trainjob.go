// Package trainer holds what Signalbox knows of Kubeflow Trainer: names, conditions, and
// a view of the TrainJob that is limited to the fields that lifecycle rules read.
//
// The view is for reading only. It lacks most fields of the real type, whose set differs
// between the Trainer versions that Signalbox supports: writing a view back would drop
// them. Changes are made by patches that name single fields.
//
// +kubebuilder:object:generate=true
package trainer

import (
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TrainJobKind is the kind of a TrainJob.
const TrainJobKind = "TrainJob"

// ControllerName is the value of spec.managedBy, also its default, with which Trainer's
// own controller runs a TrainJob. With any other value somebody else does (MultiKueue).
const ControllerName = "trainer.kubeflow.org/trainjob-controller"

// Condition types and reasons of a TrainJob, as Trainer writes them.
const (
	ConditionSuspended = "Suspended"
	ConditionComplete  = "Complete"
	ConditionFailed    = "Failed"

	// ReasonDeadlineExceeded is the one reason of a Failed condition that Trainer keeps
	// when it looks at the TrainJob again; it must be used verbatim.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// GroupVersion is the API of the TrainJob in every Trainer v2 so far.
var GroupVersion = schema.GroupVersion{Group: "trainer.kubeflow.org", Version: "v1alpha1"}

// AddToScheme registers the views of the TrainJob and the JobSet.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TrainJob{}, &TrainJobList{})
	scheme.AddKnownTypes(JobSetGroupVersionKind.GroupVersion(), &JobSet{}, &JobSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	metav1.AddToGroupVersion(scheme, JobSetGroupVersionKind.GroupVersion())
	return nil
}

// TrainJob is the view of a TrainJob.
//
// +kubebuilder:object:root=true
type TrainJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TrainJobSpec   `json:"spec,omitempty"`
	Status TrainJobStatus `json:"status,omitempty"`
}

// TrainJobSpec is the part of a TrainJob's spec that decides its lifecycle.
type TrainJobSpec struct {
	// Suspend holds the TrainJob back when true; absent is the same as false.
	Suspend *bool `json:"suspend,omitempty"`
	// ActiveDeadlineSeconds is the deadline in seconds. Trainer knows it since 2.2.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// RuntimeRef names the runtime.
	RuntimeRef RuntimeRef `json:"runtimeRef,omitempty"`
	// Initializer says what is fetched before the training.
	Initializer *Initializer `json:"initializer,omitempty"`
	// ManagedBy names who runs the TrainJob; absent is ControllerName.
	ManagedBy *string `json:"managedBy,omitempty"`
	// TTLSecondsAfterFinished and RunPolicy no Trainer knows yet; the proposals name them.
	TTLSecondsAfterFinished *Setting   `json:"ttlSecondsAfterFinished,omitempty"`
	RunPolicy               *RunPolicy `json:"runPolicy,omitempty"`
}

// RunPolicy is the part of a run policy that decides the lifecycle.
type RunPolicy struct {
	ActiveDeadlineSeconds   *Setting `json:"activeDeadlineSeconds,omitempty"`
	TTLSecondsAfterFinished *Setting `json:"ttlSecondsAfterFinished,omitempty"`
}

// UnmarshalJSON reads a run policy; one that is no object sets nothing.
func (p *RunPolicy) UnmarshalJSON(data []byte) error {
	type fields RunPolicy
	var read fields
	// Not to read what a later Trainer may write there must not keep anybody from reading
	// TrainJobs.
	if err := json.Unmarshal(data, &read); err == nil {
		*p = RunPolicy(read)
	}
	return nil
}

// Setting is a field of a later Trainer that is set, to whatever.
type Setting struct {
	// Seconds is its value where it is a whole number.
	Seconds *int64 `json:"-"`
}

// MarshalJSON writes what was read of the value.
func (s Setting) MarshalJSON() ([]byte, error) {
	if s.Seconds == nil {
		return []byte("{}"), nil
	}
	return strconv.AppendInt(nil, *s.Seconds, 10), nil
}

// UnmarshalJSON reads a value of any type.
func (s *Setting) UnmarshalJSON(data []byte) error {
	if seconds, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		s.Seconds = &seconds
	}
	return nil
}

// Initializer is the part of a TrainJob's initializer that tells which there are.
type Initializer struct {
	Dataset *Fetched `json:"dataset,omitempty"`
	Model   *Fetched `json:"model,omitempty"`
}

// Fetched is a dataset or a model; only that there is one counts.
type Fetched struct{}

// TrainJobStatus is the part of a TrainJob's status that tells its state.
type TrainJobStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TrainJobList is a list of views.
//
// +kubebuilder:object:root=true
type TrainJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrainJob `json:"items"`
}

// Reference names the TrainJob as an event does.
func (j *TrainJob) Reference() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: GroupVersion.String(), Kind: TrainJobKind,
		Namespace: j.Namespace, Name: j.Name, UID: j.UID,
	}
}

// Active tells whether the TrainJob is not suspended.
func (j *TrainJob) Active() bool {
	return j.Spec.Suspend == nil || !*j.Spec.Suspend
}

// ManagedByTrainer tells whether Trainer's own controller runs the TrainJob.
func (j *TrainJob) ManagedByTrainer() bool {
	return j.Spec.ManagedBy == nil || *j.Spec.ManagedBy == ControllerName
}

// Terminal tells whether the TrainJob is finished, well or not.
func (j *TrainJob) Terminal() bool {
	return j.FinishedAt() != nil
}

// DeadlineExceeded tells whether the TrainJob has failed by its deadline, whoever found that.
func (j *TrainJob) DeadlineExceeded() bool {
	failed := meta.FindStatusCondition(j.Status.Conditions, ConditionFailed)
	return failed != nil && failed.Status == metav1.ConditionTrue && failed.Reason == ReasonDeadlineExceeded
}

// OwnDeadline returns the deadline of the TrainJob that Trainer itself looks after by a run
// policy; nil when there is none.
func (j *TrainJob) OwnDeadline() *Setting {
	if j.Spec.RunPolicy == nil {
		return nil
	}
	return j.Spec.RunPolicy.ActiveDeadlineSeconds
}

// OwnTTL tells whether Trainer itself removes the TrainJob after it has finished.
func (j *TrainJob) OwnTTL() bool {
	return j.Spec.TTLSecondsAfterFinished != nil ||
		j.Spec.RunPolicy != nil && j.Spec.RunPolicy.TTLSecondsAfterFinished != nil
}

// FinishedAt returns the condition by which the TrainJob is finished; nil while it is not. Of two,
// which only a status has that was written while no webhook looked, it is the earlier one.
func (j *TrainJob) FinishedAt() *metav1.Condition {
	var first *metav1.Condition
	for _, kind := range []string{ConditionComplete, ConditionFailed} {
		c := meta.FindStatusCondition(j.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionTrue && (first == nil || c.LastTransitionTime.Before(&first.LastTransitionTime)) {
			first = c
		}
	}
	return first
}

// LabelMultiKueueOrigin is on a TrainJob that Kueue copied to the cluster where it runs.
const LabelMultiKueueOrigin = "kueue.x-k8s.io/multikueue-origin"

// CopyOfMultiKueue tells whether the TrainJob is, as its labels say, a copy that Kueue made of
// one of another cluster.
func (j *TrainJob) CopyOfMultiKueue() bool {
	_, found := j.Labels[LabelMultiKueueOrigin]
	return found
}

// IsGroup tells whether an apiVersion (GROUP/VERSION) is of Trainer's group.
func IsGroup(apiVersion string) bool {
	version, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && version.Group == GroupVersion.Group
}
