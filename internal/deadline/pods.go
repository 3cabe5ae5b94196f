package deadline

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// aside is how long a request may take that is not needed to enforce a deadline: it must not
// eat the time of those that are.
const aside = 3 * time.Second

// neverReady finds out what NeverReady tells, reading no more than it takes. To list pods and Jobs
// costs the API server a look at all that the namespace has, so it is not done for what runs. It is for
// the text of an expiry alone: when they cannot be read, it says no.
func (r *Reconciler) neverReady(ctx context.Context, job *trainer.TrainJob, jobSet *trainer.JobSet) bool {
	if wasRun(jobSet) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	options := []client.ListOption{
		client.InNamespace(job.Namespace),
		client.MatchingLabels{trainer.LabelJobSetName: job.Name},
		// What the API server has in memory is new enough.
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}},
	}
	pods, jobs := &corev1.PodList{}, &batchv1.JobList{}
	if err := r.Live.List(ctx, pods, options...); err != nil {
		log.FromContext(ctx).Error(err, "could not read the pods of an expired TrainJob")
		return false
	}
	if anyReady(pods.Items) {
		return false
	}
	if err := r.Live.List(ctx, jobs, options...); err != nil {
		log.FromContext(ctx).Error(err, "could not read the Jobs of an expired TrainJob")
		return false
	}
	return !anyEnded(jobs.Items)
}
