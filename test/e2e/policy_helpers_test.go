package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// lifecyclePolicy is a LifecyclePolicy with this spec (JSON) for the scene's namespace alone, with
// a name of the scene's own, not yet created. Policies belong to the cluster, which the tests
// share.
func (s *scene) lifecyclePolicy(name, spec string) *unstructured.Unstructured {
	s.Helper()
	var fields map[string]any
	s.must(json.Unmarshal([]byte(spec), &fields))
	if _, found := fields["namespaceSelector"]; !found {
		fields["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{namespaceName: s.namespace}}
	}
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	policy.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind))
	policy.SetName(s.namespace + "-" + name)
	return policy
}

// byPolicyNamed is how the scene's policy is named as who gave or limits something.
func (s *scene) byPolicyNamed(name string) string {
	return v1alpha1.LifecyclePolicyKind + "/" + s.namespace + "-" + name
}

// sets creates a policy of the scene, which goes with the test. The webhook learns of it a moment
// later.
func (s *scene) sets(name, spec string) *unstructured.Unstructured {
	s.Helper()
	policy := s.lifecyclePolicy(name, spec)
	s.must(s.cluster.Client.Create(s.ctx, policy))
	s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), bare(policy)) })
	return policy
}

// resets gives a policy other fields, a JSON merge patch of its spec.
func (s *scene) resets(policy client.Object, spec string) {
	s.Helper()
	s.must(s.patchAny(bare(policy), `{"spec":`+spec+`}`))
}

// policyStatus reads the status of a policy.
func (s *scene) policyStatus(policy client.Object) (*v1alpha1.LifecyclePolicy, string) {
	s.Helper()
	stored, read := bare(policy), &v1alpha1.LifecyclePolicy{}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(policy), stored))
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, read))
	return read, s.text(stored.Object["status"])
}

// policyIs waits until the status of a policy is of its present spec, with Ready as
// STATUS/REASON and this many namespaces, and returns the message of Ready.
func (s *scene) policyIs(policy client.Object, ready string, namespaces int32) string {
	s.Helper()
	message := ""
	s.eventually(fmt.Sprintf("Ready=%s and %d namespaces of %s", ready, namespaces, policy.GetName()), func() (bool, string) {
		read, text := s.policyStatus(policy)
		c := meta.FindStatusCondition(read.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || read.Status.MatchingNamespaces == nil {
			return false, text
		}
		message = c.Message
		return fmt.Sprintf("%s/%s", c.Status, c.Reason) == ready && *read.Status.MatchingNamespaces == namespaces &&
			read.Status.ObservedGeneration == read.Generation && c.ObservedGeneration == read.Generation, text
	})
	return message
}

// given is the deadline that a TrainJob was given, as "SECONDS by KIND/NAME", wherever it stands;
// without a source it is its own. "" is none.
func given(job *trainer.TrainJob) string {
	text := ""
	if seconds := job.Spec.ActiveDeadlineSeconds; seconds != nil {
		text = fmt.Sprint(*seconds)
	}
	if value, found := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]; found {
		text += "annotated " + value
	}
	if by, found := job.Annotations[v1alpha1.AnnotationActiveDeadlineSource]; found {
		text += " by " + by
	}
	return text
}

// tries creates a TrainJob as a dry run. It returns the deadline that it is given, or why it is
// refused, which by a policy is always as invalid.
func (s *scene) tries(changes ...change) string {
	s.Helper()
	job := s.trainJob("try", changes...)
	err := s.cluster.Client.Create(s.ctx, job, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(err):
		_, reason, _ := strings.Cut(err.Error(), `"try" is invalid: `)
		return "refused: " + reason
	case err != nil:
		return err.Error()
	}
	return given(s.view(job))
}

// gives waits until a new TrainJob would be given this deadline, or be refused so: see tries. The
// webhook sees policies, namespaces and runtimes by caches.
func (s *scene) gives(want string, changes ...change) {
	s.Helper()
	s.eventually("a new TrainJob with "+want, func() (bool, string) {
		got := s.tries(changes...)
		return got == want, got
	})
}

// by is a deadline that was given, as the function given tells it.
func by(seconds int64, name string) string { return fmt.Sprintf("%d by %s", seconds, name) }

// events lists the events of this reason about an object of the scene, one text each.
func (s *scene) events(name, reason string) []corev1.Event {
	s.Helper()
	var list corev1.EventList
	s.must(s.cluster.Client.List(s.ctx, &list, client.InNamespace(s.namespace), client.MatchingFields{"reason": reason, "involvedObject.name": name}))
	return list.Items
}

// told waits for the only event of this reason about a TrainJob, and checks its type and text.
func (s *scene) told(name, kind, reason, want string) {
	s.Helper()
	s.eventually("the event "+reason+" of TrainJob "+name, func() (bool, string) {
		events := s.events(name, reason)
		return len(events) == 1 && events[0].Type == kind && events[0].Message == want && !events[0].FirstTimestamp.IsZero(), s.text(events)
	})
}
