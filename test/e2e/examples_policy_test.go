package e2e_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Each example of a policy is applied as an admin would, with strict validation, and does what it
// says. They select what they like, so that no other test runs beside this one.
func TestPolicyExamples(t *testing.T) {
	for file, test := range map[string]func(*scene){
		"policy-research.yaml": func(s *scene) {
			s.gives("")
			s.must(s.patchAny(s.space(), `{"metadata":{"labels":{"team":"research"}}}`))
			s.gives(by(28800, "LifecyclePolicy/research"))
			s.gives("259200", deadline(259200))
			s.gives("refused: spec.activeDeadlineSeconds: Invalid value: 259201: must be less than or equal to 259200 (72h0m0s), "+
				"the maximum of LifecyclePolicy/research", deadline(259201))
		},
		"policy-required.yaml": func(s *scene) {
			s.gives("")
			s.must(s.patchAny(s.space(), `{"metadata":{"labels":{"tier":"shared"}}}`))
			s.gives("refused: spec.activeDeadlineSeconds: Required value: LifecyclePolicy/say-how-long requires a deadline: set this field, " +
				"or the annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds, to a number of seconds up to 604800 (168h0m0s), " +
				"the maximum of LifecyclePolicy/say-how-long")
			s.gives("3600", deadline(3600))
		},
		"policy-cleanup.yaml": func(s *scene) {
			ended := func(name, kind string, ago time.Duration, changes ...change) {
				s.create(name, changes...)
				s.must(s.cluster.Client.Status().Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, endPatch(kind, time.Now().Add(-ago)))))
			}
			ended("succeeded", trainer.ConditionComplete, 23*time.Hour)
			ended("failed", trainer.ConditionFailed, 167*time.Hour)
			ended("succeeded-before", trainer.ConditionComplete, 25*time.Hour)
			ended("failed-before", trainer.ConditionFailed, 169*time.Hour)
			ended("kept", trainer.ConditionComplete, 719*time.Hour, stayAnnotation(4294967295))
			ended("kept-too-long", trainer.ConditionComplete, 721*time.Hour, stayAnnotation(4294967295))
			for _, name := range []string{"succeeded-before", "failed-before", "kept-too-long"} {
				s.deleted(name)
			}
			s.stays("succeeded", "failed", "kept")
		},
		"policy-runtime-default.yaml": func(s *scene) {
			if got, want := given(s.get("a-week")), by(604800, "TrainingRuntime/long-training"); got != want {
				s.Errorf("the TrainJob of the example has the deadline %s, want %s", got, want)
			}
			s.sets("p", `{"activeDeadline":{"max":"100h"},"ttlAfterFinished":{"succeeded":"1s"}}`)
			s.gives(by(360000, s.byPolicyNamed("p")), set(map[string]any{"kind": namespaced, "name": "long-training"}, "spec", "runtimeRef"))
			// It stays for two weeks, whatever the policy's default is.
			s.must(s.cluster.Client.Status().Patch(s.ctx, s.trainJob("a-week"), client.RawPatch(types.MergePatchType, endPatch(trainer.ConditionComplete, time.Now().Add(-13*24*time.Hour)))))
			s.stays("a-week")
		},
		"policy-exempt.yaml": func(s *scene) {
			s.gives(by(86400, "LifecyclePolicy/a-day-but-for-production"))
			s.namespace = "production"
			namespace := s.space()
			s.must(s.cluster.Client.Create(s.ctx, namespace))
			s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), namespace) })
			s.gives("")
		},
	} {
		t.Run(file, func(t *testing.T) {
			s := newScene(t)
			defer func() {
				policies := &unstructured.Unstructured{}
				policies.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind))
				s.must(s.cluster.Client.DeleteAllOf(context.Background(), policies))
			}()
			s.applied("../../examples/" + file)
			test(s)
		})
	}
}

// space is the scene's namespace, to be patched.
func (s *scene) space() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
}
