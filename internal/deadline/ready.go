package deadline

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// NeverReady tells whether no pod of a TrainJob was ever ready, as its JobSet tells, which is nil
// where there is none; else all its pods and, of pods that are gone, all its Jobs.
func NeverReady(jobSet *trainer.JobSet, pods []corev1.Pod, jobs []batchv1.Job) bool {
	return !wasRun(jobSet) && !anyReady(pods) && !anyEnded(jobs)
}

func wasRun(jobSet *trainer.JobSet) bool { return jobSet != nil && jobSet.Ran() }

func anyReady(pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return wasReady(&pod) })
}

// anyEnded tells whether a pod of the Jobs has ended. An evicted one counts as failed; whether it was
// ready before, nobody knows any more.
func anyEnded(jobs []batchv1.Job) bool {
	return slices.ContainsFunc(jobs, func(job batchv1.Job) bool { return job.Status.Failed > 0 || job.Status.Succeeded > 0 })
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
