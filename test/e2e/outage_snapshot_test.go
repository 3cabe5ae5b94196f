package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// specOf reads the spec of a TrainingRuntime.
func (s *scene) specOf(name string) map[string]any {
	s.Helper()
	runtime := s.runtimeNamed(name)
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), runtime))
	spec, _, err := unstructured.NestedMap(runtime.Object, "spec")
	s.must(err)
	return spec
}

// stampedRight waits until a TrainingRuntime carries the revision of its content.
func (s *scene) stampedRight(name string) {
	s.Helper()
	s.eventually("the revision of runtime "+name, func() (bool, string) {
		spec := s.specOf(name)
		return snapshot.Stamp(spec) == snapshot.Revision(spec), fmt.Sprintf("%q, want %s", snapshot.Stamp(spec), snapshot.Revision(spec))
	})
}

// With the webhook away a runtime is edited and another one created, and nobody stamps them.
// TrainJobs are sealed on what is there, whatever revision it claims to have; they start when
// the reconciler is back and has put that right.
func TestOutageLeavesRuntimesWithoutTheirRevision(t *testing.T) {
	s := newScene(t)
	s.runtime("edited", jobSetOf(oldImage))
	s.known("edited")
	s.stampedRight("edited")
	stale := snapshot.Stamp(s.specOf("edited"))
	reconciler, webhook := s.away(shared.Reconciler), s.away(shared.Webhook)
	s.edit("edited", newImage)
	s.runtime("created", jobSetOf(newImage))
	if got := snapshot.Stamp(s.specOf("edited")); got != stale {
		t.Fatalf("the edited runtime has the revision %q, not the one of before: it shows nothing", got)
	}
	if got := snapshot.Stamp(s.specOf("created")); got != "" {
		t.Fatalf("the created runtime has the revision %q: it shows nothing", got)
	}
	webhook()
	s.known("created")
	revisions := map[string]string{}
	for name, claimed := range map[string]string{"edited": stale, "created": ""} {
		job := s.create(name, onRuntime(name))
		sealed := s.sealed(job)
		if got := s.imageIn(sealed); got != newImage || sealed.Revision != snapshot.Revision(s.specOf(name)) {
			t.Errorf("TrainJob %s is sealed on %s, revision %s; want %s, %s", name, got, sealed.Revision, newImage, snapshot.Revision(s.specOf(name)))
		}
		revisions[name] = sealed.Revision
		want := fmt.Sprintf("TrainJob %s runs on revision %s of TrainingRuntime/%s, this JobSet is built from revision %q", name, sealed.Revision, name, claimed)
		s.eventually("a refusal of the gate", func() (bool, string) {
			events := s.warnings(name)
			return strings.Contains(events, want), events + "\nwant in it: " + want
		})
		if children := s.children(name); children != "" {
			t.Errorf("TrainJob %s has %s", name, children)
		}
	}
	reconciler()
	for name, revision := range revisions {
		s.stampedRight(name)
		s.runs(name, newImage)
		job := s.get(name)
		sealed := s.sealed(job)
		if sealed.Revision != revision {
			t.Errorf("TrainJob %s was sealed on revision %s, is on %s", name, revision, sealed.Revision)
		}
		s.inOrder(job, sealed)
	}
	s.settled("edited", "created")
}

// With failurePolicy Ignore, a TrainJob that waited starts and is suspended again while the
// webhook is away, so that it is not sealed. When the webhook is back it stays with what it
// ran on.
func TestOutageLeavesATrainJobUnsealed(t *testing.T) {
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	s.create("job", suspended(), onRuntime("train"))
	s.eventually("a suspended JobSet", func() (bool, string) { return s.jobSet() != nil, s.children("job") })
	s.setFailurePolicy(admissionregistrationv1.Ignore, "trainjob", "jobset")
	t.Cleanup(func() { s.afterwards().setFailurePolicy(admissionregistrationv1.Fail, "trainjob", "jobset") })
	webhook := s.away(shared.Webhook)
	s.eventually("a resume without the webhook", func() (bool, string) {
		err := s.cluster.Client.Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)))
		return err == nil, fmt.Sprint(err)
	})
	s.runs("job", oldImage)
	if got := s.get("job").Annotations; got[v1alpha1.AnnotationRuntimeSnapshot] != "" {
		t.Fatalf("it is sealed: it shows nothing: %v", got)
	}
	s.suspend("job")
	s.noPods("job")
	s.edit("train", newImage)
	webhook()
	job := s.resume("job")
	if got := s.imageIn(s.sealed(job)); got != oldImage {
		t.Fatalf("sealed on %s, ran on %s before", got, oldImage)
	}
	s.comesToRun("job", oldImage)
	s.inOrder(job, s.sealed(job))
	s.settled("job")
}
