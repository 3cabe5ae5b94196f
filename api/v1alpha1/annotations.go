package v1alpha1

// Annotations that users set on a TrainJob.
const (
	// AnnotationActiveDeadlineSeconds is the deadline of a TrainJob where its API has no
	// spec.activeDeadlineSeconds (Trainer before 2.2, older SDKs). A whole number of
	// seconds from 1 to 4294967295, or "none" to opt out of a default. The spec field, when
	// set, wins.
	AnnotationActiveDeadlineSeconds = Group + "/active-deadline-seconds"
	// AnnotationTTLSecondsAfterFinished is how long the TrainJob stays after it has finished: a
	// whole number of seconds from 0, which is at once, to 4294967295, or "none" to opt out of a
	// default.
	AnnotationTTLSecondsAfterFinished = Group + "/ttl-seconds-after-finished"
)

// Annotations that the webhook alone writes on a TrainJob. Whatever a client sends for
// them is dropped when the TrainJob is created and put back to the stored value when it
// is updated.
const (
	// AnnotationResumedAt is the start of the present active period: RFC 3339 with
	// nanoseconds, in UTC. Absent while the TrainJob is suspended.
	AnnotationResumedAt = Group + "/resumed-at"
	// AnnotationActiveDeadlineSource names, as KIND/NAME, the runtime or the LifecyclePolicy
	// whose default or limit is the deadline of the TrainJob. Absent where the TrainJob came
	// with its deadline.
	AnnotationActiveDeadlineSource = Group + "/active-deadline-source"
	// AnnotationRuntimeSource names the runtime of the TrainJob as KIND/NAME.
	AnnotationRuntimeSource = Group + "/runtime-source"
	// AnnotationRuntimeRevision is the revision of the runtime's content. The webhook also
	// keeps it in the template annotations of every runtime, from where Trainer copies it
	// to the JobSet.
	AnnotationRuntimeRevision = Group + "/runtime-revision"
	// AnnotationRuntimeSnapshot is the sealed runtime: JSON, compressed by gzip, in base64.
	AnnotationRuntimeSnapshot = Group + "/runtime-snapshot"
)

// ProtectedAnnotations lists the annotations of a TrainJob that the webhook alone writes,
// sorted.
func ProtectedAnnotations() []string {
	return []string{
		AnnotationActiveDeadlineSource,
		AnnotationResumedAt,
		AnnotationRuntimeRevision,
		AnnotationRuntimeSnapshot,
		AnnotationRuntimeSource,
	}
}

// Annotations that admins set on a runtime: what its TrainJobs have by default. Whole numbers of
// seconds, from 1 the deadline and from 0 the other, to 4294967295.
const (
	AnnotationDefaultActiveDeadlineSeconds   = Group + "/default-active-deadline-seconds"
	AnnotationDefaultTTLSecondsAfterFinished = Group + "/default-ttl-seconds-after-finished"
)

// AnnotationAllowDisruption is set to "true" on a runtime by an admin, to let its next deletion
// through, or its next edit that is refused while TrainJobs use the runtime. Such an edit
// takes it away.
const AnnotationAllowDisruption = Group + "/allow-disruption"

// AnnotationSnapshotSource is on the objects that hold a snapshot and names its runtime as
// KIND/NAME. The name of the annotation is that of the Kubeflow proposal.
const AnnotationSnapshotSource = "trainer.kubeflow.org/snapshot-source"

// LabelRuntimeRevision is on the ConfigMap from which Trainer reads the runtime of a TrainJob,
// once Signalbox looks after it. Its value is the revision of the content.
const LabelRuntimeRevision = Group + "/runtime-revision"
