package integration_test

import (
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// The protected annotations are the webhook's alone.
func testProtected(s *scene) {
	var forged []change
	for _, key := range v1alpha1.ProtectedAnnotations() {
		forged = append(forged, annotated(key, "2099-01-01T00:00:00Z"))
	}
	const source = "ClusterTrainingRuntime/torch-distributed"
	waits := map[string]string{v1alpha1.AnnotationRuntimeSource: source}
	if diff := cmp.Diff(waits, s.create("suspended", slices.Concat(forged, []change{suspended()})...).Annotations); diff != "" {
		s.Errorf("created suspended with other annotations than wanted (-want +got):\n%s", diff)
	}
	before := time.Now()
	job := s.create("job", slices.Concat(forged, []change{annotated("team", "x")})...)
	if start := s.stamp(job); start.Before(before) || start.After(time.Now()) {
		s.Errorf("created with the stamp %s", start)
	}
	// What is none of that content, or not of its revision, is an error.
	sealed, err := snapshot.Of(job)
	if err != nil || sealed == nil {
		s.Fatalf("created with the seal %v, %v", sealed, err)
	}
	want := map[string]string{"team": "x", v1alpha1.AnnotationRuntimeSource: source}
	for _, key := range []string{v1alpha1.AnnotationResumedAt, v1alpha1.AnnotationRuntimeRevision, v1alpha1.AnnotationRuntimeSnapshot} {
		want[key] = job.Annotations[key]
	}
	if diff := cmp.Diff(want, job.Annotations); diff != "" {
		s.Errorf("created with other annotations than wanted (-want +got):\n%s", diff)
	}
	for _, key := range v1alpha1.ProtectedAnnotations() {
		for _, value := range []string{`"2099-01-01T00:00:00Z"`, `""`, `null`} {
			patch := `{"metadata":{"annotations":{"` + key + `":` + value + `}}}`
			if diff := cmp.Diff(want, s.patch("job", patch).Annotations); diff != "" {
				s.Errorf("after %s (-want +got):\n%s", patch, diff)
			}
		}
	}
	// With all other annotations gone, these stay.
	delete(want, "team")
	if diff := cmp.Diff(want, s.patch("job", `{"metadata":{"annotations":null}}`).Annotations); diff != "" {
		s.Errorf("after the removal of all (-want +got):\n%s", diff)
	}
	// The status endpoint takes no annotations at all.
	object := s.object("job")
	object.SetAnnotations(map[string]string{v1alpha1.AnnotationResumedAt: "2099-01-01T00:00:00Z"})
	set([]any{jobStatus()}, "status", "jobsStatus")(object)
	s.must(asTrainer.Status().Update(s.ctx, object))
	if diff := cmp.Diff(want, s.get("job").Annotations); diff != "" {
		s.Errorf("after a write of the status (-want +got):\n%s", diff)
	}
}

// A dry run answers as the write would, and leaves nothing behind.
func testDryRun(s *scene) {
	job := s.trainJob("job", deadlineAnnotation(3600))
	s.must(shared.Client.Create(s.ctx, job, client.DryRunAll))
	s.stamp(s.view(job))
	if err := shared.Client.Get(s.ctx, client.ObjectKeyFromObject(job), s.trainJob("job")); !apierrors.IsNotFound(err) {
		s.Fatalf("after a dry run: %v", err)
	}
	bad := annotated(v1alpha1.AnnotationActiveDeadlineSeconds, "0")
	s.invalid(shared.Client.Create(s.ctx, s.trainJob("job", bad), client.DryRunAll), "must be greater than or equal to 1")

	s.create("job", suspended(), deadlineAnnotation(3600))
	before := s.object("job")
	s.stamp(s.patch("job", `{"spec":{"suspend":false}}`, client.DryRunAll))
	removal := s.patch("job", `{"metadata":{"annotations":null}}`, client.DryRunAll)
	if got := removal.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]; got != "3600" {
		s.Errorf("a dry run of a removal answers with the deadline %q, want 3600", got)
	}
	if diff := cmp.Diff(before.Object, s.object("job").Object); diff != "" {
		s.Errorf("dry runs changed the TrainJob (-before +after):\n%s", diff)
	}
}

// What Signalbox writes changes nothing but its own: the rest is as stock would have stored
// it, also the fields that Signalbox has never heard of.
func testPatches(s *scene) {
	const limit = 8 * time.Second
	changes := []change{s.rich(), deadlineAnnotation(8), annotated("team", "x"), set("y", "metadata", "labels", "team")}
	object := s.trainJob("job", changes...)
	s.must(shared.Client.Create(s.ctx, object))
	want := s.stock(changes...)
	for _, key := range v1alpha1.ProtectedAnnotations() {
		if value, found := object.GetAnnotations()[key]; found {
			annotated(key, value)(want)
		}
	}
	s.isContent("created", want, object)

	suspend := s.suspend("job")
	set(true, "spec", "suspend")(want)
	unstructured.RemoveNestedField(want.Object, "metadata", "annotations", v1alpha1.AnnotationResumedAt)
	want.SetGeneration(suspend.Generation)
	s.isContent("suspended", want, s.object("job"))

	resume := s.resume("job")
	set(false, "spec", "suspend")(want)
	annotated(v1alpha1.AnnotationResumedAt, resume.Annotations[v1alpha1.AnnotationResumedAt])(want)
	want.SetGeneration(resume.Generation)
	s.isContent("resumed", want, s.object("job"))

	// The reconciler's write of the status.
	s.passes("job")
	s.must(s.report(s.object("job"), nil, s.release.status))
	want = s.object("job")
	s.failsAt("job", s.stamp(resume).Add(limit))
	ended := s.object("job")
	failed, _, _ := unstructured.NestedSlice(ended.Object, "status", "conditions")
	set(failed, "status", "conditions")(want)
	s.isContent("ended", want, ended)
	if len(failed) != 1 {
		s.Errorf("ended with the conditions %v, want Failed alone", failed)
	}

	// The webhook's correction of Trainer's: the rest of what Trainer writes goes through.
	status := maps.Clone(s.release.status)
	gone := jobStatus()
	gone["active"], gone["failed"] = int64(0), int64(1)
	status["jobsStatus"] = []any{gone}
	s.must(s.report(s.object("job"), nil, status))
	set(status["jobsStatus"], "status", "jobsStatus")(want)
	s.isContent("corrected", want, s.object("job"))
}

// stock is what the API server stores of a TrainJob where Signalbox does not look.
func (s *scene) stock(changes ...change) *unstructured.Unstructured {
	s.Helper()
	job := s.trainJob("stock", changes...)
	job.SetNamespace("kube-system")
	s.must(shared.Client.Create(s.ctx, job, client.DryRunAll))
	if _, found := job.GetAnnotations()[v1alpha1.AnnotationResumedAt]; found {
		s.Fatal("Signalbox looks at kube-system: this is not stock")
	}
	return job
}

func (s *scene) isContent(when string, want, got *unstructured.Unstructured) {
	s.Helper()
	if diff := cmp.Diff(content(want), content(got)); diff != "" {
		s.Errorf("%s, the TrainJob is not as wanted (-want +got):\n%s", when, diff)
	}
}
