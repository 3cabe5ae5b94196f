package integration_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// policy creates a LifecyclePolicy for the scene's namespace with this spec (YAML), and returns
// it as KIND/NAME. It goes with the test.
func (s *scene) policy(name, spec string) string {
	s.Helper()
	var fields map[string]any
	s.must(yaml.Unmarshal([]byte(spec), &fields))
	fields["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.namespace}}
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	policy.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind))
	policy.SetName(s.namespace + "-" + name)
	s.must(shared.Client.Create(s.ctx, policy))
	s.Cleanup(func() { _ = shared.Client.Delete(context.Background(), policy) })
	return v1alpha1.LifecyclePolicyKind + "/" + policy.GetName()
}

// given returns the deadline of a TrainJob, as PLACE=SECONDS, and who it is from.
func (s *scene) given(job *trainer.TrainJob) (deadline, by string) {
	if seconds := job.Spec.ActiveDeadlineSeconds; seconds != nil {
		deadline = fmt.Sprint("spec=", *seconds)
	}
	if value, found := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]; found {
		deadline += "annotation=" + value
	}
	return deadline, job.Annotations[v1alpha1.AnnotationActiveDeadlineSource]
}

// gives waits until a new TrainJob would get this deadline from this.
func (s *scene) gives(want, by string, changes ...change) {
	s.Helper()
	s.eventually("a TrainJob with the deadline "+want+" of "+by, func() (bool, string) {
		probe := s.trainJob("probe", changes...)
		if err := shared.Client.Create(s.ctx, probe, client.DryRunAll); err != nil {
			return false, err.Error()
		}
		got, from := s.given(s.view(probe))
		return got == want && from == by, got + " of " + from
	})
}

// testPolicy checks that what a policy says lands where this release looks for it, is what ends
// the TrainJob, and bounds what users ask for.
func testPolicy(s *scene) {
	place, origin := "annotation=", "annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds"
	if s.release.knows.ActiveDeadline {
		place, origin = "spec=", "spec.activeDeadlineSeconds"
	}
	by := s.policy("p", `{activeDeadline: {default: 8s, max: 1h}}`)
	s.gives(place+"8", by)
	s.gives(place+"8", by, suspended(), s.rich())
	job := s.create("job", s.rich())
	start := s.stamp(job)
	s.passes("job")
	s.holds("job", start.Add(8*time.Second))
	s.endedBySignalbox(s.failsAt("job", start.Add(8*time.Second)), start, fmt.Sprintf("8 s (%s from %s)", origin, by))

	over := fmt.Sprintf(`must be less than or equal to 3600 (1h0m0s), the maximum of %s`, by)
	s.invalid(shared.Client.Create(s.ctx, s.trainJob("over", deadlineAnnotation(3601))), over)
	if s.release.knows.ActiveDeadline {
		s.invalid(shared.Client.Create(s.ctx, s.trainJob("over", deadline(3601))), "spec.activeDeadlineSeconds: Invalid value: 3601: "+over)
	}
}

// testTTL checks that a finished TrainJob goes at its time, and all that was made of it.
func testTTL(s *scene) {
	s.create("job", s.rich(), annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, "0"))
	s.passes("job")
	s.run("job")
	s.finishes("job")
	s.removed("job")
	s.gone("job")
}

// finishes completes a TrainJob as Trainer does.
func (s *scene) finishes(name string) {
	s.Helper()
	var conditions []metav1.Condition
	setCondition(&conditions, trainer.ConditionComplete, metav1.ConditionTrue, "AllJobsCompleted")
	s.eventually("the completion of TrainJob "+name, func() (bool, string) {
		err := s.report(s.object(name), conditions, s.release.status)
		return err == nil, fmt.Sprint(err)
	})
}

// removed waits until a TrainJob is gone.
func (s *scene) removed(name string) {
	s.Helper()
	s.eventually("the end of TrainJob "+name, func() (bool, string) {
		job := s.trainJob(name)
		err := shared.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job)
		return apierrors.IsNotFound(err), fmt.Sprint(err, job.Object["status"])
	})
}

// testOwnLimits checks that the defaults of Signalbox leave alone what a Trainer to come looks
// after itself, job by job, and that its maxima hold beside it.
func testOwnLimits(s *scene) {
	if !s.release.knows.RunPolicy || !s.release.knows.TTL {
		s.Skip("this release has no such fields")
	}
	defaults := s.policy("defaults", `{activeDeadline: {default: 10m}, ttlAfterFinished: {succeeded: 1s}}`)
	runPolicy := func(field string, seconds int64) change {
		return set(map[string]any{field: seconds}, "spec", "runPolicy")
	}
	s.gives("spec=600", defaults)
	s.gives("spec=600", defaults, runPolicy("ttlSecondsAfterFinished", 7200))
	s.gives("", "", runPolicy("activeDeadlineSeconds", 1200))

	// What another removes later is still there when those that Signalbox removes are gone.
	kept := map[string]change{
		"own":        set(int64(7200), "spec", "ttlSecondsAfterFinished"),
		"own-policy": runPolicy("ttlSecondsAfterFinished", 7200),
	}
	for name, own := range kept {
		s.create(name, own, annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, "0"))
		s.finishes(name)
	}
	s.create("removed")
	s.finishes("removed")
	s.removed("removed")
	for name := range kept {
		if job := s.get(name); !job.DeletionTimestamp.IsZero() || !strings.Contains(condition(job, trainer.ConditionComplete), "True") {
			s.Errorf("TrainJob %s: deleted %v, conditions %+v", name, job.DeletionTimestamp, job.Status.Conditions)
		}
	}

	limits := s.policy("limits", `{activeDeadline: {max: 3s}}`)
	s.policy("stay", `{ttlAfterFinished: {max: 1s}}`)
	for name := range kept {
		s.removed(name)
	}
	// What finishes from here on is to be seen.
	stay := &unstructured.Unstructured{}
	stay.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind))
	stay.SetName(s.namespace + "-stay")
	s.must(shared.Client.Delete(s.ctx, stay))
	// The maximum stands beside a run policy, where no later change of that touches it.
	s.gives("annotation=3", limits, runPolicy("activeDeadlineSeconds", 2))
	s.gives("annotation=3", limits, set(map[string]any{"activeDeadlineSeconds": "1h"}, "spec", "runPolicy"))
	s.gives("annotation=2", "", runPolicy("activeDeadlineSeconds", 3), deadlineAnnotation(2))
	err := shared.Client.Create(s.ctx, s.trainJob("over", runPolicy("activeDeadlineSeconds", 7200)))
	s.invalid(err, "spec.runPolicy.activeDeadlineSeconds: Invalid value: 7200: must be less than or equal to 3")
	start := s.stamp(s.create("raised", runPolicy("activeDeadlineSeconds", 2)))
	s.patch("raised", `{"spec":{"runPolicy":{"activeDeadlineSeconds":7200}}}`)
	s.failsAt("raised", start.Add(3*time.Second))
}
