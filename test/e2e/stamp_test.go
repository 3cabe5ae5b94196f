package e2e_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// The stamp is the webhook's alone: edits are put back, removals too, copies are dropped.
func TestDeadlineStampCannotBeForged(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	created := s.create("job", deadlineAnnotation(3600),
		annotated(v1alpha1.AnnotationResumedAt, "2025-01-01T00:00:00Z"),
		annotated(v1alpha1.AnnotationRuntimeSnapshot, "H4sI"))
	start := s.stamp(created)
	s.sealed(created)
	if age := time.Since(start); age > time.Minute || age < -time.Minute {
		t.Errorf("an exported manifest got the stamp %s", start)
	}
	for name, patch := range map[string]string{
		"edited":              `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"2099-01-01T00:00:00Z"}}}`,
		"removed":             `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":null}}}`,
		"all removed":         `{"metadata":{"annotations":null}}`,
		"with another change": `{"metadata":{"labels":{"a":"b"},"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":""}}}`,
	} {
		if got := s.stamp(s.patch("job", patch)); !got.Equal(start) {
			t.Errorf("%s: the stamp is %s, want %s", name, got, start)
		}
	}
	forged := s.patch("job", `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"forged"}}}`)
	for _, key := range []string{v1alpha1.AnnotationRuntimeSnapshot, v1alpha1.AnnotationRuntimeRevision} {
		if got, want := forged.Annotations[key], created.Annotations[key]; got != want {
			t.Errorf("annotation %s = %q, want %q", key, got, want)
		}
	}
}

// Suspend becomes false in any way that the API takes.
func TestDeadlineStampOnEveryWayToResume(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"false": `{"spec":{"suspend":false}}`,
		"null":  `{"spec":{"suspend":null}}`,
		"in one write with runtimePatches": `{"spec":{"suspend":false,"runtimePatches":[{"manager":"example.com/queue",
			"trainingRuntimeSpec":{"template":{"metadata":{"labels":{"a":"b"}}}}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.create("job", suspended(), deadlineAnnotation(3600))
			s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
			before := time.Now()
			start := s.stamp(s.patch("job", patch))
			if start.Before(before) || start.After(time.Now()) {
				t.Errorf("stamp %s of a resume between %s and now", start, before)
			}
			s.running("job")
		})
	}
}

// A dry run answers with the stamp and leaves nothing behind.
func TestDeadlineDryRun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.trainJob("job", deadlineAnnotation(3600))
	s.must(s.cluster.Client.Create(s.ctx, job, client.DryRunAll))
	s.stamp(s.view(job))
	if err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), s.trainJob("job")); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("after a dry run: %v", err)
	}
	s.create("job", suspended(), deadlineAnnotation(3600))
	s.stamp(s.patch("job", `{"spec":{"suspend":false}}`, client.DryRunAll))
	if stored := s.get("job"); stored.Active() || stored.Annotations[v1alpha1.AnnotationResumedAt] != "" {
		t.Errorf("a dry run stored suspend %v, annotations %v", stored.Spec.Suspend, stored.Annotations)
	}
}
