package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server calls configurations of webhooks in the order of their names: Trainer's
// first, then Kueue's, then ours.
const (
	trainersConfiguration = "defaulter.trainer.kubeflow.org"
	kueuesConfiguration   = "kueue-mutating-webhook-configuration"
	oursConfiguration     = "signalbox"
)

const namespaceName = "kubernetes.io/metadata.name"

// configurations keeps tests from changing the same configuration at the same time.
var configurations sync.Mutex

// notCalled takes this namespace from the webhooks of a configuration of which the name
// contains this text, and returns those as they were.
func (s *scene) notCalled(configuration, hook string) []admissionregistrationv1.MutatingWebhook {
	s.Helper()
	configurations.Lock()
	defer configurations.Unlock()
	var taken []admissionregistrationv1.MutatingWebhook
	// Some look after their configurations themselves.
	s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		taken = nil
		object := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: configuration}, object); err != nil {
			return err
		}
		for i := range object.Webhooks {
			if !strings.Contains(object.Webhooks[i].Name, hook) {
				continue
			}
			taken = append(taken, *object.Webhooks[i].DeepCopy())
			excluded := &object.Webhooks[i].NamespaceSelector.MatchExpressions[0]
			if excluded.Key != namespaceName || excluded.Operator != metav1.LabelSelectorOpNotIn {
				s.Fatalf("configuration %s selects namespaces in another way than this test thinks: %v", configuration, excluded)
			}
			excluded.Values = append(excluded.Values, s.namespace)
		}
		return s.cluster.Client.Update(s.ctx, object)
	}))
	return taken
}

// calledHere lets webhooks be called for this namespace alone, in the order that the prefix
// of their configuration's name gives. They go with the test.
func (s *scene) calledHere(prefix string, hooks []admissionregistrationv1.MutatingWebhook) {
	s.Helper()
	object := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: hooks}
	object.Name = prefix + s.namespace
	for i := range hooks {
		hooks[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{namespaceName: s.namespace}}
	}
	s.must(s.cluster.Client.Create(s.ctx, object))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), object) })
}

// kueueCalled moves Kueue's webhook of TrainJobs to another place in the order, with this
// reinvocation policy, for this namespace, and waits until the API server knows.
func (s *scene) kueueCalled(prefix string, policy admissionregistrationv1.ReinvocationPolicyType) {
	s.Helper()
	patches := func() (int, error) {
		probe := s.trainJob("probe", queued())
		err := s.cluster.Client.Create(s.ctx, probe, client.DryRunAll)
		return len(s.kueuesPatches(probe)), err
	}
	hooks := s.notCalled(kueuesConfiguration, "mtrainjob")
	if len(hooks) != 1 {
		s.Fatalf("Kueue has %d webhooks of TrainJobs, want one", len(hooks))
	}
	s.eventually("the end of Kueue's webhook", func() (bool, string) {
		count, err := patches()
		return err == nil && count == 0, fmt.Sprint(count, err)
	})
	hooks[0].ReinvocationPolicy = &policy
	s.calledHere(prefix, hooks)
	s.eventually("Kueue's webhook in its new place", func() (bool, string) {
		count, err := patches()
		return err != nil || count > 0, fmt.Sprint(count, err)
	})
}

// Kueue's mutating webhook appends its entry of runtimePatches without a look whether it is
// there: called a second time for the same creation, it makes a duplicate, which the API
// refuses, and nothing is stored. It is released with reinvocationPolicy Never, and then the
// order does not matter.
//
// With IfNeeded it is called again when the TrainJob was changed after its first call. Any
// webhook that writes something then brings that out: Trainer's defaulter, where it comes after
// Kueue, and ours. Ours takes the duplicate away again where it comes after Kueue, as it does by
// its name, also one that Trainer brought about. Called before Kueue it cannot: it is reinvoked too, to take the stamp back from a
// TrainJob that Kueue has suspended, which has Kueue called for the last time.
func TestKueueOrderOfWebhooks(t *testing.T) {
	t.Parallel()
	const (
		never    = admissionregistrationv1.NeverReinvocationPolicy
		ifNeeded = admissionregistrationv1.IfNeededReinvocationPolicy

		fine    = "stored, suspended, with 1 patch of Kueue"
		refused = `TrainJob.trainer.kubeflow.org "job" is invalid: spec.runtimePatches[1]: ` +
			`Duplicate value: {"manager":"kueue.x-k8s.io/manager"}`
		// Of the prefixes, the first sorts before all others, the second where Kueue is by
		// itself, and the third after all others.
		beforeTrainer, beforeOurs, afterOurs = "a-kueue-", "kueue-", "z-kueue-"
	)
	if order := []string{beforeTrainer, trainersConfiguration, beforeOurs, oursConfiguration, afterOurs}; !slices.IsSorted(order) {
		t.Fatalf("%v: the order is not what this test thinks", order)
	}
	for name, tc := range map[string]struct {
		prefix          string
		policy          admissionregistrationv1.ReinvocationPolicyType
		without, withIt string
	}{
		"Kueue before Signalbox, never reinvoked":       {beforeOurs, never, fine, fine},
		"Kueue after Signalbox, never reinvoked":        {afterOurs, never, fine, fine},
		"Kueue before Signalbox, reinvoked":             {beforeOurs, ifNeeded, fine, fine},
		"Kueue after Signalbox, reinvoked":              {afterOurs, ifNeeded, fine, refused},
		"Kueue before Trainer and Signalbox, reinvoked": {beforeTrainer, ifNeeded, refused, fine},
	} {
		// Creation with a queue, without Signalbox or with it.
		create := func(t *testing.T, with bool) (*scene, string) {
			t.Helper()
			s := newScene(t)
			if !with {
				s.notCalled(oursConfiguration, "")
			}
			s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
			s.kueueCalled(tc.prefix, tc.policy)
			job := s.trainJob("job", queued(), oneCPU())
			if err := s.cluster.Client.Create(s.ctx, job); err != nil {
				return s, err.Error()
			}
			state := "active"
			if !s.view(job).Active() {
				state = "suspended"
			}
			return s, fmt.Sprintf("stored, %s, with %d patch of Kueue", state, len(s.kueuesPatches(job)))
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := create(t, false); got != tc.without {
				t.Errorf("without Signalbox: %s, want %s", got, tc.without)
			}
			s, got := create(t, true)
			if got != tc.withIt {
				t.Errorf("with Signalbox: %s, want %s", got, tc.withIt)
			}
			if got != fine {
				return
			}
			s.running("job")
			job := s.get("job")
			s.inOrder(job, s.sealed(job))
			s.stamp(job)
			if patches := s.patchesOfKueue("job"); patches != 1 {
				t.Errorf("Kueue's runtimePatches came %d times, want once", patches)
			}
		})
	}
}
