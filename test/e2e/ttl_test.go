package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// A finished TrainJob goes at its time, to the second, with all that was made of it: at once where
// it says 0, and later where it, its runtime or a policy says so. An event and the figures tell
// why.
func TestTTLToTheSecond(t *testing.T) {
	s := newScene(t)
	runtime := s.object(namespaced, "train", jobSetOf(oldImage))
	runtime.SetAnnotations(map[string]string{v1alpha1.AnnotationDefaultTTLSecondsAfterFinished: "4"})
	s.stored(runtime)
	s.known("train")
	s.sets("p", `{"ttlAfterFinished":{"succeeded":"5s"}}`)
	cases := map[string]struct {
		changes []change
		seconds int
		by      string
		source  string
	}{
		"at-once":    {[]change{stayAnnotation(0)}, 0, byAnnotation, "annotation"},
		"annotation": {[]change{stayAnnotation(3), on(runtime)}, 3, byAnnotation, "annotation"},
		"runtime":    {[]change{on(runtime)}, 4, "TrainingRuntime/train", "runtime"},
		"policy":     {nil, 5, s.byPolicyNamed("p"), "policy"},
	}
	before := map[string]float64{}
	lags := s.figure(shared.Reconciler, "signalbox_ttl_deletion_lag_seconds")
	seen := map[string]*sight{}
	for name, tc := range cases {
		before[tc.source] = s.removals(tc.source)
		seen[name] = s.watched(name)
		s.create(name, tc.changes...)
	}
	for name := range cases {
		s.running(name)
	}
	for name := range cases {
		s.finish(name)
	}
	for name, tc := range cases {
		job, late := seen[name].goes(tc.seconds)
		if late > 2*time.Second {
			t.Errorf("%s: removed %s after its time, want at most 2 s", name, late)
		}
		if got := condition(job, trainer.ConditionComplete); got != "True/AllJobsCompleted" {
			t.Errorf("%s: removed with Complete = %q", name, got)
		}
		s.leavesNothing(name)
		s.told(name, corev1.EventTypeNormal, "TTLExpired", removedText(job.FinishedAt().LastTransitionTime.Time, tc.seconds, tc.by))
	}
	for source, want := range map[string]float64{"annotation": 2, "runtime": 1, "policy": 1} {
		if got := s.removals(source) - before[source]; got != want {
			t.Errorf("%v removals by %s, want %v", got, source, want)
		}
	}
	if got := s.figure(shared.Reconciler, "signalbox_ttl_deletion_lag_seconds") - lags; got != 4 {
		t.Errorf("%v lags are counted, want 4", got)
	}
}

// A TrainJob that fails by its deadline and is to go at once is seen to fail first: by its status,
// an event and the figures.
func TestTTLAfterADeadline(t *testing.T) {
	s := newScene(t)
	expirations := s.figure(shared.Reconciler, "signalbox_deadline_expirations_total", "source", "annotation")
	removals := s.removals("annotation")
	seen := s.watched("job")
	start := s.stamp(s.create("job", deadlineAnnotation(12), stayAnnotation(0)))
	s.running("job")
	job, late := seen.goes(0)
	if late > 2*time.Second {
		t.Errorf("removed %s after its time, want at most 2 s", late)
	}
	failed := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed)
	want := fmt.Sprintf("active since %s, longer than the limit of 12 s (annotation %s)", start.UTC().Format(time.RFC3339), v1alpha1.AnnotationActiveDeadlineSeconds)
	if failed == nil || failed.Reason != trainer.ReasonDeadlineExceeded || failed.Message != want || seen.finished.Before(start.Add(12*time.Second)) {
		t.Errorf("seen to end at %s as %+v", seen.finished, failed)
	}
	s.leavesNothing("job")
	s.told("job", corev1.EventTypeWarning, "DeadlineExceeded", want)
	s.told("job", corev1.EventTypeNormal, "TTLExpired", removedText(failed.LastTransitionTime.Time, 0, byAnnotation))
	if got := s.figure(shared.Reconciler, "signalbox_deadline_expirations_total", "source", "annotation") - expirations; got != 1 {
		t.Errorf("%v expirations, want 1", got)
	}
	if got := s.removals("annotation") - removals; got != 1 {
		t.Errorf("%v removals, want 1", got)
	}
}

// The annotation of a TrainJob may change as long as it is there, and what it says then counts. It
// is checked when it changes.
func TestTTLEdited(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for value, text := range map[string]string{
		`"-1"`: "must be greater than or equal to 0", `"4294967296"`: "must be less than or equal to 4294967295",
		`""`: "must be a whole number of seconds from 0 to 4294967295", `"1h"`: "must be a whole number of seconds from 0 to 4294967295",
	} {
		want := fmt.Sprintf("refused: metadata.annotations[%s]: Invalid value: %s: %s, or none", v1alpha1.AnnotationTTLSecondsAfterFinished, value, text)
		if got := s.tries(annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, value[1:len(value)-1])); got != want {
			t.Errorf("created: %q, want %q", got, want)
		}
	}
	for _, name := range []string{"sooner", "later", "never", "undecided"} {
		s.create(name, stayAnnotation(map[string]int{"sooner": 3600}[name]+20))
	}
	s.create("added", suspended())
	s.must(s.staysFor("added", `"1"`))
	s.resume("added")
	now := time.Now()
	for _, name := range []string{"sooner", "later", "never", "undecided", "added"} {
		s.finishedAs(name, trainer.ConditionComplete)
	}
	for _, value := range []string{`"-1"`, `"x"`} {
		if err := s.staysFor("sooner", value); len(s.causes(err)) != 1 {
			t.Errorf("%s set with %v", value, err)
		}
	}
	s.must(s.staysFor("sooner", `"2"`))
	s.must(s.staysFor("later", `"3600"`))
	s.must(s.staysFor("never", `null`))
	s.must(s.staysFor("undecided", `"none"`))
	s.deleted("sooner")
	s.deleted("added")
	s.staysUntil(now.Add(23*time.Second), "later", "never", "undecided")
	s.must(s.staysFor("never", `"0"`))
	s.must(s.staysFor("undecided", `"5"`))
	s.deleted("never")
	s.deleted("undecided")
	s.stays("later")
}

// How long finished TrainJobs stay is what policies and runtimes say at the moment: what they said
// when a TrainJob was created, or had finished, is forgotten.
func TestTTLOfPoliciesAndRuntimesAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	policy := s.sets("p", `{"ttlAfterFinished":{"succeeded":"1s","failed":"1h"}}`)
	s.create("complete")
	s.create("failed")
	s.create("free", annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, v1alpha1.None))
	s.create("long", stayAnnotation(7200))
	// Of a copy, MultiKueue's own cluster must learn first how it ended; only a maximum counts.
	s.create("copy", stayAnnotation(0), labelled("kueue.x-k8s.io/multikueue-origin", "multikueue"))
	// What somebody else runs is never removed.
	s.create("elsewhere", stayAnnotation(0), set("kueue.x-k8s.io/multikueue", "spec", "managedBy"))
	s.finishedAs("copy", trainer.ConditionComplete)
	s.finishedAs("elsewhere", trainer.ConditionComplete)
	ended := time.Now()
	s.finishedAs("complete", trainer.ConditionComplete)
	s.finishedAs("failed", trainer.ConditionFailed)
	s.finishedAs("free", trainer.ConditionComplete)
	s.finishedAs("long", trainer.ConditionFailed)
	s.deleted("complete")
	s.stays("failed", "free", "long", "copy", "elsewhere")

	// Before that is over, the policy is gone.
	s.resets(policy, `{"ttlAfterFinished":{"failed":"20s"}}`)
	s.must(s.cluster.Client.Delete(s.ctx, bare(policy)))
	s.staysUntil(ended.Add(22*time.Second), "failed", "copy")
	s.create("later")
	s.finishedAt("later", trainer.ConditionComplete, time.Now().Add(-time.Hour))
	s.stays("later")
	again := s.sets("again", `{"ttlAfterFinished":{"failed":"1s"}}`)
	s.deleted("failed")
	s.stays("later")
	s.resets(again, `{"ttlAfterFinished":{"max":"2h"}}`)
	s.policyIs(again, "True/InForce", 1)
	s.stays("later", "free", "long", "copy")
	s.resets(again, `{"ttlAfterFinished":{"max":"1s"}}`)
	for _, name := range []string{"later", "free", "long", "copy"} {
		s.deleted(name)
		s.eventually("the event of the removal of "+name, func() (bool, string) {
			events := s.events(name, "TTLExpired")
			return len(events) == 1 && strings.HasSuffix(events[0].Message, ", to stay 1 s ("+s.byPolicyNamed("again")+")"), s.text(events)
		})
	}
	s.stays("elsewhere")
}

// The same of what a runtime says, of either kind. A policy's maximum goes over it.
func TestTTLOfRuntimes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{namespaced, cluster_} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			runtime := s.object(kind, "train", jobSetOf(oldImage))
			runtime.SetAnnotations(map[string]string{v1alpha1.AnnotationDefaultTTLSecondsAfterFinished: "3600"})
			s.stored(runtime)
			says := func(value string) {
				s.must(s.patchAny(bare(runtime), fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, value)))
			}
			s.sets("p", `{"ttlAfterFinished":{"succeeded":"1s"}}`)
			s.createOn(runtime, "job")
			s.create("own", on(runtime), stayAnnotation(7200))
			s.create("free", on(runtime), annotated(v1alpha1.AnnotationTTLSecondsAfterFinished, v1alpha1.None))
			s.create("capped", on(runtime))
			for _, name := range []string{"job", "own", "free"} {
				s.finishedAs(name, trainer.ConditionComplete)
			}
			s.stays("job", "own", "free")
			says(`"0"`)
			s.deleted("job")
			s.told("job", corev1.EventTypeNormal, "TTLExpired", removedText(s.finishTold("job"), 0, kind+"/"+runtime.GetName()))
			s.stays("own", "free")

			says(`"3600"`)
			s.finishedAs("capped", trainer.ConditionComplete)
			s.stays("capped")
			limit := s.sets("q", `{"ttlAfterFinished":{"max":"1s"}}`)
			for _, name := range []string{"capped", "own", "free"} {
				s.deleted(name)
				s.told(name, corev1.EventTypeNormal, "TTLExpired", removedText(s.finishTold(name), 1, s.byPolicyNamed("q")))
			}
			s.must(s.cluster.Client.Delete(s.ctx, bare(limit)))

			// A runtime that is gone, be it to come back, says what is sealed of it.
			s.create("orphan", on(runtime))
			s.finishedAs("orphan", trainer.ConditionComplete)
			s.removed(runtime)
			s.stays("orphan")
			s.sets("r", `{"ttlAfterFinished":{"max":"2s"}}`)
			s.deleted("orphan")
			s.told("orphan", corev1.EventTypeNormal, "TTLExpired", removedText(s.finishTold("orphan"), 2, s.byPolicyNamed("r")))
		})
	}
}

// finishTold is when a TrainJob that is gone finished, as the event of its removal says.
func (s *scene) finishTold(name string) time.Time {
	s.Helper()
	var at time.Time
	s.eventually("the event TTLExpired of TrainJob "+name, func() (bool, string) {
		events := s.events(name, "TTLExpired")
		if len(events) != 1 {
			return false, s.text(events)
		}
		var text string
		_, err := fmt.Sscanf(events[0].Message, "finished at %s", &text)
		s.must(err)
		at, err = time.Parse(time.RFC3339, strings.TrimSuffix(text, ","))
		s.must(err)
		return true, ""
	})
	return at
}
