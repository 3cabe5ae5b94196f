package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secondClocks lists the events about a clock in a runtime.
func (s *scene) secondClocks(runtime client.Object) []corev1.Event {
	s.Helper()
	namespace := runtime.GetNamespace()
	if namespace == "" {
		namespace = "default"
	}
	var events corev1.EventList
	s.must(s.cluster.Client.List(s.ctx, &events, client.InNamespace(namespace)))
	var found []corev1.Event
	for _, event := range events.Items {
		if about := event.InvolvedObject; about.Name == runtime.GetName() && about.Namespace == runtime.GetNamespace() && about.Kind == runtime.GetObjectKind().GroupVersionKind().Kind && event.Reason == "SecondClock" {
			found = append(found, event)
		}
	}
	return found
}

// withClocks waits until the metric says how many runtimes of each kind have clocks.
func (s *scene) withClocks(namespacedOnes, clusterOnes float64) {
	s.Helper()
	s.eventually("the metric of runtimes with clocks", func() (bool, string) {
		was := [2]float64{s.clocked(namespaced), s.clocked(cluster_)}
		return was == [2]float64{namespacedOnes, clusterOnes}, fmt.Sprint(was)
	})
}

func (s *scene) clocked(kind string) float64 {
	s.Helper()
	return s.figure(shared.Reconciler, "signalbox_runtimes_with_clocks", "kind", kind)
}

// Runtimes with clocks that came while nobody looked, are reported, and can be edited but for
// their clocks. What runs is untouched.
func TestGuardClocksThatAreStored(t *testing.T) {
	s := newScene(t)
	s.withClocks(0, 0)
	runtimes := map[string]*unstructured.Unstructured{}
	for _, kind := range []string{namespaced, cluster_} {
		runtimes[kind] = s.stored(s.object(kind, "train", jobSetOf(oldImage)))
		s.createOn(runtimes[kind], "job-"+strings.ToLower(kind))
	}
	pods := map[string][]corev1.Pod{}
	for _, kind := range []string{namespaced, cluster_} {
		pods[kind] = s.runs("job-"+strings.ToLower(kind), oldImage)
	}
	// A runtime that nobody may touch is free for all while the webhook is away.
	used := s.stored(s.object(namespaced, "used", jobSetOf(oldImage)))
	s.createOn(used, "waiting", suspended())
	s.inUse(used)

	back := s.away(shared.Webhook)
	edits := clockEdits()
	stored := map[string]*unstructured.Unstructured{}
	for name, edit := range edits {
		stored[name] = s.stored(s.object(namespaced, "edit-"+strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", "")), edit.before))
	}
	const bad = `[{"op":"add","path":"/spec/template/spec/replicatedJobs/0/template/spec/activeDeadlineSeconds","value":1},` +
		`{"op":"add","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/activeDeadlineSeconds","value":1}]`
	for _, runtime := range runtimes {
		s.must(s.alter(runtime, bad))
	}
	s.must(s.remove(used))

	// The audit sees them at once; the reconciler's own stamps go through.
	const first = "spec.template.spec.replicatedJobs[0].template.spec."
	want := "[" + first + "activeDeadlineSeconds: Invalid value: 1: " + secondClock + ", " + first + "template.spec.activeDeadlineSeconds: Invalid value: 1: " + secondClock + "]"
	reported := func() {
		t.Helper()
		for kind, runtime := range runtimes {
			s.eventually("an event about a "+kind, func() (bool, string) { return len(s.secondClocks(runtime)) > 0, "none" })
			events := s.secondClocks(runtime)
			if len(events) != 1 || events[0].Type != "Warning" || events[0].Message != want || events[0].FirstTimestamp.IsZero() || events[0].InvolvedObject.UID != runtime.GetUID() {
				t.Errorf("%d events about a %s: %s", len(events), kind, s.text(events))
			}
		}
	}
	reported()
	// All edits but one start from a runtime with a clock.
	bads := float64(len(edits))
	s.withClocks(bads, 1)
	if len(s.logged(shared.Reconciler, "a stored runtime is not as it should be", `"kind":"ClusterTrainingRuntime"`, `"reason":"SecondClock"`, first+"activeDeadlineSeconds: Invalid value: 1")) == 0 {
		t.Error("the log says nothing")
	}
	back()

	t.Run("after a restart of the reconciler", func(t *testing.T) {
		s := s.within(t)
		s.must(shared.Reconciler.Stop(s.ctx))
		s.must(shared.Reconciler.Start(context.Background()))
		s.withClocks(bads, 1)
		reported()
	})
	t.Run("labels and edits", func(t *testing.T) {
		s := s.within(t)
		for kind, runtime := range runtimes {
			s.must(s.patchAny(bare(runtime), `{"metadata":{"labels":{"team":"x"},"annotations":{"note":"y"}}}`))
			s.must(s.alter(runtime, `[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":"`+newImage+`"}]`))
			err := s.alter(runtime, `[{"op":"add","path":"/spec/template/spec/ttlSecondsAfterFinished","value":9}]`)
			if diff := cmp.Diff([]string{"spec.template.spec.ttlSecondsAfterFinished"}, s.causes(err)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s", kind, diff)
			}
		}
		for name, edit := range edits {
			if diff := cmp.Diff(edit.clocks, s.causes(s.reshape(stored[name], edit.after))); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s", name, diff)
			}
		}
	})
	t.Run("what runs", func(t *testing.T) {
		s := s.within(t)
		for kind, before := range pods {
			name := "job-" + strings.ToLower(kind)
			s.settled(name)
			if now := s.runs(name, oldImage); len(now) != 1 || now[0].UID != before[0].UID || now[0].Spec.ActiveDeadlineSeconds != nil {
				t.Errorf("the pods of %s are others: %s", name, s.children(name))
			}
		}
	})
	t.Run("mended or gone", func(t *testing.T) {
		s := s.within(t)
		for _, runtime := range stored {
			s.must(s.remove(runtime))
		}
		s.withClocks(1, 1)
		s.must(s.reshape(runtimes[namespaced], jobSetOf(newImage)))
		s.withClocks(0, 1)
		s.must(s.allowDisruption(runtimes[cluster_]))
		s.must(s.remove(runtimes[cluster_]))
		s.withClocks(0, 0)
	})
}

// within returns the same scene for a subtest.
func (s *scene) within(t *testing.T) *scene {
	return &scene{T: t, ctx: t.Context(), cluster: s.cluster, namespace: s.namespace}
}

// The API server asks about runtimes only where it matters.
func TestGuardIsAskedOnlyWhenNeeded(t *testing.T) {
	s := newScene(t)
	paths := []string{"/mutate-runtime", "/validate-runtime"}
	before := map[string]float64{}
	count := func(step string, want ...float64) {
		t.Helper()
		for i, path := range paths {
			now := s.webhookCalls(path)
			if got := now - before[path]; step != "" && got != want[i] {
				t.Errorf("%s: %v calls of %s, want %v", step, got, path, want[i])
			}
			before[path] = now
		}
	}
	count("")
	for _, kind := range []string{namespaced, cluster_} {
		runtime := s.stored(s.object(kind, "train", jobSetOf(oldImage)))
		count("creation", 1, 1)
		s.must(s.patchAny(bare(runtime), `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`))
		s.must(s.allowDisruption(runtime))
		s.must(s.patchAny(bare(runtime), `{"metadata":{"finalizers":["example.com/keep"]}}`))
		count("labels, annotations and finalizers", 0, 0)
		s.must(s.alter(runtime, `[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":"`+newImage+`"}]`))
		count("an edit", 1, 1)
		s.must(s.remove(runtime))
		count("a deletion", 0, 1)
		s.must(s.patchAny(bare(runtime), `{"metadata":{"finalizers":null}}`))
		count("the end of a finalizer", 0, 0)
	}
	s.stored(s.object(namespaced, "left", jobSetOf(oldImage)))
	count("")
	namespace := &corev1.Namespace{}
	namespace.Name = s.namespace
	s.must(s.cluster.Client.Delete(s.ctx, namespace))
	s.eventually("the end of the namespace", func() (bool, string) {
		err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(namespace), namespace)
		return client.IgnoreNotFound(err) == nil && err != nil, s.text(namespace.Status)
	})
	count("the end of a namespace", 0, 0)
}

// A webhook that has just started does not let pass what it does not know yet.
func TestGuardFromItsFirstAnswer(t *testing.T) {
	s := newScene(t)
	runtime := s.stored(s.object(namespaced, "train", jobSetOf(oldImage)))
	s.createOn(runtime, "job", suspended())
	s.inUse(runtime)
	// Without an answer nothing passes, so what passes was let through.
	s.setFailurePolicy("Fail", "runtime")
	s.Cleanup(func() { s.afterwards().setFailurePolicy("Ignore", "runtime") })
	for range 3 {
		back := s.away(shared.Webhook)
		s.eventually("the new policy", func() (bool, string) {
			err := s.remove(runtime, client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "failed calling webhook"), fmt.Sprint(err)
		})
		answers := make(chan string, 1)
		ctx, stop := context.WithCancel(s.ctx)
		go func() {
			for ctx.Err() == nil {
				if err := s.cluster.Client.Delete(ctx, bare(runtime), client.DryRunAll); err == nil {
					answers <- "it let a deletion pass"
					return
				} else if strings.Contains(err.Error(), "is in use by") {
					answers <- ""
					return
				}
			}
			answers <- "it did not answer"
		}()
		back()
		s.eventually("an answer", func() (bool, string) { return len(answers) > 0, "none" })
		stop()
		if answer := <-answers; answer != "" {
			t.Error(answer)
		}
	}
}
