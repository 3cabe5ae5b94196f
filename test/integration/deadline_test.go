package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Warnings of a setting that was removed and put back.
const (
	undoneSpec       = "spec.activeDeadlineSeconds: field is immutable: the change was undone"
	undoneAnnotation = "metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]: field is immutable: the change was undone"
)

func testAnnotation(s *scene) {
	start := s.stamp(s.create("job", deadlineAnnotation(8)))
	s.passes("job")
	s.run("job")
	s.holds("job", start.Add(8*time.Second))
	job := s.failsAt("job", start.Add(8*time.Second))
	s.endedBySignalbox(job, start, "8 s (annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds)")
	// Trainer, which looks at it again, neither clears it nor starts it anew.
	if err := s.pass("job"); err != nil && !strings.Contains(err.Error(), "TrainJob job is finished") {
		s.Error(err)
	}
	if jobSet := s.jobSet("job"); jobSet != nil {
		s.Error("the JobSet was made again")
	}
	if after := s.get("job"); !after.DeadlineExceeded() {
		s.Errorf("after Trainer's next look the conditions are %+v", after.Status.Conditions)
	}
}

// endedBySignalbox checks what the end of a TrainJob says, and who wrote it.
func (s *scene) endedBySignalbox(job *trainer.TrainJob, start time.Time, limit string) {
	s.Helper()
	want := fmt.Sprintf("active since %s, longer than the limit of %s; no pod was ever ready", start.Format(time.RFC3339), limit)
	if got := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed).Message; got != want {
		s.Errorf("message = %q, want %q", got, want)
	}
	if !slices.ContainsFunc(s.object(job.Name).GetManagedFields(), writtenBySignalbox) {
		s.Error("the status was written by another")
	}
	s.eventually("one event", func() (bool, string) {
		var events corev1.EventList
		s.must(shared.Client.List(s.ctx, &events, client.InNamespace(s.namespace), client.MatchingFields{"reason": trainer.ReasonDeadlineExceeded}))
		var got []string
		for _, event := range events.Items {
			if event.InvolvedObject.UID == job.UID && !event.FirstTimestamp.IsZero() && event.Count == 1 {
				got = append(got, event.Message)
			}
		}
		return slices.Equal(got, []string{want}), fmt.Sprintf("%q of %d", got, len(events.Items))
	})
}

func testSuspend(s *scene) {
	const limit = 5 * time.Second
	first := s.stamp(s.create("job", deadlineAnnotation(5)))
	s.passes("job")
	if stamp, found := s.suspend("job").Annotations[v1alpha1.AnnotationResumedAt]; found {
		s.Errorf("suspended with the stamp %s", stamp)
	}
	s.passes("job")
	// Past the deadline of the first period, nothing happens.
	s.holds("job", first.Add(limit+time.Second))
	if s.jobSet("job") == nil {
		s.Error("the JobSet of a suspended TrainJob is gone")
	}
	second := s.stamp(s.resume("job"))
	s.passes("job")
	s.holds("job", second.Add(limit))
	s.failsAt("job", second.Add(limit))
}

func testAnnotationValidated(s *scene) {
	const path = "metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]: Invalid value: "
	for value, want := range map[string]string{
		"0":          "must be greater than or equal to 1",
		"-1":         "must be greater than or equal to 1",
		"4294967296": "must be less than or equal to 4294967295",
		"9223372037": "must be less than or equal to 4294967295",
		"1h":         "must be a whole number of seconds from 1 to 4294967295",
		"":           "must be a whole number of seconds from 1 to 4294967295",
	} {
		err := shared.Client.Create(s.ctx, s.trainJob("job", annotated(v1alpha1.AnnotationActiveDeadlineSeconds, value)))
		s.invalid(err, fmt.Sprintf("%s%q: %s", path, value, want))
	}
	s.create("longest", deadlineAnnotation(4294967295))
	s.create("job", deadlineAnnotation(3600))
	_, err := s.tryPatch("job", `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"7200"}}}`)
	s.invalid(err, path+`"7200": field is immutable`)
	s.undone("job", `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":null}}}`, undoneAnnotation)
	s.create("none")
	_, err = s.tryPatch("none", `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/active-deadline-seconds":"7200"}}}`)
	s.invalid(err, path+`"7200": field is immutable`)
}

// undone sends a merge patch that removes a deadline, and checks that nothing of the TrainJob
// changed and that the user was told.
func (s *scene) undone(name, patch, warning string) {
	s.Helper()
	before := s.object(name)
	got := s.warned(func(c client.Client) error {
		return c.Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	if want := []string{warning}; !slices.Equal(got, want) {
		s.Errorf("warnings = %q, want %q", got, want)
	}
	if diff := cmp.Diff(content(before), content(s.object(name))); diff != "" {
		s.Errorf("%s changed the TrainJob (-before +after):\n%s", patch, diff)
	}
}

// content is what users and controllers write of an object.
func content(job *unstructured.Unstructured) map[string]any {
	out := map[string]any{"labels": job.GetLabels(), "annotations": job.GetAnnotations(), "generation": job.GetGeneration()}
	for _, field := range []string{"spec", "status"} {
		out[field] = job.Object[field]
	}
	return out
}

func testSpecField(s *scene) {
	if s.release.knows.ActiveDeadline {
		testSpecFieldKnown(s)
	} else {
		testSpecFieldUnknown(s)
	}
}

// Where the API lacks the field it is not stored, and the user is told by the API server.
func testSpecFieldUnknown(s *scene) {
	const unknown = `unknown field "spec.activeDeadlineSeconds"`
	job := s.trainJob("job", deadline(1))
	if got, want := s.warned(func(c client.Client) error { return c.Create(s.ctx, job) }), []string{unknown}; !slices.Equal(got, want) {
		s.Errorf("warnings = %q, want %q", got, want)
	}
	if value, found, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "activeDeadlineSeconds"); found {
		s.Errorf("stored the deadline %v", value)
	}
	if value, found := job.GetAnnotations()[v1alpha1.AnnotationActiveDeadlineSeconds]; found {
		s.Errorf("made the annotation %s of the field", value)
	}
	err := shared.Client.Create(s.ctx, s.trainJob("strict", deadline(1)), client.FieldValidation("Strict"))
	if err == nil || !strings.Contains(err.Error(), unknown) {
		s.Errorf("created with strict validation: %v, want %s", err, unknown)
	}
	if after := s.patch("job", `{"spec":{"activeDeadlineSeconds":1}}`); after.Spec.ActiveDeadlineSeconds != nil {
		s.Errorf("stored the deadline %v", *after.Spec.ActiveDeadlineSeconds)
	}
	s.holds("job", s.stamp(s.view(job)).Add(3*time.Second))
	// The annotation beside it counts, with no word of the field winning.
	both := s.trainJob("both", deadline(3600), deadlineAnnotation(1))
	if got, want := s.warned(func(c client.Client) error { return c.Create(s.ctx, both) }), []string{unknown}; !slices.Equal(got, want) {
		s.Errorf("warnings = %q, want %q", got, want)
	}
	start := s.stamp(s.view(both))
	s.endedBySignalbox(s.failsAt("both", start.Add(time.Second)), start, "1 s (annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds)")
}

func testSpecFieldKnown(s *scene) {
	const path = "spec.activeDeadlineSeconds: Invalid value: "
	start := s.stamp(s.create("ends", deadline(8)))
	s.passes("ends")
	for value, want := range map[int64]string{
		-1:         "spec.activeDeadlineSeconds in body should be greater than or equal to 1",
		0:          "spec.activeDeadlineSeconds in body should be greater than or equal to 1",
		4294967296: "must be less than or equal to 4294967295",
		9223372037: "must be less than or equal to 4294967295",
	} {
		s.invalid(shared.Client.Create(s.ctx, s.trainJob("job", deadline(value))), fmt.Sprintf("%s%d: %s", path, value, want))
	}
	err := shared.Client.Create(s.ctx, s.trainJob("job", deadline(4294967296), deadlineAnnotation(0)))
	s.invalid(err, path+"4294967296: must be less", `seconds]: Invalid value: "0": must be greater`)
	s.create("longest", deadline(4294967295))

	got := s.warned(func(c client.Client) error {
		return c.Create(s.ctx, s.trainJob("both", deadline(3600), deadlineAnnotation(1)))
	})
	want := []string{"metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds] is ignored: spec.activeDeadlineSeconds is set"}
	if !slices.Equal(got, want) {
		s.Errorf("warnings = %q, want %q", got, want)
	}
	s.specFieldIsImmutable(path)
	s.holds("ends", start.Add(8*time.Second))
	s.endedBySignalbox(s.failsAt("ends", start.Add(8*time.Second)), start, "8 s (spec.activeDeadlineSeconds)")
	if s.get("both").Terminal() {
		s.Error("ended by the annotation though the field is set")
	}
}

// S2: the field is immutable however it is written, not only while it is there on both sides.
func (s *scene) specFieldIsImmutable(path string) {
	s.Helper()
	s.create("none", s.rich())
	_, err := s.tryPatch("none", `{"spec":{"activeDeadlineSeconds":7200}}`)
	s.invalid(err, path+"7200: field is immutable")

	s.create("job", s.rich(), deadline(3600))
	for range 2 { // a removal that was undone leaves nothing to be added to
		s.undone("job", `{"spec":{"activeDeadlineSeconds":null}}`, undoneSpec)
		_, err = s.tryPatch("job", `{"spec":{"activeDeadlineSeconds":99999999}}`)
		s.invalid(err, path, "field is immutable")
	}
	put := s.object("job")
	unstructured.RemoveNestedField(put.Object, "spec", "activeDeadlineSeconds")
	got := s.warned(func(c client.Client) error { return c.Update(s.ctx, put) })
	if want := []string{undoneSpec}; !slices.Equal(got, want) || *s.view(put).Spec.ActiveDeadlineSeconds != 3600 {
		s.Errorf("after a PUT without it the deadline is %v, warnings %q", s.view(put).Spec.ActiveDeadlineSeconds, got)
	}
	apply := func(c client.Client, changes ...change) error {
		return c.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(s.trainJob("applied", changes...)), client.FieldOwner("user"))
	}
	s.must(apply(shared.Client, deadline(3600)))
	got = s.warned(func(c client.Client) error { return apply(c) })
	if want := []string{undoneSpec}; !slices.Equal(got, want) || *s.get("applied").Spec.ActiveDeadlineSeconds != 3600 {
		s.Errorf("applied without it: the deadline is %v, warnings %q", s.get("applied").Spec.ActiveDeadlineSeconds, got)
	}
}
