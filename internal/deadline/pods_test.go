package deadline

import (
	"context"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

func TestReconcileTellsWhetherAPodWasReady(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "ns", "pod"
		pod.Labels = map[string]string{trainer.LabelJobSetName: "job", trainer.LabelRestartAttempt: "0"}
		change(pod)
		return pod
	}
	container := func(status corev1.ContainerStatus) *corev1.Pod {
		return pod(func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{status} })
	}
	evicted := func(status batchv1.JobStatus) *batchv1.Job {
		job := &batchv1.Job{Status: status}
		job.Namespace, job.Name = "ns", "job-node-0"
		job.Labels = map[string]string{trainer.LabelJobSetName: "job"}
		return job
	}
	for name, tc := range map[string]struct {
		pod  client.Object
		want bool
	}{
		"none, its Job has one coming": {pod: evicted(batchv1.JobStatus{Active: 1})},
		"none, its Job lost one":       {pod: evicted(batchv1.JobStatus{Active: 1, Failed: 1}), want: true},
		"none, its Job is done":        {pod: evicted(batchv1.JobStatus{Succeeded: 1}), want: true},
		"pending":                      {pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })},
		"pulling its image":            {pod: container(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}})},
		"of another job":               {pod: pod(func(p *corev1.Pod) { p.Labels[trainer.LabelJobSetName] = "other"; p.Status.Conditions = ready })},
		"ready":                        {pod: pod(func(p *corev1.Pod) { p.Status.Conditions = ready }), want: true},
		"running, not yet ready":       {pod: container(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}), want: true},
		"crashed":                      {pod: container(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}), want: true},
		"crashed before":               {pod: container(corev1.ContainerStatus{RestartCount: 1}), want: true},
		"of a second attempt":          {pod: pod(func(p *corev1.Pod) { p.Labels[trainer.LabelRestartAttempt] = "1" }), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := dueJob().Obj()
			b := newBench(t, interceptor.Funcs{}, job, jobSetOf(job), tc.pod)
			if _, err := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			text := meta.FindStatusCondition(b.job(t).Status.Conditions, "Failed").Message
			if got := !strings.HasSuffix(text, "; no pod was ever ready"); got != tc.want {
				t.Errorf("message = %q, want it to say that a pod was ready = %v", text, tc.want)
			}
		})
	}
}

// What the JobSet counts tells that pods were ready without a look at all pods of the namespace.
func TestReconcileListsOnlyWhatTheJobSetDoesNotTell(t *testing.T) {
	for name, tc := range map[string]struct {
		counts    []trainer.ReplicatedJobStatus
		other     bool
		wantLists int
		wantSays  bool
	}{
		"nothing counted":                   {wantLists: 2, wantSays: true},
		"none is ready":                     {counts: []trainer.ReplicatedJobStatus{{}}, wantLists: 2, wantSays: true},
		"one of two is ready":               {counts: []trainer.ReplicatedJobStatus{{}, {Ready: 1}}},
		"one has succeeded":                 {counts: []trainer.ReplicatedJobStatus{{Succeeded: 1}}},
		"one has failed":                    {counts: []trainer.ReplicatedJobStatus{{Failed: 1}}},
		"one is ready, of another TrainJob": {counts: []trainer.ReplicatedJobStatus{{Ready: 1}}, other: true, wantLists: 2, wantSays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := dueJob().Obj()
			jobSet := jobSetOf(job)
			if tc.other {
				jobSet = jobSetOf(nil)
			}
			jobSet.Status.ReplicatedJobsStatus = tc.counts
			b := newBench(t, interceptor.Funcs{}, job, jobSet)
			lists := 0
			b.Live = interceptor.NewClient(b.store, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				lists++
				return c.List(ctx, list, options...)
			}})
			if _, err := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			text := meta.FindStatusCondition(b.job(t).Status.Conditions, "Failed").Message
			if says := strings.HasSuffix(text, "; no pod was ever ready"); says != tc.wantSays || lists != tc.wantLists {
				t.Errorf("message = %q after %d lists, want it to say that none was ready = %v after %d", text, lists, tc.wantSays, tc.wantLists)
			}
		})
	}
}

var ready = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
