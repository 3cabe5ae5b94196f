package cli_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// mine makes a TrainingRuntime of the scene's own, which a test may edit, and returns the change by which a
// TrainJob refers to it.
func (s *scene) mine() change {
	s.Helper()
	s.apply(`
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: mine
  labels: {trainer.kubeflow.org/framework: torch}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata:
            labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}
          spec:
            template:
              spec:
                containers:
                - {name: node, image: "example.com/train:1"}
`)
	return onRuntime(trainer.TrainingRuntimeKind, "mine")
}

// editMine gives that runtime another image.
func (s *scene) editMine() {
	s.Helper()
	runtime := trainer.NewRuntime(trainer.TrainingRuntimeKind)
	runtime.SetNamespace(s.namespace)
	runtime.SetName("mine")
	const path = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image"
	s.must(s.cluster.Client.Patch(s.ctx, runtime, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"`+path+`","value":"example.com/train:2"}]`))))
}

// research makes a LifecyclePolicy of the scene's namespace, and waits until it counts.
func (s *scene) research() {
	s.Helper()
	policy := s.apply(fmt.Sprintf(`
apiVersion: lifecycle.trainer.kubeflow.org/v1alpha1
kind: LifecyclePolicy
metadata:
  name: %[1]s
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  activeDeadline: {default: 8h, max: 72h}
  ttlAfterFinished: {succeeded: 24h}
`, s.namespace))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), policy) })
	s.eventually("the policy in the webhook", func() (bool, string) {
		job := s.trainJob("probe")
		s.must(s.cluster.Client.Create(s.ctx, job, client.DryRunAll))
		seconds, found, _ := unstructured.NestedInt64(job.Object, "spec", "activeDeadlineSeconds")
		return found, fmt.Sprint(seconds)
	})
}

// aged waits until a TrainJob is a few seconds old: texts such as "in 7h59m" have their full length then.
func (s *scene) aged(name string) {
	s.Helper()
	s.eventually("the age of TrainJob "+name, func() (bool, string) {
		age := time.Since(s.get(name).CreationTimestamp.Time)
		return age > 3*time.Second, age.String()
	})
}

// child reads the object of a kind that has the name of a TrainJob, or nil.
func (s *scene) child(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, object)
	s.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return object
}

// waits waits until a TrainJob is in its queue, and has a JobSet and a Workload.
func (s *scene) waits(name string) {
	s.Helper()
	s.becomes(name, trainer.ConditionSuspended, "True/Suspended")
	job := s.get(name)
	s.eventually("JobSet of "+name, func() (bool, string) {
		return s.child(trainer.JobSetGroupVersionKind, name) != nil, "none"
	})
	s.eventually("Workload of "+name, func() (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "WorkloadList"})
		s.must(s.cluster.Client.List(s.ctx, list, client.InNamespace(s.namespace)))
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], job) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d others", len(list.Items))
	})
}

// anyOrder sorts the lines of a timeline by their text: what several controllers do at the same time may
// come in any order.
func anyOrder(page string) string {
	before, rest, _ := strings.Cut(page, "Timeline\n")
	story, after, _ := strings.Cut(rest, "\n\n")
	lines := strings.Split(story, "\n")
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(entryText(a), entryText(b)) })
	return before + "Timeline\n" + strings.Join(lines, "\n") + "\n\n" + after
}

// entryText returns what comes after the time, and how long ago that is, in a line of a timeline.
func entryText(line string) string {
	_, text, _ := strings.Cut(line, " ago ")
	return strings.TrimSpace(text)
}

// unseen keeps Signalbox's webhook from TrainJobs with the label unseen, until the end of the test.
func (s *scene) unseen() {
	s.Helper()
	configuration := &unstructured.Unstructured{}
	configuration.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"})
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, configuration))
	hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	s.must(err)
	for i, hook := range hooks {
		if hook.(map[string]any)["name"] != "trainjob."+v1alpha1.Group {
			continue
		}
		patch := func(selector string) error {
			patch := fmt.Sprintf(`[{"op":"test","path":"/webhooks/%d/name","value":"trainjob.%s"},{"op":"add","path":"/webhooks/%d/objectSelector","value":%s}]`,
				i, v1alpha1.Group, i, selector)
			return s.cluster.Client.Patch(started.ctx, configuration, client.RawPatch(types.JSONPatchType, []byte(patch)))
		}
		s.must(patch(`{"matchExpressions":[{"key":"unseen","operator":"DoesNotExist"}]}`))
		s.Cleanup(func() {
			if err := patch("{}"); err != nil {
				s.Error(err)
			}
		})
		return
	}
	s.Fatal("Signalbox has no webhook of TrainJobs")
}
