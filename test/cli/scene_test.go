package cli_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// patience is how long a step may take. It is long because the machine may be busy; a test that passes
// never waits for it.
const patience = 90 * time.Second

// scene is what one test works with: a namespace of its own on a cluster, and who runs the plugin.
type scene struct {
	*testing.T
	ctx        context.Context
	cluster    *cluster.Cluster
	namespace  string
	kubeconfig string
	cache      string
	// binding gives the user its rights; nil for the admin.
	binding client.Object
}

// newScene makes a scene where Trainer, Signalbox and Kueue are; the others where one of them is missing.
func newScene(t *testing.T) *scene         { t.Helper(); return sceneOn(t, withAll) }
func withoutSignalbox(t *testing.T) *scene { t.Helper(); return sceneOn(t, stock) }
func withoutKueue(t *testing.T) *scene     { t.Helper(); return sceneOn(t, kueueless) }
func withoutTrainer(t *testing.T) *scene   { t.Helper(); return sceneOn(t, empty) }

func sceneOn(t *testing.T, start func() (*cluster.Cluster, error)) *scene {
	t.Helper()
	c, err := start()
	if err != nil {
		t.Fatal("start the cluster:", err)
	}
	s := &scene{T: t, ctx: t.Context(), cluster: c, kubeconfig: c.Kubeconfig, cache: t.TempDir()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	s.must(c.Client.Create(s.ctx, namespace))
	s.namespace = namespace.Name
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), namespace) })
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// eventually waits until check is true; it returns what there is, for the failure's text.
func (s *scene) eventually(what string, check func() (bool, string)) {
	s.Helper()
	var seen string
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, seen = check(); ok {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s did not come within %s; instead: %s", what, patience, seen)
		}
	}
}

// change alters an object before it is created.
type change func(*unstructured.Unstructured)

func set(value any, path ...string) change {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func suspended() change             { return set(true, "spec", "suspend") }
func deadline(seconds int64) change { return set(seconds, "spec", "activeDeadlineSeconds") }

func annotated(key, value string) change { return set(value, "metadata", "annotations", key) }
func labelled(key, value string) change  { return set(value, "metadata", "labels", key) }

// queued puts a TrainJob into a LocalQueue of Kueue; its one pod asks for one CPU.
func queued(queue string) change {
	return func(job *unstructured.Unstructured) {
		labelled("kueue.x-k8s.io/queue-name", queue)(job)
		set(map[string]any{"requests": map[string]any{"cpu": "1"}}, "spec", "trainer", "resourcesPerNode")(job)
	}
}

// onRuntime has a TrainJob refer to this runtime, where it refers to torch-distributed.
func onRuntime(kind, name string) change {
	return set(map[string]any{"apiGroup": trainer.GroupVersion.Group, "kind": kind, "name": name}, "spec", "runtimeRef")
}

// trainJob makes the manifest of a TrainJob with one node on a built-in runtime.
func (s *scene) trainJob(name string, changes ...change) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"runtimeRef": map[string]any{
			"apiGroup": trainer.GroupVersion.Group, "kind": trainer.ClusterTrainingRuntimeKind, "name": "torch-distributed",
		},
		"trainer": map[string]any{"numNodes": int64(1)},
	}}}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(s.namespace)
	job.SetName(name)
	for _, change := range changes {
		change(job)
	}
	return job
}

// create creates a TrainJob and returns it as stored.
func (s *scene) create(name string, changes ...change) *trainer.TrainJob {
	s.Helper()
	job := s.trainJob(name, changes...)
	s.must(s.cluster.Client.Create(s.ctx, job))
	return s.view(job)
}

// view is the part of a TrainJob that the rules read.
func (s *scene) view(job *unstructured.Unstructured) *trainer.TrainJob {
	s.Helper()
	view := &trainer.TrainJob{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, view))
	return view
}

// get reads a TrainJob.
func (s *scene) get(name string) *trainer.TrainJob {
	s.Helper()
	job := s.trainJob(name)
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job))
	return s.view(job)
}

// patch sends a JSON merge patch for a TrainJob.
func (s *scene) patch(name, patch string) {
	s.Helper()
	s.must(s.cluster.Client.Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (s *scene) suspend(name string) { s.Helper(); s.patch(name, `{"spec":{"suspend":true}}`) }
func (s *scene) resume(name string)  { s.Helper(); s.patch(name, `{"spec":{"suspend":false}}`) }

// remove deletes a TrainJob and waits until it is gone.
func (s *scene) remove(name string) {
	s.Helper()
	job := s.trainJob(name)
	s.must(client.IgnoreNotFound(s.cluster.Client.Delete(s.ctx, job)))
	s.eventually("the end of TrainJob "+name, func() (bool, string) {
		err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job)
		return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprint(job.GetFinalizers(), err)
	})
}

// apply creates an object from YAML, in the scene's namespace unless it says another; of what is not in a
// namespace, and would stay, it is the test's to remove. It returns it as stored.
func (s *scene) apply(manifest string) *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{}
	s.must(yaml.Unmarshal([]byte(manifest), &object.Object))
	namespaced, err := s.cluster.Client.IsObjectNamespaced(object)
	s.must(err)
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(s.namespace)
	}
	status, hasStatus := object.Object["status"]
	s.must(s.cluster.Client.Create(s.ctx, object))
	if hasStatus {
		object.Object["status"] = status
		s.must(s.cluster.Client.Status().Update(s.ctx, object))
	}
	return object
}

// queue makes a LocalQueue with a ClusterQueue that admits as many TrainJobs of queued at once.
func (s *scene) queue(name string, jobs int) {
	s.Helper()
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, name, fmt.Sprint(jobs)))
}

// becomes waits until a condition of a TrainJob reads STATUS/REASON.
func (s *scene) becomes(name, kind, want string) {
	s.Helper()
	s.eventually(fmt.Sprintf("%s=%s of TrainJob %s", kind, want, name), func() (bool, string) {
		job := s.get(name)
		for _, c := range job.Status.Conditions {
			if c.Type == kind {
				got := fmt.Sprintf("%s/%s", c.Status, c.Reason)
				return got == want, got
			}
		}
		return false, fmt.Sprintf("%+v", job.Status)
	})
}

// pods returns the pods of a TrainJob.
func (s *scene) pods(name string) []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	s.must(s.cluster.Client.List(s.ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{trainer.LabelJobSetName: name}))
	return list.Items
}

// running waits until the pods of a TrainJob run, and returns them. Where only API servers are, there are
// none.
func (s *scene) running(name string) []corev1.Pod {
	s.Helper()
	var pods []corev1.Pod
	s.eventually("running pods of TrainJob "+name, func() (bool, string) {
		pods = s.pods(name)
		running := len(pods) > 0
		for _, pod := range pods {
			running = running && pod.Status.Phase == corev1.PodRunning
		}
		return running, fmt.Sprintf("%d pods", len(pods))
	})
	return pods
}

// finish ends the running pods of a TrainJob well, and waits until it is complete.
func (s *scene) finish(name string) {
	s.Helper()
	for _, pod := range s.running(name) {
		s.must(s.cluster.Client.Status().Patch(s.ctx, &pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))))
	}
	s.eventually("the end of TrainJob "+name, func() (bool, string) {
		job := s.get(name)
		return job.Terminal(), fmt.Sprintf("%+v", job.Status)
	})
}
