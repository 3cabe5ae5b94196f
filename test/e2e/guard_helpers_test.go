package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// What the guard says.
const (
	secondClock = "must not be set in a runtime: it is a second clock, by which pods end without their TrainJob; use spec.activeDeadlineSeconds of the TrainJob"
	secondTTL   = "must not be set in a runtime: it deletes what its TrainJob still counts; set lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished on the runtime"
	goOn        = "; Trainer refuses every change of a TrainJob whose runtime is gone, also to suspend it: " +
		"delete these TrainJobs or let them finish first, or annotate the runtime with lifecycle.trainer.kubeflow.org/allow-disruption=true to delete it all the same"
	refusedBy = `admission webhook "runtime.lifecycle.trainer.kubeflow.org" denied the request: `
)

// allowPath is the field that the guard names beside the edits that break TrainJobs.
const allowPath = "metadata.annotations[" + v1alpha1.AnnotationAllowDisruption + "]"

// Trainer does not check runtimes with this label.
const unvalidated = "trainer.kubeflow.org/webhook-validation"

// replicatedJob is an entry of a JobSet spec with one container of its own name. onJob and
// onPod are more fields (JSON, each with a comma at its end) of its Job and pod templates.
func replicatedJob(name, onJob, onPod string) string {
	return fmt.Sprintf(`{"name":%q,"template":{"metadata":{"labels":{"step":%q}},"spec":{%s"template":{"spec":{%s"containers":[{"name":%q,"image":%q}]}}}}}`,
		name, name, onJob, onPod, name, oldImage)
}

// jobSetWith is a JobSet spec; more are fields of its own (JSON, each with a comma at its end).
func jobSetWith(more string, replicatedJobs ...string) string {
	return "{" + more + `"replicatedJobs":[` + strings.Join(replicatedJobs, ",") + "]}"
}

// object is a runtime of a kind with this JobSet spec (JSON), not yet created. One of the
// cluster gets a name of the scene's own.
func (s *scene) object(kind, name, jobSetSpec string) *unstructured.Unstructured {
	s.Helper()
	object := s.runtimeOf(jobSetSpec)
	object.SetGroupVersionKind(trainer.GroupVersion.WithKind(kind))
	object.SetName(name)
	if kind == trainer.TrainingRuntimeKind {
		object.SetNamespace(s.namespace)
	} else {
		object.SetName(s.namespace + "-" + name)
	}
	return object
}

// stored creates a runtime, which goes with the test, and returns it.
func (s *scene) stored(object *unstructured.Unstructured) *unstructured.Unstructured {
	s.Helper()
	s.must(s.cluster.Client.Create(s.ctx, object))
	s.Cleanup(func() {
		s := s.afterwards()
		if object.GetNamespace() == "" {
			_ = s.allowDisruption(object)
			_ = s.cluster.Client.Delete(s.ctx, bare(object))
		}
	})
	return object
}

// bare is the object without its content, for requests that need but its name.
func bare(object client.Object) *unstructured.Unstructured {
	b := &unstructured.Unstructured{}
	b.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	b.SetNamespace(object.GetNamespace())
	b.SetName(object.GetName())
	return b
}

// on refers to a runtime.
func on(runtime client.Object) change {
	return func(job *unstructured.Unstructured) {
		set(runtime.GetName(), "spec", "runtimeRef", "name")(job)
		set(runtime.GetObjectKind().GroupVersionKind().Kind, "spec", "runtimeRef", "kind")(job)
	}
}

// createOn creates a TrainJob on a runtime, when the neighbours know of the runtime.
func (s *scene) createOn(runtime client.Object, name string, changes ...change) *trainer.TrainJob {
	s.Helper()
	changes = append(changes, on(runtime))
	s.eventually("the neighbours to know of "+runtime.GetName(), func() (bool, string) {
		err := s.cluster.Client.Create(s.ctx, s.trainJob(name, changes...), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	return s.create(name, changes...)
}

// allowDisruption lets one disruption of a runtime through.
func (s *scene) allowDisruption(runtime client.Object) error {
	s.Helper()
	return s.patchAny(bare(runtime), fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.AnnotationAllowDisruption))
}

// alter sends a JSON patch for a runtime.
func (s *scene) alter(runtime client.Object, patch string, options ...client.PatchOption) error {
	s.Helper()
	return s.cluster.Client.Patch(s.ctx, bare(runtime), client.RawPatch(types.JSONPatchType, []byte(patch)), options...)
}

// reshape gives a runtime another JobSet spec (JSON).
func (s *scene) reshape(runtime client.Object, jobSetSpec string, options ...client.PatchOption) error {
	s.Helper()
	return s.alter(runtime, `[{"op":"replace","path":"/spec/template/spec","value":`+jobSetSpec+`}]`, options...)
}

func (s *scene) remove(runtime client.Object, options ...client.DeleteOption) error {
	s.Helper()
	return s.cluster.Client.Delete(s.ctx, bare(runtime), options...)
}

// inUse waits until the guard knows that a runtime is in use.
func (s *scene) inUse(runtime client.Object) {
	s.Helper()
	s.eventually("the guard to know of the TrainJobs of "+runtime.GetName(), func() (bool, string) {
		err := s.remove(runtime, client.DryRunAll)
		return apierrors.IsForbidden(err), fmt.Sprint(err)
	})
}

// removed waits until the guard lets the deletion of a runtime through, and deletes it.
func (s *scene) removed(runtime client.Object) {
	s.Helper()
	s.eventually("the deletion of "+runtime.GetName(), func() (bool, string) {
		err := s.remove(runtime)
		return err == nil, fmt.Sprint(err)
	})
}

// causes are the fields that a refusal as Invalid names; it fails the test for another error.
func (s *scene) causes(err error) []string {
	s.Helper()
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.ErrStatus.Details == nil {
		s.Fatalf("%v, want Invalid", err)
	}
	var fields []string
	for _, cause := range status.ErrStatus.Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}

// kubectl runs kubectl with this input and returns all that it prints. Its namespace is the
// scene's.
func (s *scene) kubectl(input string, args ...string) string {
	s.Helper()
	if !slices.Contains(args, "clustertrainingruntime") {
		args = append([]string{"--namespace", s.namespace}, args...)
	}
	args = append([]string{"--kubeconfig", s.cluster.Kubeconfig, "--cache-dir", filepath.Join(s.cluster.Dir, "kubectl-cache")}, args...)
	command := exec.CommandContext(s.ctx, s.cluster.Kubectl, args...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	return string(out)
}

// prints checks what kubectl prints.
func (s *scene) prints(want, got string) {
	s.Helper()
	if got != want {
		s.Errorf("kubectl prints\n%s\nwant\n%s", got, want)
	}
}

// refused waits until a dry run of a patch of a TrainJob is refused by Trainer with a text.
// Trainer goes by its cache.
func (s *scene) refused(name, patch, text string) {
	s.Helper()
	s.eventually(fmt.Sprintf("a refusal of %s by Trainer", patch), func() (bool, string) {
		err := s.cluster.Client.Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "validator.trainjob.trainer.kubeflow.org") && strings.Contains(err.Error(), text), fmt.Sprint(err)
	})
}

// untyped is a JSON value as it is in an unstructured object.
func untyped(text string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	return value
}
