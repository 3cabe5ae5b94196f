package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// patchAny sends a JSON merge patch for any object.
func (s *scene) patchAny(object client.Object, patch string) error {
	s.Helper()
	return s.cluster.Client.Patch(s.ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// snapshotNamed is an empty TrainingRuntimeSnapshot, to be patched or deleted.
func (s *scene) snapshotNamed(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind))
	object.SetNamespace(s.namespace)
	object.SetName(name)
	return object
}

// What Trainer and people read cannot be edited, and comes back when it is deleted, relabelled
// or put in place anew with other content.
func TestSnapshotIsPutBack(t *testing.T) {
	t.Parallel()
	for name, paused := range map[string]bool{"running": false, "suspended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.runtime("train", jobSetOf(oldImage))
			job := s.create("job", onRuntime("train"))
			want := s.sealed(job)
			pods := s.runs("job", oldImage)
			s.inOrder(job, want)
			if paused {
				s.suspend("job")
				s.eventually("no pods", func() (bool, string) { return len(s.pods("job")) == 0, s.children("job") })
			}
			// What comes in place of anything lost must not be this.
			s.edit("train", newImage)

			for _, patch := range []string{
				`{"spec":{"revision":"0123456789abcdef"}}`,
				`{"spec":{"source":{"name":"other"}}}`,
				`{"spec":{"sealedAt":"2020-01-01T00:00:00Z"}}`,
				`{"spec":{"runtimeSpec":{"mlPolicy":{"numNodes":7}}}}`,
				`{"spec":{"runtimeSpec":{"added":true}}}`,
				`{"spec":{"runtimeSpec":{"template":null}}}`,
			} {
				if err := s.patchAny(s.snapshotNamed("job"), patch); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec is immutable") {
					t.Errorf("%s: %v, want Invalid: spec is immutable", patch, err)
				}
			}
			for _, patch := range []string{`{"data":{"runtime":"x"}}`, `{"data":null}`, `{"immutable":false}`} {
				if err := s.patchAny(s.configMap("job"), patch); !apierrors.IsInvalid(err) {
					t.Errorf("ConfigMap: %s: %v, want Invalid", patch, err)
				}
			}
			s.must(s.patchAny(s.snapshotNamed("job"), `{"metadata":{"annotations":{"trainer.kubeflow.org/snapshot-source":"X/y"}}}`))
			s.must(s.patchAny(s.configMap("job"), `{"metadata":{"labels":{"lifecycle.trainer.kubeflow.org/runtime-revision":"0"}}}`))
			s.inOrder(job, want)
			s.must(s.patchAny(s.configMap("job"), `{"metadata":{"labels":{"lifecycle.trainer.kubeflow.org/runtime-revision":null}}}`))
			s.inOrder(job, want)

			for what, destroy := range map[string]func(){
				"deleted": func() {
					s.must(s.cluster.Client.Delete(s.ctx, s.snapshotNamed("job")))
					s.must(s.cluster.Client.Delete(s.ctx, s.configMap("job")))
				},
				"without an owner": func() {
					s.must(s.patchAny(s.snapshotNamed("job"), `{"metadata":{"ownerReferences":null}}`))
					s.must(s.patchAny(s.configMap("job"), `{"metadata":{"ownerReferences":null}}`))
				},
				"replaced": func() {
					config := s.configMap("job")
					forged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
						Namespace: config.Namespace, Name: config.Name, Labels: config.Labels, OwnerReferences: config.OwnerReferences,
					}, Immutable: config.Immutable, Data: map[string]string{trainer.SnapshotKey: strings.ReplaceAll(config.Data[trainer.SnapshotKey], oldImage, newImage)}}
					s.must(s.cluster.Client.Delete(s.ctx, config))
					// Trainer or the reconciler may be first.
					if err := s.cluster.Client.Create(s.ctx, forged); err != nil && !apierrors.IsAlreadyExists(err) {
						t.Fatal(err)
					}
				},
			} {
				uid := s.filed("job").UID
				destroy()
				if what != "replaced" {
					s.eventually("another snapshot after it was "+what, func() (bool, string) {
						filed := s.filed("job")
						return filed != nil && filed.UID != uid, s.text(filed)
					})
				}
				s.inOrder(job, want)
			}
			if paused {
				s.resume("job")
				pods = nil
			}
			for _, pod := range s.runs("job", oldImage) {
				if len(pods) > 0 && pod.UID != pods[0].UID {
					t.Error("the pod was replaced")
				}
			}
			s.inOrder(job, want)
		})
	}
}

// An empty ConfigMap in the place of the right one: Trainer fails on it until it is put back.
func TestSnapshotEmptyConfigMap(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	job := s.create("job", suspended(), onRuntime("train"))
	s.eventually("a ConfigMap of Trainer", func() (bool, string) { return s.configMap("job") != nil, "none" })
	s.must(s.patchAny(s.configMap("job"), `{"data":null}`))
	job = s.resume(job.Name)
	s.runs("job", oldImage)
	s.inOrder(job, s.sealed(job))
}

// Somebody else's ConfigMap in the place of Trainer's is left alone: stock Trainer cannot run
// such a TrainJob either. It runs when it is gone.
func TestSnapshotForeignConfigMap(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: trainer.SnapshotConfigMap("job")}, Data: map[string]string{"mine": "x"}}
	s.must(s.cluster.Client.Create(s.ctx, foreign))
	job := s.create("job", onRuntime("train"))
	s.eventually("an error of Trainer", func() (bool, string) {
		events := s.warnings("job")
		return strings.Contains(events, "owned by another object"), events
	})
	s.eventually("the filed snapshot", func() (bool, string) { return s.filed("job") != nil, "none" })
	if got := s.configMap("job"); got == nil || got.UID != foreign.UID || got.Data["mine"] != "x" || len(got.Labels) > 0 {
		t.Errorf("the foreign ConfigMap became %s", s.text(got))
	}
	s.must(s.cluster.Client.Delete(s.ctx, foreign))
	// Trainer looks again with its next try.
	s.runs("job", oldImage)
	s.inOrder(job, s.sealed(job))
}

// The gate goes by content, not by what a runtime claims: here its revision stays while its
// content changes, as by an edit that the webhook does not see.
func TestSnapshotGateReadsTheContent(t *testing.T) {
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	back := s.trainerAway()
	// It writes the ConfigMap itself when Trainer has not for a while: it must not be there before.
	s.must(shared.Reconciler.Stop(s.ctx))
	t.Cleanup(func() {
		if !shared.Reconciler.Running() {
			s.must(shared.Reconciler.Start(context.Background()))
		}
	})
	job := s.create("job", onRuntime("train"))
	want := s.sealed(job)
	s.must(shared.Webhook.Stop(s.ctx))
	restart := func() {
		if !shared.Webhook.Running() {
			s.must(shared.Webhook.Start(context.Background()))
		}
	}
	t.Cleanup(restart)
	s.edit("train", newImage)
	stored := s.runtimeNamed("train")
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(stored), stored))
	if got := snapshot.Stamp(stored.Object["spec"].(map[string]any)); got != want.Revision {
		t.Fatalf("the runtime claims revision %q, not that of before the edit: it shows nothing", got)
	}
	restart()
	back()
	s.eventually("a refusal of the gate", func() (bool, string) {
		events := s.warnings("job")
		return strings.Contains(events, "which ConfigMap job-runtime-snapshot does not hold yet"), events
	})
	if s.jobSet() != nil {
		t.Error("there is a JobSet")
	}
	s.must(shared.Reconciler.Start(s.ctx))
	s.runs("job", oldImage)
	s.inOrder(job, want)
}

// With Trainer away the ConfigMap comes after a few seconds, not at once: it is Trainer's to
// write.
func TestSnapshotConfigMapWithTrainerAway(t *testing.T) {
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	back := s.trainerAway()
	before := time.Now()
	job := s.create("job", onRuntime("train"))
	s.inOrder(job, s.sealed(job))
	// The time of the seal is stored to the second.
	if early := time.Since(before); early < 4*time.Second {
		t.Errorf("the ConfigMap came after %s", early)
	}
	back()
	s.runs("job", oldImage)
	if events := s.warnings("job"); events != "" {
		t.Errorf("events: %s", events)
	}
}

// A TrainJob that would start on a runtime that is not there is refused; one that waits may
// come before its runtime as far as Signalbox is concerned, but not as far as Trainer is.
func TestSnapshotWithoutARuntime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	err := s.cluster.Client.Create(s.ctx, s.trainJob("job", onRuntime("train")))
	if want := `spec.runtimeRef: Not found: "TrainingRuntime/train"`; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("created with %v, want Invalid: %s", err, want)
	}
}
