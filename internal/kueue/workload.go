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

// MultiKueue is who runs, by spec.managedBy, the TrainJobs that run on another cluster.
const MultiKueue = "kueue.x-k8s.io/multikueue"

// Settle is how long Kueue's cache may take to hold what was written to a runtime. Until then
// Kueue may ask by what the runtime was before.
const Settle = time.Minute

// Newest returns the newest of the Workloads that the TrainJob controls, one that is being deleted
// only when there is no other; nil when there is none.
func Newest(workloads []unstructured.Unstructured, job *trainer.TrainJob) *unstructured.Unstructured {
	var newest *unstructured.Unstructured
	for i := range workloads {
		workload := &workloads[i]
		if metav1.IsControlledBy(workload, job) && (newest == nil || before(newest, workload)) {
			newest = workload
		}
	}
	return newest
}

// before tells whether a Workload counts less than another.
func before(a, b *unstructured.Unstructured) bool {
	if gone, goes := a.GetDeletionTimestamp() != nil, b.GetDeletionTimestamp() != nil; gone != goes {
		return gone
	}
	return a.GetCreationTimestamp().Time.Before(b.GetCreationTimestamp().Time)
}

// Conditions of a Workload.
const (
	// QuotaReserved tells that there is quota for it.
	QuotaReserved = "QuotaReserved"
	// Evicted tells that its job is to be stopped, or has been.
	Evicted = "Evicted"
	// Admitted tells that its job may run, and also that all checks have agreed.
	Admitted = "Admitted"
)

// Is tells whether a condition of the Workload is True.
func Is(workload *unstructured.Unstructured, condition string) bool {
	for _, is := range list(child(workload.Object, "status"), "conditions") {
		if is["type"] == condition {
			return is["status"] == "True"
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
// revision and is sealed into it or not. A JobSet that runs has passed the gate. One that is held
// back is built anew by a Trainer that keeps no snapshots.
func ContentOf(jobSet *unstructured.Unstructured, job *trainer.TrainJob, revision string, sealed, keeps bool) Content {
	if !metav1.IsControlledBy(jobSet, job) || jobSet.GetDeletionTimestamp() != nil {
		return Other
	}
	suspended, _, _ := unstructured.NestedBool(jobSet.Object, "spec", "suspend")
	has := jobSet.GetAnnotations()[v1alpha1.AnnotationRuntimeRevision]
	switch {
	case suspended && !keeps:
		return Untold
	case !suspended || has == revision || has == "" && !sealed:
		// Trainer builds what was taken over as it did, without a revision.
		return Snapshot
	case has == "":
		return Untold
	}
	return Other
}
