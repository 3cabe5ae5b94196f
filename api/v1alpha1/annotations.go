// Package v1alpha1 holds the public names of Signalbox: the annotations that it
// reads and writes on the objects of Kubeflow Trainer.
package v1alpha1

// Group is the API group of Signalbox's own kinds and the prefix of all its annotations.
const Group = "lifecycle.trainer.kubeflow.org"

// Annotations that users set on a TrainJob.
const (
	// AnnotationActiveDeadlineSeconds is the deadline of a TrainJob where its API has no
	// spec.activeDeadlineSeconds (Trainer before 2.2, older SDKs). A whole number of
	// seconds from 1 to 4294967295. The spec field, when set, wins.
	AnnotationActiveDeadlineSeconds = Group + "/active-deadline-seconds"
)

// Annotations that the webhook alone writes on a TrainJob. Whatever a client sends for
// them is dropped when the TrainJob is created and put back to the stored value when it
// is updated.
const (
	// AnnotationResumedAt is the start of the present active period: RFC 3339 with
	// nanoseconds, in UTC. Absent while the TrainJob is suspended.
	AnnotationResumedAt = Group + "/resumed-at"
	// AnnotationRuntimeSource names the runtime of the TrainJob as KIND/NAME.
	AnnotationRuntimeSource = Group + "/runtime-source"
	// AnnotationRuntimeRevision is the revision of the runtime's content.
	AnnotationRuntimeRevision = Group + "/runtime-revision"
	// AnnotationRuntimeSnapshot is the sealed content of the runtime.
	AnnotationRuntimeSnapshot = Group + "/runtime-snapshot"
)

// ProtectedAnnotations lists the annotations of a TrainJob that the webhook alone writes,
// sorted.
func ProtectedAnnotations() []string {
	return []string{
		AnnotationResumedAt,
		AnnotationRuntimeRevision,
		AnnotationRuntimeSnapshot,
		AnnotationRuntimeSource,
	}
}
