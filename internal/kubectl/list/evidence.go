package list

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// evidence takes from what was filed of runtimes the revisions of those TrainJobs that it is for.
type evidence struct {
	jobs map[types.UID]*trainer.TrainJob
	// at is when it is looked for; denied are the reads that are known not to be allowed.
	at     time.Time
	denied map[string]bool
}

func evidenceOf(jobs []*trainer.TrainJob) evidence {
	e := evidence{jobs: make(map[types.UID]*trainer.TrainJob, len(jobs))}
	for _, job := range jobs {
		e.jobs[job.UID] = job
	}
	return e
}

// namespaces returns the namespaces of the TrainJobs.
func (e evidence) namespaces() []string {
	seen := map[string]bool{}
	var namespaces []string
	for _, job := range e.jobs {
		if !seen[job.Namespace] {
			seen[job.Namespace] = true
			namespaces = append(namespaces, job.Namespace)
		}
	}
	return namespaces
}

// owner returns the TrainJob that controls the object, where it is one of those.
func (e evidence) owner(object *unstructured.Unstructured) *trainer.TrainJob {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return nil
	}
	return e.jobs[owner.UID]
}

// filed returns whose TrainingRuntimeSnapshot it is, and the revision of what that holds; nil where it is
// of none of the TrainJobs, or does not hold the runtime of that.
func (e evidence) filed(object *unstructured.Unstructured) (*trainer.TrainJob, string) {
	job := e.owner(object)
	if job == nil || object.GetName() != job.Name {
		return nil, ""
	}
	filed, err := viewOf(object, &v1alpha1.TrainingRuntimeSnapshot{})
	if err != nil {
		return nil, ""
	}
	is, err := snapshot.FromObject(filed)
	if err != nil || !is.IsOf(job) {
		return nil, ""
	}
	return job, is.Revision
}

// kept returns the same of a ConfigMap in which Trainer keeps a runtime.
func (e evidence) kept(object *unstructured.Unstructured) (*trainer.TrainJob, string) {
	job := e.owner(object)
	if job == nil || object.GetName() != trainer.SnapshotConfigMap(job.Name) {
		return nil, ""
	}
	text, _, err := unstructured.NestedString(object.Object, "data", trainer.SnapshotKey)
	if err != nil {
		return nil, ""
	}
	is, err := snapshot.FromYAML(text)
	if err != nil || !is.IsOf(job) {
		return nil, ""
	}
	return job, is.Revision
}

// manyNamespaces is from how many on they are not read one by one.
const manyNamespaces = 10

// where returns the namespaces in which evidence is to be looked for; "" is all of them.
func (e evidence) where() []string {
	namespaces := e.namespaces()
	if len(namespaces) >= manyNamespaces {
		return []string{""}
	}
	return namespaces
}
