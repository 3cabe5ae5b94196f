package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// patience is how long a step may take that is not about time. It is long because the machine
// may be busy, and since every watch of Kubernetes's own parts waits up to a minute before it
// asks anew for what an API server that was away has; a test that passes never waits for it.
const patience = 3 * time.Minute

// scene is what one test works with: a namespace of its own on a cluster.
type scene struct {
	*testing.T
	ctx       context.Context
	cluster   *cluster.Cluster
	namespace string
}

// newScene makes a scene on the cluster with Signalbox.
func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneOn(t, shared)
}

// newSceneOn makes a scene. What the test leaves behind goes with its namespace.
func newSceneOn(t *testing.T, c *cluster.Cluster) *scene {
	t.Helper()
	s := &scene{T: t, ctx: t.Context(), cluster: c}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	s.must(c.Client.Create(s.ctx, namespace))
	s.namespace = namespace.Name
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), namespace) })
	return s
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

// deadlineAnnotation limits the TrainJob by annotation: stock Trainer does not know it, so
// whatever ends the TrainJob is Signalbox.
func deadlineAnnotation(seconds int) change {
	return annotated(v1alpha1.AnnotationActiveDeadlineSeconds, fmt.Sprint(seconds))
}

// trainJob makes the manifest of a TrainJob with one node on a built-in runtime.
func (s *scene) trainJob(name string, changes ...change) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"runtimeRef": map[string]any{"name": "torch-distributed"},
			"trainer":    map[string]any{"numNodes": int64(1)},
		},
	}}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(s.namespace)
	job.SetName(name)
	for _, change := range changes {
		change(job)
	}
	return job
}

// create creates a TrainJob, when Trainer knows its runtime, and returns it as stored.
func (s *scene) create(name string, changes ...change) *trainer.TrainJob {
	s.Helper()
	var job *unstructured.Unstructured
	s.knowing(func() error {
		job = s.trainJob(name, changes...)
		return s.cluster.Client.Create(s.ctx, job)
	})
	return s.view(job)
}

// knowing makes a write of a TrainJob, again while Trainer's webhook does not know the runtime:
// that goes by its cache, to which a new one comes a moment later.
func (s *scene) knowing(write func() error) {
	s.Helper()
	s.eventually("Trainer to know a runtime", func() (bool, string) {
		err := write()
		if err != nil && !strings.Contains(err.Error(), "must be created before the TrainJob is created") {
			s.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// view is the part of a TrainJob that the rules read.
func (s *scene) view(job *unstructured.Unstructured) *trainer.TrainJob {
	s.Helper()
	view := &trainer.TrainJob{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, view))
	return view
}

// get reads a TrainJob.
func (s *scene) get(name string) *trainer.TrainJob {
	s.Helper()
	job := s.trainJob(name)
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job))
	return s.view(job)
}

// patch sends a JSON merge patch for a TrainJob and returns it as stored then.
func (s *scene) patch(name, patch string, options ...client.PatchOption) *trainer.TrainJob {
	s.Helper()
	var job *unstructured.Unstructured
	s.knowing(func() error {
		job = s.trainJob(name)
		return s.cluster.Client.Patch(s.ctx, job, client.RawPatch(types.MergePatchType, []byte(patch)), options...)
	})
	return s.view(job)
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

// running waits until the pods of a TrainJob run, and returns them.
func (s *scene) running(name string) []corev1.Pod {
	s.Helper()
	var pods []corev1.Pod
	s.eventually("running pods of TrainJob "+name, func() (bool, string) {
		pods = s.pods(name)
		running := len(pods) > 0
		for _, pod := range pods {
			running = running && pod.Status.Phase == corev1.PodRunning
		}
		return running, s.children(name)
	})
	return pods
}

func (s *scene) pods(name string) []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	s.must(s.cluster.Client.List(s.ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": name}))
	return list.Items
}

// children lists what is there of a TrainJob: its JobSet, Jobs and pods.
func (s *scene) children(name string) string {
	s.Helper()
	var found []string
	jobSets := &metav1.PartialObjectMetadataList{}
	jobSets.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	s.must(s.cluster.Client.List(s.ctx, jobSets, client.InNamespace(s.namespace)))
	for _, jobSet := range jobSets.Items {
		if jobSet.Name == name {
			found = append(found, "JobSet "+jobSet.Name)
		}
	}
	var jobs batchv1.JobList
	s.must(s.cluster.Client.List(s.ctx, &jobs, client.InNamespace(s.namespace), client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": name}))
	for _, job := range jobs.Items {
		found = append(found, "Job "+job.Name)
	}
	for _, pod := range s.pods(name) {
		text := fmt.Sprintf("Pod %s %s", pod.Name, pod.Status.Phase)
		if pod.DeletionTimestamp != nil {
			text += fmt.Sprintf(" deleted at %s, with finalizers %v", pod.DeletionTimestamp.Format(time.TimeOnly), pod.Finalizers)
		}
		found = append(found, text)
	}
	return strings.Join(found, ", ")
}

// gone waits until nothing is left of what Trainer made of a TrainJob.
func (s *scene) gone(name string) {
	s.Helper()
	s.eventually("the end of the children of TrainJob "+name, func() (bool, string) {
		children := s.children(name)
		return children == "", children
	})
}

// condition returns the status and reason of a condition, "" when there is none.
func condition(job *trainer.TrainJob, kind string) string {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s/%s", c.Status, c.Reason)
		}
	}
	return ""
}

// becomes waits until a condition of a TrainJob reads STATUS/REASON, and returns when that
// was seen.
func (s *scene) becomes(name, kind, want string) time.Time {
	s.Helper()
	s.eventually(fmt.Sprintf("%s=%s of TrainJob %s", kind, want, name), func() (bool, string) {
		job := s.get(name)
		status, _ := json.Marshal(job.Status)
		return condition(job, kind) == want, fmt.Sprintf("status %s, annotations %v, %s", status, job.Annotations, s.children(name))
	})
	return time.Now()
}

// lateness is how late the end of a TrainJob may be seen on a busy machine. Where the
// machine is quiet and it matters, a test asks for less.
const lateness = 20 * time.Second

// failsAt waits until a TrainJob fails by its deadline and its children are gone, and checks
// that this was not before the deadline. It returns how long after it that was.
func (s *scene) failsAt(name string, deadline time.Time) time.Duration {
	s.Helper()
	late := s.fails(name, deadline)
	s.gone(name)
	return late
}

// fails is failsAt without a look at the children.
func (s *scene) fails(name string, deadline time.Time) time.Duration {
	s.Helper()
	seen := s.becomes(name, trainer.ConditionFailed, "True/DeadlineExceeded")
	if seen.Before(deadline) {
		s.Errorf("TrainJob %s failed %s before its deadline", name, deadline.Sub(seen))
	}
	// The test may have looked late. The condition says in which second it was set.
	set := meta.FindStatusCondition(s.get(name).Status.Conditions, trainer.ConditionFailed).LastTransitionTime.Add(time.Second)
	if set.Before(seen) {
		seen = set
	}
	late := seen.Sub(deadline)
	if late > lateness {
		s.Errorf("TrainJob %s failed %s after its deadline", name, late)
	}
	return late
}

// rests waits until nobody has written a TrainJob for two seconds.
func (s *scene) rests(name string) {
	s.Helper()
	last, since := "", time.Now()
	s.eventually("TrainJob "+name+" to be left alone", func() (bool, string) {
		if now := s.get(name).ResourceVersion; now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second, "written " + time.Since(since).String() + " ago"
	})
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

// finish ends the running pods of a TrainJob well.
func (s *scene) finish(name string) {
	s.Helper()
	for _, pod := range s.running(name) {
		s.must(s.succeed(pod))
	}
}

// succeed ends a pod well.
func (s *scene) succeed(pod corev1.Pod) error {
	return s.cluster.Client.Status().Patch(s.ctx, &pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))
}

// logTails returns the end of the log of each part of Signalbox, for a failed run.
func logTails() string {
	var out bytes.Buffer
	for _, part := range []*cluster.Process{shared.Webhook, shared.Reconciler, shared.Trainer} {
		log, err := os.ReadFile(part.LogPath)
		if err != nil {
			fmt.Fprintln(&out, err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		fmt.Fprintf(&out, "--- last lines of %s\n%s\n", part.Name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
	return out.String()
}

// jobSet reads the JobSet of the TrainJob named job; nil when there is none.
func (s *scene) jobSet() *unstructured.Unstructured {
	s.Helper()
	return s.jobSetNamed("job")
}

// jobSetNamed reads the JobSet of a TrainJob; nil when there is none.
func (s *scene) jobSetNamed(name string) *unstructured.Unstructured {
	s.Helper()
	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, jobSet)
	s.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return jobSet
}

// runtime creates a TrainingRuntime in the scene's namespace with this JobSet spec (JSON).
func (s *scene) runtime(name, jobSetSpec string) {
	s.Helper()
	runtime := &unstructured.Unstructured{Object: map[string]any{"spec": s.runtimeSpec(jobSetSpec)}}
	runtime.SetGroupVersionKind(trainer.GroupVersion.WithKind("TrainingRuntime"))
	runtime.SetNamespace(s.namespace)
	runtime.SetName(name)
	runtime.SetLabels(map[string]string{"trainer.kubeflow.org/framework": "torch"})
	s.must(s.cluster.Client.Create(s.ctx, runtime))
}

// runtimeSpec makes the spec of a runtime with one node from this JobSet spec (JSON).
func (s *scene) runtimeSpec(jobSetSpec string) map[string]any {
	s.Helper()
	var spec map[string]any
	s.must(json.Unmarshal([]byte(jobSetSpec), &spec))
	return map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(1)},
		"template": map[string]any{"spec": spec},
	}
}

// text shows anything as JSON.
func (s *scene) text(value any) string {
	s.Helper()
	out, err := json.Marshal(value)
	s.must(err)
	return string(out)
}

// trainerAway keeps Trainer's controller from acting, while its webhooks answer, until the
// returned function is called or the test ends.
func (s *scene) trainerAway() (back func()) {
	s.Helper()
	s.must(s.cluster.PauseTrainer(s.ctx))
	back = sync.OnceFunc(func() { s.must(s.cluster.ResumeTrainer(context.Background())) })
	s.Cleanup(back)
	return back
}
