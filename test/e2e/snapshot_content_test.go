package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// A field that came to runtimes after these sources, which Trainer does not know either, is in
// the snapshot and counts for its revision: also with a webhook that was there before the
// field was, as when Trainer is upgraded.
func TestSnapshotOfFieldsThatNoTypeKnows(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("the webhook is started anew %v", restarts), func(t *testing.T) {
			s := newScene(t)
			s.extendRuntimes("futurePolicy")
			if restarts {
				s.away(shared.Webhook)()
			}
			policy := map[string]any{"mode": "later", "steps": []any{int64(1), map[string]any{"enabled": false}, ""}, "ratio": 0.25, "none": map[string]any{}}
			holds := func(what string, raw []byte) {
				t.Helper()
				var spec map[string]any
				s.must(json.Unmarshal(raw, &spec))
				if diff := cmp.Diff(s.text(policy), s.text(spec["futurePolicy"])); diff != "" {
					t.Errorf("futurePolicy, stored and %s (-stored +%s):\n%s", what, what, diff)
				}
			}
			// Some are there for a while before they are used, some were just made.
			const runtimes = 5
			for i := range runtimes {
				stored := s.runtimeNamed(fmt.Sprintf("train-%d", i))
				stored.Object["spec"] = s.runtimeOf(jobSetOf(oldImage)).Object["spec"]
				s.must(unstructured.SetNestedField(stored.Object, policy, "spec", "futurePolicy"))
				s.must(s.cluster.Client.Create(s.ctx, stored))
				s.known(stored.GetName())
			}
			for i := range runtimes {
				probe := s.trainJob("probe", onRuntime(fmt.Sprintf("train-%d", i)))
				s.must(s.cluster.Client.Create(s.ctx, probe, client.DryRunAll))
				job := s.view(probe)
				holds(fmt.Sprintf("sealed of train-%d", i), s.sealed(job).Object(job).Spec.RuntimeSpec.Raw)
			}

			job := s.create("job", onRuntime("train-0"))
			sealed := s.sealed(job)
			s.runs("job", oldImage)
			s.inOrder(job, sealed)
			holds("sealed", sealed.Object(job).Spec.RuntimeSpec.Raw)
			holds("filed", s.filed("job").Spec.RuntimeSpec.Raw)
			s.settled("job")

			// It counts like any other field, and a sealed TrainJob stays with its own.
			s.must(s.patchAny(s.runtimeNamed("train-0"), `{"spec":{"futurePolicy":{"mode":"sooner"}}}`))
			second := s.sealed(s.create("second", onRuntime("train-0")))
			if second.Revision == sealed.Revision {
				t.Error("two contents have the same revision")
			}
			s.suspend("job")
			s.noPods("job")
			job = s.resume("job")
			s.runs("job", oldImage)
			s.inOrder(job, sealed)
			s.runs("second", oldImage)
			s.inOrder(s.get("second"), second)
			s.settled("job", "second")
		})
	}
}

// extendRuntimes gives the spec of TrainingRuntimes one more field of any content, as a later
// release of Trainer would, until the test ends.
func (s *scene) extendRuntimes(field string) {
	s.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "trainingruntimes.trainer.kubeflow.org"}}
	path := "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/" + field
	change := func(s *scene, patch string, want bool) {
		s.Helper()
		s.must(s.cluster.Client.Patch(s.ctx, crd, client.RawPatch(types.JSONPatchType, []byte(patch))))
		s.eventually(fmt.Sprintf("field %s of runtimes: %v", field, want), func() (bool, string) {
			probe := s.runtimeNamed("probe")
			probe.SetNamespace("default")
			probe.Object["spec"] = s.runtimeOf(jobSetOf(oldImage)).Object["spec"]
			s.must(unstructured.SetNestedField(probe.Object, "x", "spec", field, "x"))
			err := s.cluster.Client.Create(s.ctx, probe, client.DryRunAll)
			_, found, _ := unstructured.NestedFieldNoCopy(probe.Object, "spec", field)
			return err == nil && found == want, fmt.Sprint(err)
		})
	}
	s.Cleanup(func() {
		// The context of the test is over.
		change(s.afterwards(), fmt.Sprintf(`[{"op":"remove","path":%q}]`, path), false)
	})
	change(s, fmt.Sprintf(`[{"op":"add","path":%q,"value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}]`, path), true)
}

// What counts is the runtime of that moment, however short before the TrainJob it was edited.
func TestSnapshotOfAnEditRightBefore(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	s.create("queued", suspended(), onRuntime("train"))
	images := map[string]string{}
	for i := range 100 {
		image := fmt.Sprintf("example.com/train:%d", i)
		s.edit("train", image)
		job := s.trainJob("probe", onRuntime("train"))
		s.must(s.cluster.Client.Create(s.ctx, job, client.DryRunAll))
		if got := s.imageIn(s.sealed(s.view(job))); got != image {
			t.Errorf("edited to %s, created with %s", image, got)
		}
		if i%10 == 9 {
			s.edit("train", image+"-2")
			if got := s.imageIn(s.sealed(s.patch("queued", `{"spec":{"suspend":false}}`, client.DryRunAll))); got != image+"-2" {
				t.Errorf("edited to %s-2, resumed with %s", image, got)
			}
		}
		if i%20 == 19 {
			name := fmt.Sprintf("job-%d", i)
			images[name] = image + "-3"
			s.edit("train", images[name])
			if got := s.imageIn(s.sealed(s.create(name, onRuntime("train")))); got != images[name] {
				t.Errorf("edited to %s, created with %s", images[name], got)
			}
		}
	}
	for name, image := range images {
		s.comesToRun(name, image)
		job := s.get(name)
		s.inOrder(job, s.sealed(job))
		s.settled(name)
	}
}

// A dry run answers with the seal, and leaves nothing behind.
func TestSnapshotDryRun(t *testing.T) {
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	s.create("queued", suspended(), onRuntime("train"))
	s.eventually("a suspended JobSet", func() (bool, string) {
		return strings.HasPrefix(s.children("queued"), "JobSet queued"), s.children("queued")
	})
	s.becomes("queued", trainer.ConditionSuspended, "True/Suspended")
	s.rests("queued")
	seals := s.figure(shared.Webhook, "signalbox_runtime_seals_total")
	stored := func() string {
		object := s.trainJob("queued")
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(object), object))
		return s.text(object)
	}
	before, config := stored(), s.text(s.configMap("queued"))

	created := s.trainJob("job", onRuntime("train"))
	s.must(s.cluster.Client.Create(s.ctx, created, client.DryRunAll))
	for what, job := range map[string]*trainer.TrainJob{
		"created": s.view(created),
		"resumed": s.patch("queued", `{"spec":{"suspend":false}}`, client.DryRunAll),
	} {
		sealed := s.sealed(job)
		s.stamp(job)
		if got := s.imageIn(sealed); got != oldImage || job.Annotations[v1alpha1.AnnotationRuntimeSource] != "TrainingRuntime/train" {
			t.Errorf("%s: %s of %s", what, got, job.Annotations[v1alpha1.AnnotationRuntimeSource])
		}
	}
	waits := s.trainJob("waits", suspended(), onRuntime("train"))
	s.must(s.cluster.Client.Create(s.ctx, waits, client.DryRunAll))
	if got := waits.GetAnnotations()[v1alpha1.AnnotationRuntimeSource]; got != "TrainingRuntime/train" {
		t.Errorf("created suspended with the source %q", got)
	}

	// When one that is real has all that it gets, the others would have it too.
	real := s.create("real", onRuntime("train"))
	s.runs("real", oldImage)
	s.inOrder(real, s.sealed(real))
	s.settled("real")
	if got := s.figure(shared.Webhook, "signalbox_runtime_seals_total") - seals; got != 1 {
		t.Errorf("%v seals were counted, want that of the real one", got)
	}
	if after := stored(); after != before {
		t.Errorf("the suspended TrainJob was %s, is %s", before, after)
	}
	if after := s.text(s.configMap("queued")); after != config {
		t.Errorf("its ConfigMap was %s, is %s", config, after)
	}
	for _, name := range []string{"job", "queued", "waits"} {
		if filed := s.filed(name); filed != nil {
			t.Errorf("filed for %s: %s", name, s.text(filed))
		}
		if config := s.configMap(name); config != nil && name != "queued" {
			t.Errorf("ConfigMap of %s: %s", name, s.text(config))
		}
	}
	s.deleted("job")
	s.deleted("waits")
}

// What clients see that read runtimes, as the Python SDK does, stays as it is: no runtime more
// than before, with the names and labels that they had.
func TestSnapshotLeavesRuntimesReadable(t *testing.T) {
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	runtimes := func(kind string, options ...client.ListOption) map[string]map[string]string {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(trainer.GroupVersion.WithKind(kind + "List"))
		s.must(s.cluster.Client.List(s.ctx, list, options...))
		found := map[string]map[string]string{}
		for _, item := range list.Items {
			found[item.GetName()] = item.GetLabels()
		}
		return found
	}
	ofCluster := runtimes(trainer.ClusterTrainingRuntimeKind)
	released := func() map[string]map[string]string {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind + "List"))
		s.must(stock.Client.List(s.ctx, list))
		found := map[string]map[string]string{}
		for _, item := range list.Items {
			found[item.GetName()] = item.GetLabels()
		}
		return found
	}()

	jobs := map[string]change{"namespaced": onRuntime("train"), "cluster": set("torch-distributed", "spec", "runtimeRef", "name")}
	for name, on := range jobs {
		job := s.create(name, on)
		s.running(name)
		s.inOrder(job, s.sealed(job))
	}
	s.suspend("cluster")

	want := map[string]map[string]string{"train": {"trainer.kubeflow.org/framework": "torch"}}
	if diff := cmp.Diff(want, runtimes(trainer.TrainingRuntimeKind, client.InNamespace(s.namespace))); diff != "" {
		t.Errorf("TrainingRuntimes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ofCluster, runtimes(trainer.ClusterTrainingRuntimeKind)); diff != "" {
		t.Errorf("ClusterTrainingRuntimes (-before +after):\n%s", diff)
	}
	for name, labels := range released {
		if diff := cmp.Diff(labels, ofCluster[name]); diff != "" {
			t.Errorf("ClusterTrainingRuntime %s (-stock +signalbox):\n%s", name, diff)
		}
		runtime := &unstructured.Unstructured{}
		runtime.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind))
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: name}, runtime))
		spec := runtime.Object["spec"].(map[string]any)
		if got := snapshot.Stamp(spec); got != snapshot.Revision(spec) {
			t.Errorf("ClusterTrainingRuntime %s has the revision %q, want %s", name, got, snapshot.Revision(spec))
		}
	}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(s.runtimeNamed("train")), s.runtimeNamed("train")))
}
