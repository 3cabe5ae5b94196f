package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// notBuilt tells of a TrainJob that is active and has no JobSet.
func notBuilt(f Facts, now time.Time) *Finding {
	since := f.became(now)
	if !f.runs() || f.JobSetUnread || f.Content.JobSet != nil || since.IsZero() || now.Sub(since) < promptly || !f.Job.DeletionTimestamp.IsZero() {
		return nil
	}
	return warning("NoJobSet", "see whether Trainer's controller runs, and kubectl describe trainjob "+f.Job.Name,
		"it is active for %s and has no JobSet%s", span(now.Sub(since)), because(f, now))
}

// held tells of a TrainJob that is active while its JobSet is held back.
func held(f Facts, now time.Time) *Finding {
	since := f.became(now)
	jobSet := f.Content.JobSet // perhaps of somebody else's
	switch {
	case !f.runs() || jobSet == nil || since.IsZero() || now.Sub(since) < promptly:
		return nil
	case f.jobSet() == nil:
		return warning("OthersJobSet", "delete that JobSet, or give the TrainJob another name",
			"there is a JobSet of its name that belongs to somebody else, so Trainer cannot make one")
	case jobSet.Suspended() && !jobSet.Finished():
		return warning("JobSetHeld", "see whether Trainer's controller runs, and kubectl describe trainjob "+f.Job.Name,
			"it is active for %s and its JobSet is still suspended%s", span(now.Sub(since)), because(f, now))
	}
	return nil
}

// because adds what the last warning event says.
func because(f Facts, now time.Time) string {
	if text := lastWarning(f, now, time.Hour); text != "" {
		return "; the last warning: " + text
	}
	return ""
}

// neverReady tells of a TrainJob no pod of which was ever ready.
func neverReady(f Facts, limit kubectl.Limit, now time.Time) *Finding {
	job, jobSet := f.Job, f.jobSet()
	if job.Terminal() {
		if ended := job.FinishedAt(); ended.Type == trainer.ConditionFailed && strings.Contains(ended.Message, "no pod was ever ready") {
			return warning("NeverReady", "give it what its pods waited for, or more time", "no pod of it was ever ready")
		}
		return nil
	}
	since := f.became(now)
	if !f.runs() || f.PodsUnread || jobSet == nil || jobSet.Suspended() || jobSet.Finished() || since.IsZero() ||
		!deadline.NeverReady(jobSet, f.Pods, f.Jobs) {
		return nil
	}
	age := now.Sub(since)
	text := fmt.Sprintf("no pod was ready yet, %s after it became active%s", span(age), trouble(f.Pods))
	rest := limit.Decision.RequeueAfter
	if age < starting && (limit.Decision.State == deadline.None || rest > limit.Decision.Limit/4) {
		return note("NeverReady", "", "%s", text)
	}
	return warning("NeverReady", "see kubectl describe pods -l "+trainer.LabelJobSetName+"="+job.Name, "%s", text)
}

// trouble says what the pods wait for, what most of them do first.
func trouble(pods []corev1.Pod) string {
	if len(pods) == 0 {
		return ": it has no pods"
	}
	counts := map[string]int{}
	for i := range pods {
		if text := waiting(&pods[i]); text != "" {
			counts[text]++
		}
	}
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var said []string
	for _, text := range texts[:min(len(texts), 3)] {
		said = append(said, fmt.Sprintf("%s: %s", times(counts[text], "pod"), text))
	}
	if len(said) == 0 {
		return ""
	}
	return "; " + strings.Join(said, "; ")
}

// waiting says what a pod waits for; "" where it does not tell.
func waiting(pod *corev1.Pod) string {
	for _, is := range pod.Status.Conditions {
		if is.Type == corev1.PodScheduled && is.Status == corev1.ConditionFalse {
			return is.Reason + ": " + is.Message
		}
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waits := container.State.Waiting
		if waits == nil || waits.Reason == "" || waits.Reason == "ContainerCreating" || waits.Reason == "PodInitializing" {
			continue
		}
		if waits.Message == "" {
			return waits.Reason
		}
		return waits.Reason + ": " + waits.Message
	}
	return ""
}

// restarted tells how often all its pods were started anew.
func restarted(f Facts) *Finding {
	jobSet := f.jobSet()
	if jobSet == nil || jobSet.Status.Restarts == 0 || f.Job.Terminal() {
		return nil
	}
	return note("Restarted", "", "its pods were started anew, all of them, %s; the deadline goes on counting over that",
		times(int(jobSet.Status.Restarts), "time"))
}

// inKueue tells what is wrong with the TrainJob in Kueue.
func inKueue(f Facts, now time.Time) *Finding {
	job, workload := f.Job, f.Kueue.Workload
	queue := kueue.QueueOf(workload, job)
	switch {
	case queue == "" || job.Terminal():
		return nil
	case f.Kueue.Installed != nil && !*f.Kueue.Installed:
		return warning("NoKueue", "", "it asks for queue %s of Kueue, which is not installed: nobody holds it back or resumes it", queue)
	case f.Kueue.Unread || !f.Kueue.installed():
		return nil
	case workload == nil && !job.Active() && now.Sub(job.CreationTimestamp.Time) >= promptly:
		return warning("NoWorkload", "see whether Kueue runs, and whether its integration of TrainJobs is on",
			"it waits for Kueue, which has made no Workload of it")
	case workload == nil:
		return nil
	case kueue.Deactivated(workload):
		return warning("Deactivated", "set spec.active of Workload "+workload.GetName()+" to true to queue it again",
			"Kueue has taken it out of its queue%s", ended(workload.GetName(), evictedBy(f)))
	}
	return nil
}

// evictedBy says why Kueue stopped the TrainJob; "" where it did not.
func evictedBy(f Facts) string {
	for _, is := range kueue.Conditions(f.Kueue.Workload) {
		if is.Type == kueue.Evicted && is.Status == metav1.ConditionTrue {
			return reasoned(is)
		}
	}
	return ""
}

// ended adds why to what is said of a Workload.
func ended(workload, why string) string {
	if why == "" {
		return fmt.Sprintf(": spec.active of Workload %s is false", workload)
	}
	return ": " + why
}
