package trainer

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// JobSetGroupVersionKind is the kind of the object that Trainer makes of a TrainJob, with the
// TrainJob's name and the TrainJob as its controller owner.
var JobSetGroupVersionKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}

// Labels that JobSet puts on the pods of a JobSet: its name, and how many times it was
// started anew.
const (
	LabelJobSetName     = "jobset.sigs.k8s.io/jobset-name"
	LabelRestartAttempt = "jobset.sigs.k8s.io/restart-attempt"
)

// JobSet is the view of a JobSet: whether it is held back, whether it has run and whether it is
// finished. Like the view of the TrainJob it is for reading only.
//
// +kubebuilder:object:root=true
type JobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   JobSetSpec   `json:"spec,omitempty"`
	Status JobSetStatus `json:"status,omitempty"`
}

// JobSetSpec is the part of a JobSet's spec that tells whether it may run.
type JobSetSpec struct {
	// Suspend holds the JobSet back when true; absent is the same as false.
	Suspend *bool `json:"suspend,omitempty"`
}

// JobSetStatus is the part of a JobSet's status that tells its end.
type JobSetStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Restarts counts how often all its Jobs were made anew.
	Restarts int32 `json:"restarts,omitempty"`
	// ReplicatedJobsStatus counts the Jobs of each replicatedJob.
	ReplicatedJobsStatus []ReplicatedJobStatus `json:"replicatedJobsStatus,omitempty"`
}

// ReplicatedJobStatus is the part of the counts of Jobs that tells of those that run or have ended.
type ReplicatedJobStatus struct {
	// Ready counts those whose pods are all ready or have succeeded.
	Ready     int32 `json:"ready,omitempty"`
	Succeeded int32 `json:"succeeded,omitempty"`
	Failed    int32 `json:"failed,omitempty"`
}

// JobSetList is a list of views.
//
// +kubebuilder:object:root=true
type JobSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []JobSet `json:"items"`
}

// Suspended tells whether the JobSet is held back.
func (j *JobSet) Suspended() bool { return ptr.Deref(j.Spec.Suspend, false) }

// Progressed tells whether any of its Jobs has ended.
func (j *JobSet) Progressed() bool {
	return slices.ContainsFunc(j.Status.ReplicatedJobsStatus, func(jobs ReplicatedJobStatus) bool { return jobs.Succeeded+jobs.Failed > 0 })
}

// Ran tells whether it is plain from its counts that pods of it were ready: where it is not, some may
// have been all the same.
func (j *JobSet) Ran() bool {
	return j.Progressed() || slices.ContainsFunc(j.Status.ReplicatedJobsStatus, func(jobs ReplicatedJobStatus) bool { return jobs.Ready > 0 })
}

// Finished tells whether the JobSet has ended, well or not. Trainer copies that to the
// TrainJob when it next looks.
func (j *JobSet) Finished() bool {
	return meta.IsStatusConditionTrue(j.Status.Conditions, "Completed") ||
		meta.IsStatusConditionTrue(j.Status.Conditions, "Failed")
}
