package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSmoke walks one cluster through the life of a TrainJob and through what
// tests do to parts. It is one test since a cluster is dear to start. Signalbox
// is left out: its own tests start it.
func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c, err := Start(ctx, Options{Kueue: true, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a TrainJob runs and goes away with all that it made", func(t *testing.T) { testLife(ctx, t, c) })
	t.Run("a paused Trainer refuses bad jobs but does not act until it is resumed", func(t *testing.T) { testPause(ctx, t, c) })
	t.Run("parts come back on their ports", func(t *testing.T) { testRestart(ctx, t, c) })
	t.Run("Kueue admits jobs up to the quota, and a pod ends when its status says so", func(t *testing.T) { testKueue(ctx, t, c) })
	t.Run("another user has only its own rights", func(t *testing.T) { testOtherUser(ctx, t, c) })
}

func testLife(ctx context.Context, t *testing.T, c *Cluster) {
	namespace := newNamespace(ctx, t, c)
	job := createTrainJob(ctx, t, c, namespace, "job")
	eventually(ctx, t, c, "the pod to run on a fake node", func(ctx context.Context) error {
		return runs(ctx, c, namespace, 1)
	})
	if err := c.Client.Delete(ctx, job); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, c, "the children to go", func(ctx context.Context) error { return empty(ctx, c, namespace) })
}

func testPause(ctx context.Context, t *testing.T, c *Cluster) {
	namespace := newNamespace(ctx, t, c)
	if err := c.PauseTrainer(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, c, "the webhook", func(ctx context.Context) error {
		return c.refused(ctx, newTrainJobObject("bad", "no-such-runtime"), "validator.trainjob.trainer.kubeflow.org")
	})
	createTrainJob(ctx, t, c, namespace, "paused")
	if err := c.trainerLeads(ctx); err == nil {
		t.Error("Trainer leads while it is paused")
	}
	if err := empty(ctx, c, namespace); err != nil {
		t.Errorf("a job of a paused Trainer has children: %v", err)
	}
	if err := c.ResumeTrainer(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, c, "the pod of the job that waited", func(ctx context.Context) error {
		return runs(ctx, c, namespace, 1)
	})
}

func testRestart(ctx context.Context, t *testing.T, c *Cluster) {
	namespace := newNamespace(ctx, t, c)
	for _, p := range []*Process{c.JobSet, c.Trainer, c.APIServer} {
		p.Kill()
		if p.Running() {
			t.Errorf("%s runs after it was killed", p.Name)
		}
		if err := p.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	createTrainJob(ctx, t, c, namespace, "after")
	eventually(ctx, t, c, "the job to run", func(ctx context.Context) error { return runs(ctx, c, namespace, 1) })
}

func testKueue(ctx context.Context, t *testing.T, c *Cluster) {
	namespace := newNamespace(ctx, t, c)
	if err := c.AddQueue(ctx, namespace, "queue", "1"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "other"} {
		job := newTrainJobObject(name, "torch-distributed")
		job.SetNamespace(namespace)
		job.SetLabels(map[string]string{queueNameLabel: "queue"})
		spec := job.Object["spec"].(object)
		spec["suspend"] = false
		spec["trainer"] = object{"resourcesPerNode": object{"requests": object{"cpu": "1"}}}
		if err := c.Client.Create(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	running := &corev1.Pod{}
	eventually(ctx, t, c, "one job to run and one to wait", func(ctx context.Context) error {
		found, pods, err := children(ctx, c, namespace)
		if err != nil {
			return err
		}
		if want := (counts{jobSets: 2, jobs: 2, pods: 1}); found != want {
			return fmt.Errorf("got %+v, want %+v", found, want)
		}
		running = &pods[0]
		if running.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s is %s", running.Name, running.Status.Phase)
		}
		return nil
	})
	first := running.Name
	succeeded := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Succeeded"}}`))
	if err := c.Client.Status().Patch(ctx, running, succeeded); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, c, "the job that waited", func(ctx context.Context) error {
		_, pods, err := children(ctx, c, namespace)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.Name != first && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return fmt.Errorf("no pod but %s runs", first)
	})
}

func testOtherUser(ctx context.Context, t *testing.T, c *Cluster) {
	other, err := c.ClientFor("somebody")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.List(ctx, &corev1.PodList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights lists pods: got %v, want Forbidden", err)
	}
}

func eventually(ctx context.Context, t *testing.T, c *Cluster, what string, check func(context.Context) error) {
	t.Helper()
	if err := c.await(ctx, what, check); err != nil {
		t.Fatal(err)
	}
}

func newNamespace(ctx context.Context, t *testing.T, c *Cluster) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "smoke-"}}
	if err := c.Client.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func createTrainJob(ctx context.Context, t *testing.T, c *Cluster, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	job := newTrainJobObject(name, "torch-distributed")
	job.SetNamespace(namespace)
	job.Object["spec"].(object)["suspend"] = false
	if err := c.Client.Create(ctx, job); err != nil {
		t.Fatal(err)
	}
	return job
}

// runs returns nil when as many JobSets, Jobs and pods are there, and the pods
// run on fake nodes.
func runs(ctx context.Context, c *Cluster, namespace string, want int) error {
	found, pods, err := children(ctx, c, namespace)
	if err != nil {
		return err
	}
	if wantFound := (counts{want, want, want}); found != wantFound {
		return fmt.Errorf("got %+v, want %+v", found, wantFound)
	}
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName == "" {
			return fmt.Errorf("pod %s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
	return nil
}

func empty(ctx context.Context, c *Cluster, namespace string) error {
	found, _, err := children(ctx, c, namespace)
	if err == nil && found != (counts{}) {
		err = fmt.Errorf("got %+v, want none", found)
	}
	return err
}

type counts struct{ jobSets, jobs, pods int }

func children(ctx context.Context, c *Cluster, namespace string) (counts, []corev1.Pod, error) {
	jobSets := &unstructured.UnstructuredList{}
	jobSets.SetAPIVersion("jobset.x-k8s.io/v1alpha2")
	jobSets.SetKind("JobSetList")
	var jobs batchv1.JobList
	var pods corev1.PodList
	in := client.InNamespace(namespace)
	err := errors.Join(c.Client.List(ctx, jobSets, in), c.Client.List(ctx, &jobs, in), c.Client.List(ctx, &pods, in))
	return counts{len(jobSets.Items), len(jobs.Items), len(pods.Items)}, pods.Items, err
}
