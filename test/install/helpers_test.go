package install_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// The release, and the charts: the present one, and that of the version before as it was
// packaged from its sources. The programs are always those of the present source.
const (
	release         = "signalbox"
	systemNamespace = "signalbox-system"
	chart           = "charts/signalbox"
	formerChart     = "test/install/testdata/signalbox-0.1.0.tgz"
)

// patience is how long a step may take that is not about time. It is long because the machine
// may be busy, and since every watch of Kubernetes's own parts waits up to a minute before it
// asks anew for what an API server that was away has; a test that passes never waits for it.
const patience = 3 * time.Minute

// lateness is how late the end of a TrainJob may come on a busy machine.
const lateness = 20 * time.Second

// scene is what one test works with: a Helm, and a namespace of its own.
type scene struct {
	*testing.T
	ctx       context.Context
	helmPath  string
	namespace string
}

// newScene makes a scene. After the test nothing of it, and nothing of Signalbox, is left.
func newScene(t *testing.T, helm string) *scene {
	t.Helper()
	s := &scene{T: t, ctx: t.Context(), helmPath: helms[helm]}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "install-"}}
	s.must(shared.Client.Create(s.ctx, namespace))
	s.namespace = namespace.Name
	t.Cleanup(func() {
		s.ctx = context.Background()
		if _, err := s.try("status", release); err == nil {
			s.helm("uninstall", release)
		}
		system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
		gone := map[string]client.Object{"namespace " + systemNamespace: system}
		for _, name := range definitions {
			gone["CRD "+name] = &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		_ = shared.Client.Delete(s.ctx, namespace) // nobody waits for it
		for _, o := range gone {
			s.must(client.IgnoreNotFound(shared.Client.Delete(s.ctx, o)))
		}
		for what, o := range gone {
			s.disappears(what, o)
		}
	})
	return s
}

// definitions are the CRDs of the chart.
var definitions = []string{
	"lifecyclepolicies." + v1alpha1.GroupVersion.Group, "trainingruntimesnapshots." + v1alpha1.GroupVersion.Group,
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
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, seen = check(); ok {
			if took := time.Since(began); took > 2*time.Second {
				s.Logf("%s took %s", what, took.Round(100*time.Millisecond))
			}
			return
		}
		if time.Since(began) > patience {
			s.Fatalf("%s did not come within %s; instead: %s", what, patience, seen)
		}
	}
}

func (s *scene) disappears(what string, o client.Object) {
	s.Helper()
	s.eventually("the end of "+what, func() (bool, string) {
		err := shared.Client.Get(s.ctx, client.ObjectKeyFromObject(o), o)
		return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
	})
}

// try runs Helm in the root of the project as an admin of the cluster would.
func (s *scene) try(args ...string) (string, error) {
	cmd := exec.CommandContext(s.ctx, s.helmPath, append(args, "--namespace", systemNamespace)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	began := time.Now()
	err := cmd.Run()
	s.Logf("helm %s took %s", args[0], time.Since(began).Round(100*time.Millisecond))
	if err != nil {
		return "", fmt.Errorf("%s %v: %w\n%s", filepath.Base(s.helmPath), args, err, complaint.String())
	}
	return out.String(), nil
}

func (s *scene) helm(args ...string) string {
	s.Helper()
	out, err := s.try(args...)
	s.must(err)
	return out
}

// install installs a chart and returns when Helm has seen its pods ready.
func (s *scene) install(chart string, flags ...string) {
	s.Helper()
	s.helm(append([]string{"install", release, chart, "--create-namespace", "--wait", "--timeout", patience.String()}, flags...)...)
}

// upgrade upgrades to a chart and returns when Helm has seen its pods ready.
func (s *scene) upgrade(chart string, flags ...string) {
	s.Helper()
	s.helm(append([]string{"upgrade", release, chart, "--wait", "--timeout", patience.String()}, flags...)...)
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

func suspended() change { return set(true, "spec", "suspend") }

// deadline limits the TrainJob by annotation: stock Trainer does not know it, so whatever ends
// the TrainJob is Signalbox.
func deadline(d time.Duration) change {
	return set(fmt.Sprint(int(d.Seconds())), "metadata", "annotations", v1alpha1.AnnotationActiveDeadlineSeconds)
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

// create creates a TrainJob and returns it as stored.
func (s *scene) create(name string, changes ...change) *trainer.TrainJob {
	s.Helper()
	job := s.trainJob(name, changes...)
	s.must(shared.Client.Create(s.ctx, job))
	return s.view(job)
}

func (s *scene) view(job *unstructured.Unstructured) *trainer.TrainJob {
	s.Helper()
	view := &trainer.TrainJob{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, view))
	return view
}

func (s *scene) get(name string) *trainer.TrainJob {
	s.Helper()
	job := s.trainJob(name)
	s.must(shared.Client.Get(s.ctx, client.ObjectKeyFromObject(job), job))
	return s.view(job)
}

func (s *scene) setSuspend(name string, suspend bool) {
	s.Helper()
	patch := fmt.Sprintf(`{"spec":{"suspend":%t}}`, suspend)
	s.must(shared.Client.Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (s *scene) pods(name string) []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	of := client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": name}
	s.must(shared.Client.List(s.ctx, &list, client.InNamespace(s.namespace), of))
	return list.Items
}

// runs waits until the TrainJob's only pod runs, or with false until there is none.
func (s *scene) runs(name string, want bool) {
	s.Helper()
	s.eventually(fmt.Sprintf("TrainJob %s running = %t", name, want), func() (bool, string) {
		pods, seen := s.pods(name), ""
		for _, pod := range pods {
			seen += fmt.Sprintf("pod %s is %s; ", pod.Name, pod.Status.Phase)
		}
		if !want {
			return len(pods) == 0, seen
		}
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning, fmt.Sprintf("%s%+v", seen, s.get(name).Status.Conditions)
	})
}

// becomes waits until a condition of a TrainJob is True, with that reason if it is not empty.
func (s *scene) becomes(name, kind, reason string) {
	s.Helper()
	s.eventually(fmt.Sprintf("%s of TrainJob %s", kind, name), func() (bool, string) {
		job := s.get(name)
		for _, c := range job.Status.Conditions {
			if c.Type == kind {
				return c.Status == metav1.ConditionTrue && (reason == "" || c.Reason == reason), fmt.Sprintf("%+v", c)
			}
		}
		return false, fmt.Sprintf("%+v, annotations %v", job.Status.Conditions, job.Annotations)
	})
}

// failsAt waits until a TrainJob fails by its deadline, and checks that it has failed neither
// before it nor long after.
func (s *scene) failsAt(name string, end time.Time) {
	s.Helper()
	s.becomes(name, trainer.ConditionFailed, "DeadlineExceeded")
	failed := apimeta.FindStatusCondition(s.get(name).Status.Conditions, trainer.ConditionFailed)
	// The time of a condition has whole seconds.
	if late := failed.LastTransitionTime.Sub(end); late <= -time.Second || late > lateness {
		s.Errorf("TrainJob %s failed %s after its deadline", name, late)
	}
	s.runs(name, false)
}

// complete ends the pod of a TrainJob that runs, and waits until the TrainJob is complete.
func (s *scene) complete(name string) {
	s.Helper()
	s.runs(name, true)
	pod, succeeded := s.pods(name)[0], client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
	s.must(shared.Client.Status().Patch(s.ctx, &pod, succeeded))
	s.becomes(name, trainer.ConditionComplete, "")
}

// start reads when the active period of a TrainJob began by its stamp.
func (s *scene) start(job *trainer.TrainJob) time.Time {
	s.Helper()
	at, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
	if err != nil {
		s.Fatalf("stamp of TrainJob %s: %v; annotations: %v", job.Name, err, job.Annotations)
	}
	return at
}

// snapshot waits until the snapshot of a TrainJob is filed, and returns its UID.
func (s *scene) snapshot(name string) types.UID {
	s.Helper()
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("TrainingRuntimeSnapshot"))
	s.eventually("the snapshot of TrainJob "+name, func() (bool, string) {
		err := shared.Client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, o)
		return err == nil, fmt.Sprint(err)
	})
	return o.UID
}
