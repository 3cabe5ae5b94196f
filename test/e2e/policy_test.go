package e2e_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// How a refusal of a TrainJob begins, by where it has its deadline.
const (
	refusedSpec       = "refused: spec.activeDeadlineSeconds: "
	refusedAnnotation = "refused: metadata.annotations[" + v1alpha1.AnnotationActiveDeadlineSeconds + "]: "
)

// noDeadline opts out of defaults.
func noDeadline() change {
	return annotated(v1alpha1.AnnotationActiveDeadlineSeconds, v1alpha1.None)
}

// A policy's default becomes the deadline of a new TrainJob that has none and wants one, and an
// event tells who gave it.
func TestPolicyDefault(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	policy := s.sets("p", `{"activeDeadline":{"default":"8h"}}`)
	s.gives(by(28800, s.byPolicyNamed("p")))
	if message := s.policyIs(policy, "True/InForce", 1); message != "counts for new TrainJobs, and for how long finished ones stay" {
		t.Errorf("Ready says %q", message)
	}
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"by spec":                  {deadline(60), "60"},
		"longer by spec":           {deadline(99999), "99999"},
		"by annotation":            {deadlineAnnotation(60), "annotated 60"},
		"none":                     {noDeadline(), "annotated none"},
		"a forged source":          {annotated(v1alpha1.AnnotationActiveDeadlineSource, "LifecyclePolicy/forged"), by(28800, s.byPolicyNamed("p"))},
		"run by somebody else":     {set("kueue.x-k8s.io/multikueue", "spec", "managedBy"), ""},
		"not a number of seconds":  {annotated(v1alpha1.AnnotationActiveDeadlineSeconds, "8h"), refusedAnnotation + `Invalid value: "8h": must be a whole number of seconds from 1 to 4294967295`},
		"a source without a value": {all(deadline(60), annotated(v1alpha1.AnnotationActiveDeadlineSource, "LifecyclePolicy/forged")), "60"},
	} {
		if got := s.tries(tc.change); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	job := s.create("job")
	if got, want := given(job), by(28800, s.byPolicyNamed("p")); got != want {
		t.Errorf("deadline %q, want %q", got, want)
	}
	s.create("own", deadline(60))
	s.told("job", corev1.EventTypeNormal, "DeadlineSet", "spec.activeDeadlineSeconds is 28800 s, from "+s.byPolicyNamed("p"))
	s.running("job")
	s.running("own")
	if events := s.events("own", "DeadlineSet"); len(events) > 0 {
		t.Errorf("told of a deadline that nobody gave: %s", s.text(events))
	}
	// Who gave it stays.
	if got, want := given(s.patch("job", `{"metadata":{"annotations":null}}`)), by(28800, s.byPolicyNamed("p")); got != want {
		t.Errorf("with its annotations removed: %q, want %q", got, want)
	}
}

// Of several policies the strictest of each limit counts, the first by name where they are equal,
// and a maximum of one over the default of another.
func TestPolicyStrictest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, step := range []struct {
		name, spec string
		seconds    int64
		by         string
	}{
		{"m", `{"activeDeadline":{"default":"8h"}}`, 28800, "m"},
		{"n", `{"activeDeadline":{"default":"2h","max":"1000h"}}`, 7200, "n"},
		{"o", `{"activeDeadline":{"default":"3h"}}`, 7200, "n"},
		{"p", `{"activeDeadline":{"default":"120m"}}`, 7200, "n"},
		{"e", `{"activeDeadline":{"default":"120m"}}`, 7200, "e"},
		{"q", `{"activeDeadline":{"max":"90m"}}`, 5400, "q"},
		{"r", `{"activeDeadline":{"max":"5400s"}}`, 5400, "q"},
		{"f", `{"activeDeadline":{"max":"1h30m"}}`, 5400, "f"},
		{"s", `{"activeDeadline":{"default":"1h","max":"9h"}}`, 3600, "s"},
		{"t", `{"ttlAfterFinished":{"succeeded":"1s","max":"1s"}}`, 3600, "s"},
	} {
		policy := s.sets(step.name, step.spec)
		// What changes nothing is waited for by another one, which is newer and goes again.
		mark := s.sets("z", fmt.Sprintf(`{"activeDeadline":{"default":"%ds"}}`, step.seconds-1))
		s.gives(by(step.seconds-1, s.byPolicyNamed("z")))
		s.must(s.cluster.Client.Delete(s.ctx, bare(mark)))
		s.gives(by(step.seconds, s.byPolicyNamed(step.by)))
		s.policyIs(policy, "True/InForce", 1)
	}
	if got, want := s.tries(deadline(5401)), refusedSpec+"Invalid value: 5401: must be less than or equal to 5400 (1h30m0s), the maximum of "+s.byPolicyNamed("f"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// No TrainJob gets past a maximum, and one that asks for more is told whose it is.
func TestPolicyMax(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sets("p", `{"activeDeadline":{"max":"100s"}}`)
	s.gives(by(100, s.byPolicyNamed("p")))
	atMost := ": must be less than or equal to 100 (1m40s), the maximum of " + s.byPolicyNamed("p")
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"less by spec":       {deadline(99), "99"},
		"equal by spec":      {deadline(100), "100"},
		"more by spec":       {deadline(999), refusedSpec + "Invalid value: 999" + atMost},
		"less by annotation": {deadlineAnnotation(1), "annotated 1"},
		"equal":              {deadlineAnnotation(100), "annotated 100"},
		"more by annotation": {deadlineAnnotation(101), refusedAnnotation + `Invalid value: "101"` + atMost},
		// The spec field counts where both are set.
		"more by the annotation that does not count": {all(deadline(50), deadlineAnnotation(999)), "50annotated 999"},
		"none": {noDeadline(), refusedAnnotation + `Invalid value: "none": a deadline is needed: ` + s.byPolicyNamed("p") + " allows 100 seconds (1m40s) at most"},
	} {
		for state, more := range map[string]change{"active": set(false, "spec", "suspend"), "suspended": suspended()} {
			if got := s.tries(tc.change, more); got != tc.want {
				t.Errorf("%s, %s: %q, want %q", name, state, got, tc.want)
			}
		}
	}
	job := s.create("job")
	if got, want := given(job), by(100, s.byPolicyNamed("p")); got != want {
		t.Errorf("deadline %q, want %q", got, want)
	}
	want := `The TrainJob "mine" is invalid: spec.activeDeadlineSeconds: Invalid value: 999` + atMost + "\n"
	s.prints(want, s.kubectl(s.text(s.trainJob("mine", deadline(999))), "create", "--filename", "-"))
}

// all makes all these changes.
func all(changes ...change) change {
	return func(job *unstructured.Unstructured) {
		for _, change := range changes {
			change(job)
		}
	}
}

// A TrainJob without any deadline is refused where one is required, with a hint what to do.
func TestPolicyRequired(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hint := refusedSpec + "Required value: " + s.byPolicyNamed("p") + " requires a deadline: set this field, or the annotation " +
		"lifecycle.trainer.kubeflow.org/active-deadline-seconds, to a number of seconds"
	s.sets("p", `{"activeDeadline":{"required":true}}`)
	s.gives(hint)
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"by spec":       {deadline(9), "9"},
		"by annotation": {deadlineAnnotation(9), "annotated 9"},
		"none":          {noDeadline(), refusedAnnotation + `Invalid value: "none": a deadline is needed: ` + s.byPolicyNamed("p") + " requires one"},
		"suspended":     {suspended(), hint},
	} {
		if got := s.tries(tc.change); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	// Another policy may bring what this one requires.
	other := s.sets("q", `{"activeDeadline":{"default":"1m"}}`)
	s.gives(by(60, s.byPolicyNamed("q")))
	s.gives(refusedAnnotation+`Invalid value: "none": a deadline is needed: `+s.byPolicyNamed("p")+" requires one", noDeadline())
	s.resets(other, `{"activeDeadline":{"default":null,"max":"2m"}}`)
	// A maximum is no default: it says what may be asked for.
	s.gives(hint + " up to 120 (2m0s), the maximum of " + s.byPolicyNamed("q"))
	s.must(s.cluster.Client.Delete(s.ctx, bare(other)))
	s.gives(hint)
	s.sets("a", `{"activeDeadline":{"required":true}}`)
	s.gives(refusedAnnotation+`Invalid value: "none": a deadline is needed: `+s.byPolicyNamed("a")+" requires one", noDeadline())
}

// Policies count for new TrainJobs alone: what an edit or a deletion of one changes leaves those
// alone that exist, also to resume them.
func TestPolicyEditsCountForNewTrainJobs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	policy := s.sets("p", `{"activeDeadline":{"default":"1h"}}`)
	first, second := by(3600, s.byPolicyNamed("p")), by(7200, s.byPolicyNamed("p"))
	s.gives(first)
	s.create("first")
	s.create("waiting", suspended())
	s.create("long", deadline(999999))
	s.create("free", noDeadline())

	s.resets(policy, `{"activeDeadline":{"default":"2h"}}`)
	s.gives(second)
	s.policyIs(policy, "True/InForce", 1)
	s.create("second")
	s.resets(policy, `{"activeDeadline":{"default":"30m","max":"30m","required":true}}`)
	s.gives(by(1800, s.byPolicyNamed("p")))
	check := func(when string) {
		t.Helper()
		for name, want := range map[string]string{"first": first, "second": second, "waiting": first, "long": "999999", "free": "annotated none"} {
			if got := given(s.patch(name, `{"metadata":{"labels":{"look":"again"}}}`)); got != want {
				t.Errorf("%s, %s: %q, want %q", when, name, got, want)
			}
		}
	}
	check("with a shorter maximum")
	for _, name := range []string{"long", "free"} {
		s.suspend(name)
		s.resume(name)
	}
	s.resume("waiting")
	check("resumed")
	if err := s.patchAny(s.trainJob("first"), `{"spec":{"activeDeadlineSeconds":60}}`); len(s.causes(err)) == 0 {
		t.Error("a deadline that was given can be changed")
	}
	s.must(s.cluster.Client.Delete(s.ctx, bare(policy)))
	s.gives("")
	check("with the policy gone")
	if got := s.create("last"); given(got) != "" || got.Annotations[v1alpha1.AnnotationActiveDeadlineSource] != "" {
		t.Errorf("with the policy gone: %q", given(got))
	}
}

// A copy that MultiKueue made gets no default and needs no deadline: its own cluster has said. A
// maximum holds for it, or anybody could get past one by a label.
func TestPolicyOfCopies(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	aCopy := labelled("kueue.x-k8s.io/multikueue-origin", "multikueue")
	policy := s.sets("p", `{"activeDeadline":{"default":"1h","required":true}}`)
	s.gives(by(3600, s.byPolicyNamed("p")))
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"nothing":       {suspended(), ""},
		"own":           {deadline(7200), "7200"},
		"none":          {noDeadline(), "annotated none"},
		"what is given": {all(deadline(3600), annotated(v1alpha1.AnnotationActiveDeadlineSource, s.byPolicyNamed("p"))), "3600"},
	} {
		if got := s.tries(aCopy, tc.change); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	s.resets(policy, `{"activeDeadline":{"max":"2h"}}`)
	s.gives(by(7200, s.byPolicyNamed("p")), aCopy)
	s.gives(by(3600, s.byPolicyNamed("p")))
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"own":  {deadline(7200), "7200"},
		"more": {deadline(7201), refusedSpec + "Invalid value: 7201: must be less than or equal to 7200 (2h0m0s), the maximum of " + s.byPolicyNamed("p")},
		"none": {noDeadline(), refusedAnnotation + `Invalid value: "none": a deadline is needed: ` + s.byPolicyNamed("p") + " allows 7200 seconds (2h0m0s) at most"},
	} {
		if got := s.tries(aCopy, tc.change); got != tc.want {
			t.Errorf("with a maximum, %s: %q, want %q", name, got, tc.want)
		}
	}
}

// A dry run answers with what the creation then stores, and leaves nothing behind: no TrainJob,
// no event, no count.
func TestPolicyDryRun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sets("p", `{"activeDeadline":{"default":"1h","max":"2h"}}`)
	s.gives(by(3600, s.byPolicyNamed("p")))
	count := func(decision string) float64 {
		return s.figure(shared.Webhook, "signalbox_policy_decisions_total", "decision", decision, "by", s.byPolicyNamed("p"))
	}
	dry := s.trainJob("job")
	s.must(s.cluster.Client.Create(s.ctx, dry, client.DryRunAll))
	s.tries(deadline(9999))
	if got := count("default") + count("refused_max"); got != 0 {
		t.Errorf("dry runs are counted %v times", got)
	}
	if err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(dry), s.trainJob("job")); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("after a dry run: %v", err)
	}
	if events := s.events("job", "DeadlineSet"); len(events) > 0 {
		t.Errorf("after a dry run: %s", s.text(events))
	}
	job := s.trainJob("job")
	s.must(s.cluster.Client.Create(s.ctx, job))
	if err := s.cluster.Client.Create(s.ctx, s.trainJob("more", deadline(9999))); len(s.causes(err)) != 1 {
		t.Errorf("over the maximum: %v", err)
	}
	if count("default") < 1 || count("refused_max") < 1 {
		t.Errorf("%v defaults and %v refusals are counted", count("default"), count("refused_max"))
	}
	for _, object := range []*unstructured.Unstructured{dry, job} {
		// What is of the one creation alone.
		annotations := object.GetAnnotations()
		s.stamp(s.view(object))
		s.sealed(s.view(object))
		delete(annotations, v1alpha1.AnnotationResumedAt)
		delete(annotations, v1alpha1.AnnotationRuntimeSnapshot)
		object.SetAnnotations(annotations)
	}
	if dry, job := s.text([]any{dry.Object["spec"], dry.GetAnnotations()}), s.text([]any{job.Object["spec"], job.GetAnnotations()}); dry != job {
		t.Errorf("the dry run: %s\nthe creation: %s", dry, job)
	}
}
