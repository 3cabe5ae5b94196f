package deadline

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// neverReady tells whether no pod of the TrainJob was ever ready, as far as its pods still
// tell. It is for the text of an expiry alone: when the pods cannot be read, it says no.
func (r *Reconciler) neverReady(ctx context.Context, job *trainer.TrainJob) bool {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	pods := &corev1.PodList{}
	err := r.Live.List(ctx, pods, client.InNamespace(job.Namespace),
		client.MatchingLabels{trainer.LabelJobSetName: job.Name},
		// What the API server has in memory is new enough.
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	if err != nil {
		log.FromContext(ctx).Error(err, "could not read the pods of an expired TrainJob")
		return false
	}
	for i := range pods.Items {
		if wasReady(&pods.Items[i]) {
			return false
		}
	}
	return true
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
