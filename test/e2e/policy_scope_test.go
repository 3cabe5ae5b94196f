package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// label sets labels of the scene's namespace, JSON of an object.
func (s *scene) label(labels string) {
	s.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.must(s.patchAny(namespace, `{"metadata":{"labels":`+labels+`}}`))
}

// A policy with a selector that is none selects nothing, and says why: by Ready, by an event, and
// not by hurting anybody. Corrected, it counts.
func TestPolicyInvalidSelector(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ selector, want string }{
		"an operator": {`"namespaceSelector":{"matchExpressions":[{"key":"` + namespaceName + `","operator":"Is","values":["NAMESPACE"]}]}`,
			`selects nothing: spec.namespaceSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		"no values": {`"namespaceSelector":{"matchExpressions":[{"key":"` + namespaceName + `","operator":"In","values":[]}]}`,
			"selects nothing: spec.namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		"a label of runtimes": {`"runtimeSelector":{"matchLabels":{"a b":"c"}}`,
			`selects nothing: spec.runtimeSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			policy := s.sets("p", strings.ReplaceAll(`{`+tc.selector+`,"activeDeadline":{"default":"1m","max":"1m"},"ttlAfterFinished":{"max":"1s"}}`, "NAMESPACE", s.namespace))
			message := s.policyIs(policy, "False/InvalidSelector", 0)
			if !strings.HasPrefix(message, tc.want) {
				t.Errorf("Ready says %q, want %q", message, tc.want)
			}
			s.eventually("a warning event about the policy", func() (bool, string) {
				var events corev1.EventList
				s.must(s.cluster.Client.List(s.ctx, &events, client.InNamespace(metav1.NamespaceDefault),
					client.MatchingFields{"reason": "InvalidSelector", "involvedObject.name": policy.GetName()}))
				return len(events.Items) == 1 && events.Items[0].Message == message && events.Items[0].Type == corev1.EventTypeWarning &&
					events.Items[0].InvolvedObject.UID == policy.GetUID(), s.text(events.Items)
			})
			// Whoever knows the newer one knows the other too.
			s.sets("newer", `{"activeDeadline":{"default":"1h"},"ttlAfterFinished":{"succeeded":"1h"}}`)
			s.gives(by(3600, s.byPolicyNamed("newer")))
			s.create("job", deadline(7200))
			s.finishedAs("job", trainer.ConditionComplete)
			s.stays("job")

			s.resets(policy, fmt.Sprintf(`{"namespaceSelector":{"matchExpressions":null,"matchLabels":{%q:%q}},"runtimeSelector":null}`, namespaceName, s.namespace))
			s.policyIs(policy, "True/InForce", 1)
			s.gives(by(60, s.byPolicyNamed("p")))
			s.deleted("job")
		})
	}
}

// A label brings a namespace under a policy, and out of it: for new TrainJobs, for finished ones,
// and in the count.
func TestPolicyNamespaceLabels(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	policy := s.sets("p", fmt.Sprintf(`{"namespaceSelector":{"matchLabels":{"team":%q}},"activeDeadline":{"default":"1h"},"ttlAfterFinished":{"succeeded":"1s"}}`, s.namespace))
	s.policyIs(policy, "True/InForce", 0)
	s.create("job")
	s.finishedAs("job", trainer.ConditionComplete)
	s.stays("job")

	s.label(fmt.Sprintf(`{"team":%q}`, s.namespace))
	s.gives(by(3600, s.byPolicyNamed("p")))
	s.policyIs(policy, "True/InForce", 1)
	s.deleted("job")

	s.label(`{"team":null}`)
	s.gives("")
	s.policyIs(policy, "True/InForce", 0)
	s.create("job")
	s.finishedAs("job", trainer.ConditionComplete)
	s.stays("job")

	// One more namespace, and one that goes, count too.
	other := newScene(t)
	other.label(fmt.Sprintf(`{"team":%q}`, s.namespace))
	s.policyIs(policy, "True/InForce", 1)
	s.must(s.cluster.Client.Delete(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.namespace}}))
	s.policyIs(policy, "True/InForce", 0)
}

// A policy may select by the labels of the runtime, anywhere in the cluster.
func TestPolicyRuntimeSelector(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sets("p", fmt.Sprintf(`{"namespaceSelector":null,"runtimeSelector":{"matchLabels":{"size":%q}},"activeDeadline":{"default":"1h"},"ttlAfterFinished":{"max":"1s"}}`, s.namespace))
	plain := s.stored(s.object(namespaced, "plain", jobSetOf(oldImage)))
	for kind, name := range map[string]string{namespaced: "small", cluster_: "large"} {
		runtime := s.object(kind, name, jobSetOf(oldImage))
		runtime.SetLabels(map[string]string{"size": s.namespace})
		s.stored(runtime)
		s.gives(by(3600, s.byPolicyNamed("p")), on(runtime))
		s.gives("", on(plain))
		s.gives("")
		s.create(name, on(runtime))
		s.finishedAs(name, trainer.ConditionComplete)
		s.deleted(name)

		s.must(s.patchAny(bare(runtime), `{"metadata":{"labels":{"size":null}}}`))
		s.gives("", on(runtime))
		s.create(name, on(runtime))
		s.finishedAs(name, trainer.ConditionComplete)
		s.stays(name)
		s.must(s.patchAny(bare(runtime), fmt.Sprintf(`{"metadata":{"labels":{"size":%q}}}`, s.namespace)))
		s.gives(by(3600, s.byPolicyNamed("p")), on(runtime))
		s.deleted(name)
	}
	s.create("plain", on(plain))
	s.finishedAs("plain", trainer.ConditionComplete)
	s.stays("plain")
}

// A runtime says the deadline and the time to stay of its TrainJobs. What it says is checked when
// it is written, a TrainJob's own goes before it, it goes before a policy's, and a policy's
// maximum limits it.
func TestPolicyRuntimeDefault(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{namespaced, cluster_} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			object := s.object(kind, "train", jobSetOf(oldImage))
			for key, values := range map[string]map[string]string{
				v1alpha1.AnnotationDefaultActiveDeadlineSeconds: {
					"0": "must be greater than or equal to 1", "-1": "must be greater than or equal to 1", "4294967296": "must be less than or equal to 4294967295",
					"": "must be a whole number of seconds from 1 to 4294967295", "8h": "must be a whole number of seconds from 1 to 4294967295",
					"none": "must be a whole number of seconds from 1 to 4294967295",
				},
				v1alpha1.AnnotationDefaultTTLSecondsAfterFinished: {
					"-1": "must be greater than or equal to 0", "4294967296": "must be less than or equal to 4294967295",
					"1.5": "must be a whole number of seconds from 0 to 4294967295", "none": "must be a whole number of seconds from 0 to 4294967295",
				},
			} {
				for value, text := range values {
					bad := object.DeepCopy()
					bad.SetAnnotations(map[string]string{key: value})
					want := fmt.Sprintf("metadata.annotations[%s]: Invalid value: %q: %s", key, value, text)
					if err := s.cluster.Client.Create(s.ctx, bad, client.DryRunAll); len(s.causes(err)) != 1 || !strings.HasSuffix(err.Error(), want) {
						t.Errorf("created: %v, want %s", err, want)
					}
				}
			}
			runtime := s.stored(object)
			name := kind + "/" + runtime.GetName()
			says := func(key, value string) error {
				return s.patchAny(bare(runtime), fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value))
			}
			s.gives("", on(runtime))
			for key, values := range map[string][]string{
				v1alpha1.AnnotationDefaultActiveDeadlineSeconds:   {`"0"`, `"x"`},
				v1alpha1.AnnotationDefaultTTLSecondsAfterFinished: {`"-1"`, `"x"`},
			} {
				for _, value := range values {
					if err := says(key, value); len(s.causes(err)) != 1 {
						t.Errorf("%s: %s set with %v", key, value, err)
					}
				}
			}
			s.must(says(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, `"600"`))
			s.gives(by(600, name), on(runtime))
			s.sets("p", `{"activeDeadline":{"default":"5m","required":true}}`)
			s.gives(by(300, s.byPolicyNamed("p")))
			if got := s.tries(on(runtime)); got != by(600, name) {
				t.Errorf("beside a policy's default: %q", got)
			}
			if got := s.tries(on(runtime), deadline(7)); got != "7" {
				t.Errorf("with a deadline of its own: %q", got)
			}
			if got := s.tries(on(runtime), deadlineAnnotation(99999)); got != "annotated 99999" {
				t.Errorf("with an annotation of its own: %q", got)
			}
			job := s.create("job", on(runtime))
			if got := given(job); got != by(600, name) {
				t.Errorf("created with %q", got)
			}
			s.told("job", corev1.EventTypeNormal, "DeadlineSet", "spec.activeDeadlineSeconds is 600 s, from "+name)

			s.sets("q", `{"activeDeadline":{"max":"9m"}}`)
			s.gives(by(540, s.byPolicyNamed("q")), on(runtime))
			s.must(says(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, `"60"`))
			s.gives(by(60, name), on(runtime))
			s.must(says(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, `null`))
			s.gives(by(300, s.byPolicyNamed("p")), on(runtime))
			if got := given(s.get("job")); got != by(600, name) {
				t.Errorf("changed afterwards to %q", got)
			}
		})
	}
}
