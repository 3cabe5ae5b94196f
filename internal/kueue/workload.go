package kueue

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// LabelJobUID is on a Workload and holds the UID of the job that it is of.
const LabelJobUID = "kueue.x-k8s.io/job-uid"

// Settle is how long Kueue's cache may take to hold what was written to a runtime. Until then
// Kueue may ask by what the runtime was before.
const Settle = time.Minute

// Newest returns the newest of the Workloads that the TrainJob controls and that are not being
// deleted; nil when there is none.
func Newest(workloads []unstructured.Unstructured, job *trainer.TrainJob) *unstructured.Unstructured {
	var newest *unstructured.Unstructured
	for i := range workloads {
		workload := &workloads[i]
		if !metav1.IsControlledBy(workload, job) || workload.GetDeletionTimestamp() != nil {
			continue
		}
		if newest == nil || newest.GetCreationTimestamp().Time.Before(workload.GetCreationTimestamp().Time) {
			newest = workload
		}
	}
	return newest
}

// HasQuota tells whether quota is reserved for the Workload.
func HasQuota(workload *unstructured.Unstructured) bool {
	for _, condition := range list(child(workload.Object, "status"), "conditions") {
		if condition["type"] == "QuotaReserved" {
			return condition["status"] == "True"
		}
	}
	return false
}

// Content is what a JobSet is built from.
type Content int

const (
	// Other is a JobSet that does not start, or none.
	Other Content = iota
	// Untold is one that may start and does not say.
	Untold
	// Snapshot is one that runs, or is built from the snapshot of its TrainJob.
	Snapshot
)

// ContentOf tells what a JobSet is built from, when the snapshot of the TrainJob has this
// revision and is sealed into it or not. A JobSet that runs has passed the gate.
func ContentOf(jobSet *unstructured.Unstructured, job *trainer.TrainJob, revision string, sealed bool) Content {
	if !metav1.IsControlledBy(jobSet, job) || jobSet.GetDeletionTimestamp() != nil {
		return Other
	}
	suspended, _, _ := unstructured.NestedBool(jobSet.Object, "spec", "suspend")
	has := jobSet.GetAnnotations()[v1alpha1.AnnotationRuntimeRevision]
	switch {
	case !suspended || has == revision || has == "" && !sealed:
		// Trainer builds what was taken over as it did, without a revision.
		return Snapshot
	case has == "":
		return Untold
	}
	return Other
}
