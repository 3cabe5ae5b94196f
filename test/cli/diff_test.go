package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// diffRuntime makes a TrainingRuntime of one node that runs this image.
func (s *scene) diffRuntime(name, image string) *unstructured.Unstructured {
	s.Helper()
	return s.apply(fmt.Sprintf(`
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: %s}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: %q, resources: {requests: {memory: 1Gi}}}]}}}
`, name, image))
}

// diffEdit gives the container of a runtime another image, and an argument that is no good for terminals.
func (s *scene) diffEdit(runtime *unstructured.Unstructured, image string) {
	s.Helper()
	container := "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0"
	patch := fmt.Sprintf(`[{"op":"replace","path":"%s/image","value":%q},{"op":"add","path":"%s/args","value":["--name=\u001b]0;mine\u0007","--note=\u202etxt"]},
		{"op":"replace","path":"%s/resources/requests/memory","value":"1024Mi"}]`, container, image, container, container)
	s.must(s.cluster.Client.Patch(s.ctx, runtime, client.RawPatch(types.JSONPatchType, []byte(patch))))
}

// deepens are the indentations of a diff, which stay as they are, fewUsers the names of users of few rights.
var (
	deepens  = regexp.MustCompile(`(?m)^([-+ ])( +)`)
	fewUsers = regexp.MustCompile(`\breader-[a-z0-9]{8}\b`)
)

// says runs diff, and compares its exit code, and all that it says, with the golden file of this name.
func (s *scene) says(name string, wantCode int, args ...string) {
	s.Helper()
	out, errOut, code := s.run(append([]string{"diff"}, args...)...)
	if code != wantCode {
		s.Errorf("diff %s: exit code %d, want %d; standard error:\n%s", strings.Join(args, " "), code, wantCode, errOut)
	}
	if strings.HasPrefix(out, "--- ") {
		out = deepens.ReplaceAllStringFunc(out, func(found string) string {
			return found[:1] + strings.Repeat("·", len(found)-1)
		})
	}
	if errOut != "" {
		out += "standard error:\n" + fewUsers.ReplaceAllString(errOut, "USER")
	}
	s.same("diff-"+name, out)
}

// A TrainJob lives on what is sealed, whatever becomes of its runtime.
func TestCLIDiff(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mine := s.diffRuntime("mine", "example.com/train:1")
	on := onRuntime(trainer.TrainingRuntimeKind, "mine")
	s.create("eight-hours", on)
	s.create("nightly", on, suspended())
	s.create("done", on)
	s.finish("done")
	s.running("eight-hours")
	if out := s.succeeds("diff", "eight-hours"); out != "" {
		t.Errorf("differences to what it was sealed from:\n%s", out)
	}
	s.says("jobs-same", 0, "mine", "--jobs")
	s.diffEdit(mine, "example.com/train:2")
	s.create("late", on)
	s.running("late")

	s.says("job", 1, "eight-hours")
	s.says("job", 1, "trainjob.trainer.kubeflow.org/eight-hours")
	s.says("job-json", 1, "eight-hours", "-o", "json")
	s.says("finished", 1, "done")
	s.says("waiting", 0, "nightly")
	s.says("jobs", 1, "mine", "--jobs")
	s.says("jobs-wide", 1, "trainingruntime/mine", "--jobs", "-o", "wide")
	s.says("jobs-yaml", 1, "mine", "--jobs", "-o", "yaml")
	s.says("jobs-name", 1, "mine", "--jobs", "-o", "name")
	s.says("jobs-chosen", 0, "mine", "--jobs", "--field-selector", "metadata.name=late", "--no-headers")
	s.says("no-job", 2, "nobody")
	s.says("no-runtime", 2, "nobody", "--jobs")
	s.says("not-one", 2, "eight-hours", "-A")
	s.says("not-many", 2, "TrainingRuntime/mine", "--jobs", "-A")
	s.says("no-argument", 2)

	text, code := s.onTerminal(100, 30, nil, "diff", "eight-hours").ends()
	if red := "\x1b[31m-                - image: example.com/train:1\x1b[0m\n"; code != 1 || !strings.Contains(text, red) {
		t.Errorf("on a terminal: exit code %d, and no line %q in\n%q", code, red, text)
	}
	text, code = s.onTerminal(40, 30, []string{"NO_COLOR=1"}, "diff", "mine", "--jobs").ends()
	if code != 1 {
		t.Errorf("on a narrow terminal: exit code %d", code)
	}
	s.same("diff-jobs-narrow", text)
}

// A runtime that is gone is no reason not to know what runs.
func TestCLIDiffGone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mine := s.diffRuntime("mine", "example.com/train:1")
	s.create("eight-hours", onRuntime(trainer.TrainingRuntimeKind, "mine"))
	s.running("eight-hours")
	allow := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.AnnotationAllowDisruption)
	s.must(s.cluster.Client.Patch(s.ctx, mine, client.RawPatch(types.MergePatchType, []byte(allow))))
	s.must(s.cluster.Client.Delete(s.ctx, mine))
	s.says("gone", 1, "eight-hours")
	s.says("jobs-gone", 1, "trainingruntime/mine", "--jobs")
	s.says("jobs-gone-name", 2, "mine", "--jobs")
	// Another of that name is another.
	s.diffRuntime("mine", "example.com/train:2")
	s.says("jobs-anew", 1, "mine", "--jobs")
}

// What may not be read is not known, and said once.
func TestCLIDiffRights(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mine := s.diffRuntime("mine", "example.com/train:1")
	s.create("eight-hours", onRuntime(trainer.TrainingRuntimeKind, "mine"))
	s.running("eight-hours")
	s.diffEdit(mine, "example.com/train:2")
	jobs, runtimes := may(trainer.GroupVersion.Group, "trainjobs"), may(trainer.GroupVersion.Group, "trainingruntimes", "clustertrainingruntimes")

	few := s.asIn(jobs, runtimes)
	few.says("few-rights", 2, "eight-hours")
	few.says("jobs-few-rights", 2, "trainingruntime/mine", "--jobs")
	// The JobSet tells that it was built from what is sealed, whatever the Trainer.
	some := s.asIn(jobs, runtimes, may(trainer.JobSetGroupVersionKind.Group, "jobsets"))
	some.says("some-rights", 1, "eight-hours")
	some.says("jobs-some-rights", 1, "trainingruntime/mine", "--jobs")
	s.asIn(jobs).says("no-runtimes", 2, "eight-hours")
	s.asIn(jobs).says("jobs-no-runtimes", 2, "trainingruntime/mine", "--jobs")
	none := s.asIn(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
	none.says("no-rights", 2, "eight-hours")
	none.says("jobs-no-rights", 2, "trainingruntime/mine", "--jobs")
}

// A ClusterTrainingRuntime is used in many namespaces.
func TestCLIDiffCluster(t *testing.T) {
	t.Parallel()
	s, other := newScene(t), newScene(t)
	if s.namespace > other.namespace {
		// They are shown in that order.
		s, other = other, s
	}
	name := "shared-" + s.namespace
	shared := s.diffRuntime("shared", "example.com/train:1").DeepCopy()
	shared.SetKind(trainer.ClusterTrainingRuntimeKind)
	shared.SetName(name)
	shared.SetNamespace("")
	shared.SetResourceVersion("")
	s.must(s.cluster.Client.Create(s.ctx, shared))
	t.Cleanup(func() { s.diffDelete(shared) })
	on := onRuntime(trainer.ClusterTrainingRuntimeKind, name)
	s.create("here", on)
	other.create("there", on)
	s.diffEdit(shared, "example.com/train:2")
	other.create("later", on, suspended())
	tell := func(file string, code int, args ...string) {
		t.Helper()
		out, errOut, got := s.run(append([]string{"diff"}, args...)...)
		if got != code {
			t.Errorf("diff %s: exit code %d, want %d; standard error:\n%s", strings.Join(args, " "), got, code, errOut)
		}
		out = strings.ReplaceAll(out, other.namespace, "ELSEWHERE")
		s.same("diff-"+file, out+errOut)
	}
	tell("cluster", 1, name, "--jobs")
	tell("cluster-all", 1, name, "--jobs", "-A")
	// Of two of one name neither is meant.
	s.diffRuntime(name, "example.com/train:3")
	tell("two", 2, name, "--jobs")
}

// diffDelete deletes a runtime at the test's end, which the guard lets pass with this annotation.
func (s *scene) diffDelete(runtime *unstructured.Unstructured) {
	ctx := started.ctx
	allow := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.AnnotationAllowDisruption)
	err := s.cluster.Client.Patch(ctx, runtime, client.RawPatch(types.MergePatchType, []byte(allow)))
	if err == nil {
		err = s.cluster.Client.Delete(ctx, runtime)
	}
	if err != nil {
		s.Error(err)
	}
}

func TestCLIDiffWithoutTrainer(t *testing.T) {
	t.Parallel()
	s := withoutTrainer(t)
	s.says("no-trainer", 2, "eight-hours")
	s.says("no-trainer", 2, "torch-distributed", "--jobs")
	s.says("no-trainer", 2, "clustertrainingruntime/torch-distributed", "--jobs")
}
