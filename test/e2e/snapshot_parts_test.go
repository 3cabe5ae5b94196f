package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// away stops a part until the returned function is called or the test ends.
func (s *scene) away(part *cluster.Process) (back func()) {
	s.Helper()
	s.must(part.Stop(s.ctx))
	back = sync.OnceFunc(func() {
		if !part.Running() {
			s.must(part.Start(context.Background()))
		}
	})
	s.Cleanup(back)
	return back
}

// uninstalled takes Signalbox away, until the returned function is called or the test ends:
// its parts do not run and nobody calls its webhooks.
func (s *scene) uninstalled() (back func()) {
	s.Helper()
	ctx := context.Background()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, configuration := range []client.Object{mutating, validating} {
		s.must(s.cluster.Client.Get(ctx, client.ObjectKey{Name: "signalbox"}, configuration))
	}
	back = sync.OnceFunc(func() {
		for _, part := range []*cluster.Process{shared.Webhook, shared.Reconciler} {
			if !part.Running() {
				s.must(part.Start(ctx))
			}
		}
		for _, configuration := range []client.Object{mutating, validating} {
			configuration.SetResourceVersion("")
			configuration.SetUID("")
			if err := s.cluster.Client.Create(ctx, configuration); !apierrors.IsAlreadyExists(err) {
				s.must(err)
			}
		}
		s.eventually("the webhooks of Signalbox", func() (bool, string) {
			err := s.cluster.Client.Create(ctx, s.trainJob("probe", deadlineAnnotation(-1)), client.DryRunAll)
			probe := s.trainJob("probe")
			s.must(s.cluster.Client.Create(ctx, probe, client.DryRunAll))
			return apierrors.IsInvalid(err) && probe.GetAnnotations()[v1alpha1.AnnotationRuntimeSnapshot] != "", fmt.Sprint(err)
		})
	})
	s.Cleanup(back)
	for _, configuration := range []client.Object{mutating, validating} {
		s.must(s.cluster.Client.Delete(ctx, configuration.DeepCopyObject().(client.Object)))
	}
	s.must(shared.Webhook.Stop(ctx))
	s.must(shared.Reconciler.Stop(ctx))
	s.eventually("a creation without Signalbox", func() (bool, string) {
		probe := s.trainJob("probe", deadlineAnnotation(-1))
		err := s.cluster.Client.Create(ctx, probe, client.DryRunAll)
		return err == nil && probe.GetAnnotations()[v1alpha1.AnnotationRuntimeSnapshot] == "", fmt.Sprint(err)
	})
	return back
}

// known waits until Trainer knows a runtime of the scene's namespace: its webhook refuses
// TrainJobs of a runtime that is not in its cache yet.
func (s *scene) known(runtime string) {
	s.Helper()
	s.eventually("runtime "+runtime+" in Trainer's cache", func() (bool, string) {
		err := s.cluster.Client.Create(s.ctx, s.trainJob("probe", suspended(), onRuntime(runtime)), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
}

// logged returns the lines in the log of a part that have all these texts.
func (s *scene) logged(part *cluster.Process, texts ...string) [][]byte {
	s.Helper()
	log, err := os.ReadFile(part.LogPath)
	s.must(err)
	var found [][]byte
	for line := range bytes.Lines(log) {
		all := true
		for _, text := range texts {
			all = all && bytes.Contains(line, []byte(text))
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

// settled checks that Trainer has no trouble left with TrainJobs: made to look at them again,
// it reports no error.
func (s *scene) settled(names ...string) {
	s.Helper()
	for _, name := range names {
		of := fmt.Sprintf(`"namespace":%q,"name":%q,`, s.namespace, name)
		looks := func() int { return len(s.logged(s.cluster.Trainer, "Reconciling TrainJob", of)) }
		errors := func() [][]byte { return s.logged(s.cluster.Trainer, "Reconciler error", of) }
		before := len(errors())
		// When the second look begins, the first one is over.
		for range 2 {
			seen := looks()
			s.patch(name, `{"metadata":{"labels":{"look":"`+strings.ReplaceAll(time.Now().Format("150405.000000"), ".", "-")+`"}}}`)
			s.eventually("a look of Trainer at TrainJob "+name, func() (bool, string) { return looks() > seen, "none" })
		}
		for _, line := range errors()[before:] {
			s.Errorf("Trainer has an error with TrainJob %s, which runs: %s", name, line)
		}
	}
}

// noPods waits until a suspended TrainJob has no pods.
func (s *scene) noPods(name string) {
	s.Helper()
	s.eventually("the end of the pods of TrainJob "+name, func() (bool, string) { return len(s.pods(name)) == 0, s.children(name) })
}

// comesToRun waits until all pods of a TrainJob run and have this image. Pods of another one,
// from before, may still be there.
func (s *scene) comesToRun(name, image string) {
	s.Helper()
	s.eventually("running pods of TrainJob "+name+" with "+image, func() (bool, string) {
		pods := s.pods(name)
		seen := s.children(name) + "; " + s.warnings(name)
		for _, pod := range pods {
			if pod.Status.Phase != "Running" || pod.Spec.Containers[0].Image != image {
				return false, seen
			}
		}
		return len(pods) > 0, seen
	})
}

// deleted waits until a TrainJob is gone.
func (s *scene) deleted(name string) {
	s.Helper()
	s.eventually("the end of TrainJob "+name, func() (bool, string) {
		job := s.trainJob(name)
		err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// afterwards is the same scene for what is done when the test is over and its context has
// ended.
func (s *scene) afterwards() *scene {
	return &scene{T: s.T, ctx: context.Background(), cluster: s.cluster, namespace: s.namespace}
}
