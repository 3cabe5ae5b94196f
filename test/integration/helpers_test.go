package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// patience is how long a step may take that is not about time. It is long because the machine
// may be busy, and since every watch of Kubernetes's own parts waits up to a minute before it
// asks anew for what an API server that was away has; a test that passes never waits for it.
const patience = 3 * time.Minute

// scene is what one test works with: the release that is installed, and a namespace of its
// own on the shared cluster.
type scene struct {
	*testing.T
	ctx       context.Context
	release   *release
	namespace string
}

func newScene(t *testing.T, r *release) *scene {
	t.Helper()
	s := (&scene{release: r}).within(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "integration-"}}
	s.must(shared.Client.Create(s.ctx, namespace))
	s.namespace = namespace.Name
	return s
}

// within returns the same scene for a subtest.
func (s *scene) within(t *testing.T) *scene {
	return &scene{T: t, ctx: t.Context(), release: s.release, namespace: s.namespace}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// eventually waits until check is true; it returns what there is, for the failure's text.
func (s *scene) eventually(what string, check func() (bool, string)) {
	s.Helper()
	var seen string
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, seen = check(); ok {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s did not come within %s; instead: %s", what, patience, seen)
		}
	}
}

// change alters a TrainJob before it is created.
type change func(job *unstructured.Unstructured)

func set(value any, path ...string) change {
	return func(job *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(job.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func suspended() change             { return set(true, "spec", "suspend") }
func deadline(seconds int64) change { return set(seconds, "spec", "activeDeadlineSeconds") }

func annotated(key, value string) change { return set(value, "metadata", "annotations", key) }

func deadlineAnnotation(seconds int) change {
	return annotated(v1alpha1.AnnotationActiveDeadlineSeconds, fmt.Sprint(seconds))
}

// rich sets the fields that the release has in the spec.
func (s *scene) rich() change {
	return func(job *unstructured.Unstructured) {
		for field, value := range s.release.spec {
			set(value, "spec", field)(job)
		}
	}
}

// trainJob makes the manifest of a TrainJob.
func (s *scene) trainJob(name string, changes ...change) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"runtimeRef": map[string]any{
			"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch-distributed",
		},
		"trainer": map[string]any{"numNodes": int64(1)},
	}}}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(s.namespace)
	job.SetName(name)
	for _, change := range changes {
		change(job)
	}
	return job
}

// create creates a TrainJob and returns it as stored.
func (s *scene) create(name string, changes ...change) *trainer.TrainJob {
	s.Helper()
	job := s.trainJob(name, changes...)
	s.must(shared.Client.Create(s.ctx, job))
	return s.view(job)
}

// view is the part of a TrainJob that the rules read.
func (s *scene) view(job *unstructured.Unstructured) *trainer.TrainJob {
	s.Helper()
	view := &trainer.TrainJob{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, view))
	return view
}

// object reads a whole TrainJob, get the part of it that the rules read.
func (s *scene) object(name string) *unstructured.Unstructured {
	s.Helper()
	job := s.trainJob(name)
	s.must(shared.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job))
	return job
}

func (s *scene) get(name string) *trainer.TrainJob {
	s.Helper()
	return s.view(s.object(name))
}

// patch sends a JSON merge patch for a TrainJob and returns it as stored then.
func (s *scene) patch(name, patch string, options ...client.PatchOption) *trainer.TrainJob {
	s.Helper()
	job, err := s.tryPatch(name, patch, options...)
	s.must(err)
	return job
}

func (s *scene) tryPatch(name, patch string, options ...client.PatchOption) (*trainer.TrainJob, error) {
	s.Helper()
	job := s.trainJob(name)
	err := shared.Client.Patch(s.ctx, job, client.RawPatch(types.MergePatchType, []byte(patch)), options...)
	return s.view(job), err
}

func (s *scene) suspend(name string) *trainer.TrainJob {
	s.Helper()
	return s.patch(name, `{"spec":{"suspend":true}}`)
}

func (s *scene) resume(name string) *trainer.TrainJob {
	s.Helper()
	return s.patch(name, `{"spec":{"suspend":false}}`)
}

// stamp reads the start of the TrainJob's active period, and fails without one. It is never
// before the creation, whose second may have begun after the webhook stamped.
func (s *scene) stamp(job *trainer.TrainJob) time.Time {
	s.Helper()
	at, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
	if err != nil {
		s.Fatalf("stamp of TrainJob %s: %v; annotations: %v", job.Name, err, job.Annotations)
	}
	if created := job.CreationTimestamp.Time; created.After(at) {
		return created
	}
	return at
}

// jobSet reads the JobSet of a TrainJob, nil when there is none.
func (s *scene) jobSet(name string) *unstructured.Unstructured {
	s.Helper()
	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	err := shared.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, jobSet)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return jobSet
}

// gone waits until nothing is left of what was made of a TrainJob.
func (s *scene) gone(name string) {
	s.Helper()
	s.eventually("the end of the children of TrainJob "+name, func() (bool, string) {
		var jobs batchv1.JobList
		s.must(shared.Client.List(s.ctx, &jobs, client.InNamespace(s.namespace), client.MatchingLabels{trainer.LabelJobSetName: name}))
		jobSet := s.jobSet(name)
		return jobSet == nil && len(jobs.Items) == 0, fmt.Sprintf("JobSet %v, %d Jobs", jobSet != nil, len(jobs.Items))
	})
}

// condition returns a condition of the TrainJob as STATUS/REASON, "" when there is none.
func condition(job *trainer.TrainJob, kind string) string {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s/%s", c.Status, c.Reason)
		}
	}
	return ""
}

// failsAt waits until a TrainJob fails by its deadline and its children are gone, and checks
// that this was not before the deadline. It returns the TrainJob.
func (s *scene) failsAt(name string, deadline time.Time) *trainer.TrainJob {
	s.Helper()
	var job *trainer.TrainJob
	s.eventually("the end of TrainJob "+name, func() (bool, string) {
		job = s.get(name)
		status, _ := json.Marshal(job.Status)
		return condition(job, trainer.ConditionFailed) == "True/DeadlineExceeded",
			fmt.Sprintf("status %s, annotations %v", status, job.Annotations)
	})
	if seen := time.Now(); seen.Before(deadline) {
		s.Errorf("TrainJob %s failed %s before its deadline", name, deadline.Sub(seen))
	}
	s.gone(name)
	return job
}

// holds checks, again and again until the instant end, that a TrainJob is not finished.
func (s *scene) holds(name string, end time.Time) {
	s.Helper()
	for ; time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if job := s.get(name); job.Terminal() && time.Now().Before(end) {
			s.Fatalf("TrainJob %s is finished %s too early: %+v", name, time.Until(end), job.Status.Conditions)
		}
	}
}

// invalid checks that a write was refused as invalid, with these texts.
func (s *scene) invalid(err error, texts ...string) {
	s.Helper()
	if !apierrors.IsInvalid(err) {
		s.Errorf("error = %v, want Invalid", err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			s.Errorf("error = %v\nwant in it: %s", err, text)
		}
	}
}

// warnings collects what the API server warns of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// warned gives write a client of the admin and returns the warnings that its requests got.
func (s *scene) warned(write func(client.Client) error) []string {
	s.Helper()
	collected := &warnings{}
	config := rest.CopyConfig(shared.Config)
	config.WarningHandlerWithContext = collected
	c, err := client.New(config, client.Options{Mapper: shared.Client.RESTMapper()})
	s.must(err)
	s.must(write(c))
	collected.mu.Lock()
	defer collected.mu.Unlock()
	return collected.texts
}

// untyped is a value as it is in an unstructured object.
func untyped(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// writtenBySignalbox tells whether the entry is of a status write of the reconciler.
func writtenBySignalbox(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == "signalbox" && entry.Subresource == "status"
}
