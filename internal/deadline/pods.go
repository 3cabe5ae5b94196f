package deadline

import (
	"context"
	"slices"
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

// neverReady tells whether no pod of the TrainJob was ever ready, as its JobSet tells, which is nil
// where there is none; else its pods and, of pods that are gone, its Jobs. To list these costs the
// API server a look at all that the namespace has, so it is not done for what runs. It is for
// the text of an expiry alone: when they cannot be read, it says no.
func (r *Reconciler) neverReady(ctx context.Context, job *trainer.TrainJob, jobSet *trainer.JobSet) bool {
	if jobSet != nil && jobSet.Ran() {
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
	if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return wasReady(&pod) }) {
		return false
	}
	if err := r.Live.List(ctx, jobs, options...); err != nil {
		log.FromContext(ctx).Error(err, "could not read the Jobs of an expired TrainJob")
		return false
	}
	// An evicted pod counts as failed; whether it was ready before, nobody knows any more.
	return !slices.ContainsFunc(jobs.Items, func(job batchv1.Job) bool {
		return job.Status.Failed > 0 || job.Status.Succeeded > 0
	})
}

// wasReady tells whether the pod is or was ready, or may follow one that was: pods of an
// earlier attempt of the JobSet are gone.
func wasReady(pod *corev1.Pod) bool {
	if attempt := pod.Labels[trainer.LabelRestartAttempt]; attempt != "" && attempt != "0" {
		return true
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.RestartCount > 0 || container.State.Running != nil || container.State.Terminated != nil {
			return true
		}
	}
	return false
}
