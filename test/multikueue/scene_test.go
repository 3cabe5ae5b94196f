package multikueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// patience is how long a step may take that is not about time. It is long because the machine
// may be busy, and since every watch of Kubernetes's own parts waits up to a minute before it
// asks anew for what an API server that was away has; a test that passes never waits for it.
const patience = 3 * time.Minute

// lateness is how late the end of a TrainJob may come on a busy machine.
const lateness = 20 * time.Second

// queue is the name of the queue in each scene. It has one CPU on each cluster, which is what
// each TrainJob takes.
const queue = "queue"

// scene is what one test works with: a namespace of the same name on both clusters, with a
// queue and the runtime "train" in each.
type scene struct {
	*testing.T
	namespace       string
	manager, worker *side
}

// side is the scene on one of the clusters.
type side struct {
	*testing.T
	ctx             context.Context
	cluster         *cluster.Cluster
	name, namespace string
}

// newScene makes a scene. What the test leaves behind goes with its namespaces.
func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneIn(t, "")
}

// newSceneIn makes a scene in namespaces of this name; with "" they get one of their own.
func newSceneIn(t *testing.T, namespace string) *scene {
	t.Helper()
	name := metav1.ObjectMeta{Name: namespace}
	if namespace == "" {
		name.GenerateName = "multi-"
	}
	s := &scene{
		T:       t,
		manager: &side{T: t, ctx: t.Context(), cluster: manager, name: "manager"},
		worker:  &side{T: t, ctx: t.Context(), cluster: worker, name: "worker"},
	}
	for _, side := range []*side{s.manager, s.worker} {
		namespace := &corev1.Namespace{ObjectMeta: name}
		side.must(side.cluster.Client.Create(side.ctx, namespace))
		t.Cleanup(func() { _ = side.cluster.Client.Delete(context.Background(), namespace) })
		name = metav1.ObjectMeta{Name: namespace.Name}
		s.namespace, side.namespace = namespace.Name, namespace.Name
		side.must(side.cluster.AddQueue(side.ctx, side.namespace, queue, "1"))
		side.runtime("train", jobSetOf(oldImage))
	}
	s.manager.sendsOn()
	for _, side := range []*side{s.manager, s.worker} {
		side.eventually("the neighbours to know of the runtime", func() (bool, string) {
			err := side.cluster.Client.Create(side.ctx, side.trainJob("probe"), client.DryRunAll)
			return err == nil, fmt.Sprint(err)
		})
	}
	return s
}

// sendsOn makes the side's queue one of MultiKueue.
func (s *side) sendsOn() {
	s.Helper()
	clusterQueue := kueueObject("ClusterQueue", "", s.namespace+"-"+queue, nil)
	s.must(s.mergePatch(clusterQueue, `{"spec":{"admissionChecksStrategy":{"admissionChecks":[{"name":"`+connection+`"}]}}}`))
	s.eventually("the queue to be active with its check", func() (bool, string) {
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(clusterQueue), clusterQueue))
		active, generation := conditionOf(clusterQueue, "Active"), clusterQueue.GetGeneration()
		return active.Status == metav1.ConditionTrue && active.ObservedGeneration == generation, s.text(clusterQueue.Object["status"])
	})
}

func (s *side) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("on the %s: %v", s.name, err)
	}
}

// eventually waits until check is true; it returns what there is, for the failure's text.
func (s *side) eventually(what string, check func() (bool, string)) {
	s.Helper()
	var seen string
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, seen = check(); ok {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s did not come on the %s within %s; instead: %s", what, s.name, patience, seen)
		}
	}
}

// text shows anything as JSON.
func (s *side) text(value any) string {
	s.Helper()
	out, err := json.Marshal(value)
	s.must(err)
	return string(out)
}

// mergePatch sends a JSON merge patch for any object.
func (s *side) mergePatch(object client.Object, patch string, options ...client.PatchOption) error {
	s.Helper()
	return s.cluster.Client.Patch(s.ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)), options...)
}

// Content of runtimes is told apart by the image.
const (
	oldImage = "example.com/train:old"
	newImage = "example.com/train:new"
)

// jobSetOf is the JobSet spec of a runtime with one node of this image.
func jobSetOf(image string) string {
	return fmt.Sprintf(`{"replicatedJobs":[{"name":"node","template":{
		"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},
		"spec":{"template":{"metadata":{"labels":{"team":"x"}},"spec":{"containers":[{"name":"node","image":%q}]}}}}}]}`, image)
}

// runtimeNamed is an empty TrainingRuntime, to be read, patched or deleted.
func (s *side) runtimeNamed(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind))
	object.SetNamespace(s.namespace)
	object.SetName(name)
	return object
}

// runtime creates a TrainingRuntime of one node with this JobSet spec (JSON).
func (s *side) runtime(name, jobSetSpec string) {
	s.Helper()
	runtime := s.runtimeNamed(name)
	var spec map[string]any
	s.must(json.Unmarshal([]byte(jobSetSpec), &spec))
	runtime.Object["spec"] = map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(1)},
		"template": map[string]any{"spec": spec},
	}
	s.must(s.cluster.Client.Create(s.ctx, runtime))
}

// inPodTemplate is the path of a field of the pod template of the runtimes.
func inPodTemplate(field string) string {
	return "/spec/template/spec/replicatedJobs/0/template/spec/template/" + field
}

// alter replaces or adds a field of the runtime "train".
func (s *side) alter(path, value string, options ...client.PatchOption) error {
	s.Helper()
	patch := fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, path, value)
	return s.cluster.Client.Patch(s.ctx, s.runtimeNamed("train"), client.RawPatch(types.JSONPatchType, []byte(patch)), options...)
}

// edit gives the container of the runtime "train" another image.
func (s *side) edit(image string) {
	s.Helper()
	s.must(s.alter(inPodTemplate("spec/containers/0/image"), fmt.Sprintf("%q", image)))
}

// find reads an object; false when there is none.
func (s *side) find(object client.Object) bool {
	s.Helper()
	err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(object), object)
	s.must(client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}
