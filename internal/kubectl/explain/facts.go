package explain

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// Facts are what the cluster stores about one TrainJob. What could not be read is said so, and nothing is
// concluded from it.
type Facts struct {
	Job *trainer.TrainJob
	// Size is that of the TrainJob as JSON, in bytes.
	Size      int
	Signalbox kubectl.Installation
	// LeavesAlone tells whether the webhook of Signalbox is not called for TrainJobs of this namespace; nil
	// where that is not known.
	LeavesAlone *bool
	Content     kubectl.Content
	// JobSetUnread, PodsUnread: it could not be read whether there are any.
	JobSetUnread, PodsUnread bool
	// Pods and Jobs are those of its JobSet. Jobs are read only where it depends on them whether a pod
	// was ever ready.
	Pods []corev1.Pod
	Jobs []batchv1.Job
	// Events are those about the TrainJob and its JobSet.
	Events []corev1.Event
	// Trainer is what the installed Trainer knows; nil where that could not be read.
	Trainer *trainer.Capabilities
	Kueue   Kueue
	// TTL is what is said about how long it stays once it has finished; nil where that could not be read.
	TTL *ttl.Rules
}

// jobSet returns the JobSet that Trainer made of the TrainJob; nil where there is none, or one of somebody
// else's has its name.
func (f Facts) jobSet() *trainer.JobSet {
	if jobSet := f.Content.JobSet; jobSet != nil && metav1.IsControlledBy(jobSet, f.Job) {
		return jobSet
	}
	return nil
}

// Kueue is what is known of the TrainJob in Kueue.
type Kueue struct {
	// Installed is nil where it could not be read whether there is a Kueue.
	Installed *bool
	// Workload is that of the TrainJob; nil for none, or where Unread.
	Workload *unstructured.Unstructured
	Unread   bool
	// Position is its place in its queue, from 1 on; 0 where it does not wait or that is not known.
	Position int
}

// installed tells whether Kueue is known to be there.
func (k Kueue) installed() bool { return k.Installed != nil && *k.Installed }
