package e2e_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// clockCase is a runtime, by its JobSet spec (JSON), and the clocks in it, by their fields.
type clockCase struct {
	jobSet string
	clocks []string
}

const (
	onJob = `"activeDeadlineSeconds":5,`
	onPod = `"activeDeadlineSeconds":6,`
	ttl   = `"ttlSecondsAfterFinished":7,`
)

// clockCases are runtimes with clocks in every place where the API has them, and without.
func clockCases() map[string]clockCase {
	const (
		first  = "spec.template.spec.replicatedJobs[0].template.spec."
		second = "spec.template.spec.replicatedJobs[1].template.spec."
		third  = "spec.template.spec.replicatedJobs[2].template.spec."

		deadline, podDeadline, ttlField = "activeDeadlineSeconds", "template.spec.activeDeadlineSeconds", "ttlSecondsAfterFinished"
	)
	cases := map[string]clockCase{
		"no clock":                  {jobSetWith("", replicatedJob("a", "", "")), nil},
		"other fields of Jobs":      {jobSetWith("", replicatedJob("a", `"backoffLimit":3,"parallelism":2,"completions":2,`, `"terminationGracePeriodSeconds":5,`)), nil},
		"on the Job template":       {jobSetWith("", replicatedJob("a", onJob, "")), []string{first + deadline}},
		"on the pod template":       {jobSetWith("", replicatedJob("a", "", onPod)), []string{first + podDeadline}},
		"a TTL on the Job template": {jobSetWith("", replicatedJob("a", ttl, "")), []string{first + ttlField}},
		"a TTL on the JobSet":       {jobSetWith(ttl, replicatedJob("a", "", "")), []string{"spec.template.spec." + ttlField}},
		"a TTL of 0":                {jobSetWith(`"ttlSecondsAfterFinished":0,`, replicatedJob("a", `"ttlSecondsAfterFinished":0,`, "")), []string{"spec.template.spec." + ttlField, first + ttlField}},
		"a deadline of 0":           {jobSetWith("", replicatedJob("a", `"activeDeadlineSeconds":0,`, `"activeDeadlineSeconds":0,`)), []string{first + deadline, first + podDeadline}},
		"null is none":              {jobSetWith(`"ttlSecondsAfterFinished":null,`, replicatedJob("a", `"activeDeadlineSeconds":null,"ttlSecondsAfterFinished":null,`, `"activeDeadlineSeconds":null,`)), nil},
		"a large number":            {jobSetWith("", replicatedJob("a", `"activeDeadlineSeconds":9007199254740991,`, "")), []string{first + deadline}},
		"a negative number":         {jobSetWith("", replicatedJob("a", `"activeDeadlineSeconds":-1,`, "")), []string{first + deadline}},
		"on the second of three":    {jobSetWith("", replicatedJob("a", "", ""), replicatedJob("b", onJob, onPod), replicatedJob("c", "", "")), []string{second + deadline, second + podDeadline}},
		"several at once": {
			jobSetWith(ttl, replicatedJob("a", onJob+ttl, onPod), replicatedJob("b", "", ""), replicatedJob("c", onJob, "")),
			[]string{"spec.template.spec." + ttlField, first + deadline, first + ttlField, first + podDeadline, third + deadline},
		},
	}
	// Larger than any runtime that is of use, and small enough for the API server to store.
	var many []string
	want := []string{"spec.template.spec." + ttlField}
	for i := range 60 {
		name := "job-" + strconv.Itoa(i)
		many = append(many, replicatedJob(name, onJob, `"nodeName":"`+strings.Repeat("x", 2000)+`","activeDeadlineSeconds":6,`))
		job := "spec.template.spec.replicatedJobs[" + strconv.Itoa(i) + "].template.spec."
		want = append(want, job+deadline, job+podDeadline)
	}
	cases["sixty jobs"] = clockCase{jobSetWith(ttl, many...), want}
	return cases
}

// clockEdit is an edit of a runtime, by its JobSet specs before and after (JSON), and the
// clocks that it is refused for.
type clockEdit struct {
	before, after string
	clocks        []string
}

// clockEdits are edits of runtimes that have clocks already.
func clockEdits() map[string]clockEdit {
	const first, second = "spec.template.spec.replicatedJobs[0].template.spec.", "spec.template.spec.replicatedJobs[1].template.spec."
	all := jobSetWith(ttl, replicatedJob("a", onJob+ttl, onPod), replicatedJob("b", onJob, ""))
	otherImage := func(jobSet string) string { return strings.ReplaceAll(jobSet, oldImage, newImage) }
	return map[string]clockEdit{
		"another image":            {all, otherImage(all), nil},
		"all go":                   {all, jobSetWith("", replicatedJob("a", "", ""), replicatedJob("b", "", "")), nil},
		"one goes":                 {all, jobSetWith(ttl, replicatedJob("a", onJob, onPod), replicatedJob("b", onJob, "")), nil},
		"reordered":                {all, jobSetWith(ttl, replicatedJob("b", onJob, ""), replicatedJob("a", onJob+ttl, onPod)), nil},
		"another one before them":  {all, jobSetWith(ttl, replicatedJob("new", "", ""), replicatedJob("a", onJob+ttl, onPod), replicatedJob("b", onJob, "")), nil},
		"the first goes":           {all, jobSetWith(ttl, replicatedJob("b", onJob, "")), nil},
		"a new clock":              {all, otherImage(jobSetWith(ttl, replicatedJob("a", onJob+ttl, onPod), replicatedJob("b", onJob, onPod))), []string{second + "template.spec.activeDeadlineSeconds"}},
		"a clock that changes":     {all, jobSetWith(ttl, replicatedJob("a", `"activeDeadlineSeconds":50,`+ttl, onPod), replicatedJob("b", onJob, "")), []string{first + "activeDeadlineSeconds"}},
		"the JobSet's own changes": {all, jobSetWith(`"ttlSecondsAfterFinished":70,`, replicatedJob("a", onJob+ttl, onPod), replicatedJob("b", onJob, "")), []string{"spec.template.spec.ttlSecondsAfterFinished"}},
		"a clock that moves":       {jobSetWith("", replicatedJob("a", onJob, ""), replicatedJob("b", "", "")), jobSetWith("", replicatedJob("a", "", ""), replicatedJob("b", onJob, "")), []string{second + "activeDeadlineSeconds"}},
		"from the Job to the pods": {jobSetWith("", replicatedJob("a", onJob, "")), jobSetWith("", replicatedJob("a", "", `"activeDeadlineSeconds":5,`)), []string{first + "template.spec.activeDeadlineSeconds"}},
		"a renamed one":            {jobSetWith("", replicatedJob("a", onJob, "")), jobSetWith("", replicatedJob("b", onJob, "")), []string{first + "activeDeadlineSeconds"}},
		"renamed to a bad one":     {jobSetWith("", replicatedJob("a", onJob, ""), replicatedJob("b", onJob, "")), jobSetWith("", replicatedJob("b", onJob, "")), nil},
		"the first clock":          {jobSetWith("", replicatedJob("a", "", "")), jobSetWith("", replicatedJob("a", onJob, "")), []string{first + "activeDeadlineSeconds"}},
	}
}

// A clock in a runtime: on stock the pods end by it, and the TrainJob fails for a reason that
// has nothing to do with its own deadline.
func TestGuardClockOfAJob(t *testing.T) {
	t.Parallel()
	t.Run("stock ends the pods by it", func(t *testing.T) {
		t.Parallel()
		s := newSceneOn(t, stock)
		// Long enough for the pods to run first.
		s.runtime("train", strings.Replace(jobSetOf(oldImage), `"spec":{"template"`, `"spec":{"activeDeadlineSeconds":20,"template"`, 1))
		s.known("train")
		s.create("job", deadline(3600), onRuntime("train"))
		s.running("job")
		s.becomes("job", trainer.ConditionFailed, "True/FailedJobs")
		s.eventually("the end of the pods", func() (bool, string) { return len(s.pods("job")) == 0, s.children("job") })
	})
	t.Run("signalbox denies it", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		runtime := s.object(trainer.TrainingRuntimeKind, "train", strings.Replace(jobSetOf(oldImage), `"spec":{"template"`, `"spec":{`+onJob+`"template"`, 1))
		err := s.cluster.Client.Create(s.ctx, runtime)
		want := "spec.template.spec.replicatedJobs[0].template.spec.activeDeadlineSeconds: Invalid value: 5: " + secondClock
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("created with %v, want Invalid: %s", err, want)
		}
	})
}

// A TTL in a runtime: on stock the JobSet of a failed TrainJob goes, and Trainer starts the
// TrainJob again.
func TestGuardClockAfterTheEnd(t *testing.T) {
	t.Parallel()
	t.Run("stock runs a failed one again", func(t *testing.T) {
		t.Parallel()
		s := newSceneOn(t, stock)
		s.runtime("train", strings.NewReplacer(`{"replicatedJobs"`, `{"ttlSecondsAfterFinished":10,"replicatedJobs"`, `"spec":{"template"`, `"spec":{"backoffLimit":0,"template"`).Replace(jobSetOf(oldImage)))
		s.known("train")
		s.create("job", onRuntime("train"))
		s.running("job")
		first := s.jobSet().GetUID()
		for _, pod := range s.pods("job") {
			s.must(s.cluster.Client.Status().Patch(s.ctx, &pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))))
		}
		s.becomes("job", trainer.ConditionFailed, "True/FailedJobs")
		s.eventually("another JobSet", func() (bool, string) {
			jobSet := s.jobSet()
			return jobSet != nil && jobSet.GetUID() != first, s.children("job") + s.text(s.get("job").Status)
		})
		s.running("job")
	})
	t.Run("signalbox denies it", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		err := s.cluster.Client.Create(s.ctx, s.object(trainer.TrainingRuntimeKind, "train", strings.Replace(jobSetOf(oldImage), "{", `{"ttlSecondsAfterFinished":5,`, 1)))
		want := "spec.template.spec.ttlSecondsAfterFinished: Invalid value: 5: " + secondTTL
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("created with %v, want Invalid: %s", err, want)
		}
	})
}

// Clocks are refused wherever they are, all at once, whatever runtime they are in, on creation
// and on an edit. Stock takes them all.
func TestGuardClocks(t *testing.T) {
	t.Parallel()
	for name, tc := range clockCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{trainer.TrainingRuntimeKind, trainer.ClusterTrainingRuntimeKind} {
				s := newScene(t)
				runtime := s.object(kind, "train", tc.jobSet)
				overlooked := runtime.DeepCopy()
				overlooked.SetName(runtime.GetName() + "-overlooked")
				overlooked.SetLabels(map[string]string{unvalidated: "disabled"})
				edited := s.stored(s.object(kind, "edited", jobSetWith("", replicatedJob("z", "", ""))))
				generated := runtime.DeepCopy()
				generated.SetName("")
				generated.SetGenerateName(runtime.GetName() + "-")
				for what, err := range map[string]error{
					"created":                       s.cluster.Client.Create(s.ctx, runtime.DeepCopy(), client.DryRunAll),
					"created where Trainer is told": s.cluster.Client.Create(s.ctx, overlooked, client.DryRunAll),
					"created with a generated name": s.cluster.Client.Create(s.ctx, generated, client.DryRunAll),
					"edited":                        s.reshape(edited, tc.jobSet, client.DryRunAll),
				} {
					if diff := cmp.Diff(tc.clocks, s.causes(err)); diff != "" {
						t.Errorf("%s %s: fields (-want +got):\n%s", kind, what, diff)
					}
					if err != nil && strings.Contains(err.Error(), `""`) {
						t.Errorf("%s %s: no name in %v", kind, what, err)
					}
				}

				onStock := newSceneOn(t, stock)
				plain := onStock.object(kind, "train", tc.jobSet)
				if err := stock.Client.Create(s.ctx, plain, client.DryRunAll); err != nil {
					t.Errorf("%s on stock: %v: it has no such fault any more", kind, err)
				}
			}
		})
	}
}

// What a user reads who applies a runtime with clocks.
func TestGuardClocksByKubectl(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	manifest := func(kind, name, jobSet string) string {
		object := s.object(kind, name, jobSet)
		encoded, err := object.MarshalJSON()
		s.must(err)
		return string(encoded)
	}
	one := manifest(trainer.TrainingRuntimeKind, "mine", jobSetWith("", replicatedJob("node", onJob, "")))
	s.prints(`The TrainingRuntime "mine" is invalid: spec.template.spec.replicatedJobs[0].template.spec.activeDeadlineSeconds: Invalid value: 5: `+secondClock+"\n",
		s.kubectl(one, "apply", "--filename", "-"))
	two := manifest(trainer.ClusterTrainingRuntimeKind, "mine", jobSetWith(ttl, replicatedJob("node", "", onPod)))
	s.prints(`The ClusterTrainingRuntime "`+s.namespace+`-mine" is invalid: 
* spec.template.spec.ttlSecondsAfterFinished: Invalid value: 7: `+secondTTL+`
* spec.template.spec.replicatedJobs[0].template.spec.template.spec.activeDeadlineSeconds: Invalid value: 6: `+secondClock+"\n",
		s.kubectl(two, "apply", "--server-side", "--filename", "-"))

	s.stored(s.object(trainer.TrainingRuntimeKind, "good", jobSetWith("", replicatedJob("node", "", ""))))
	s.prints(`The TrainingRuntime "good" is invalid: spec.template.spec.ttlSecondsAfterFinished: Invalid value: 7: `+secondTTL+"\n",
		s.kubectl("", "patch", "trainingruntime", "good", "--type", "merge", "--patch", `{"spec":{"template":{"spec":{"ttlSecondsAfterFinished":7}}}}`))
}

// The runtimes that Trainer brings are taken as they are, and so are those of its examples.
func TestGuardTakesTrainersOwnRuntimes(t *testing.T) {
	t.Parallel()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := binaries.ModuleDirs(t.Context(), root, io.Discard, binaries.TrainerModule)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, dir := range []string{"manifests/base/runtimes", "examples"} {
		for file, objects := range runtimesIn(t, filepath.Join(dirs[binaries.TrainerModule], dir)) {
			for _, object := range objects {
				names = append(names, object.GetName())
				t.Run(filepath.Base(file)+" "+object.GetName(), func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					if object.GetKind() == trainer.TrainingRuntimeKind {
						object.SetNamespace(s.namespace)
					}
					encoded, err := object.MarshalJSON()
					s.must(err)
					if out := s.kubectl(string(encoded), "apply", "--server-side", "--dry-run=server", "--force-conflicts", "--filename", "-"); !strings.HasSuffix(out, "serverside-applied (server dry run)\n") {
						t.Errorf("applied: %s", out)
					}
					// As a new one, of both kinds.
					for _, kind := range []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind} {
						fresh := object.DeepCopy()
						fresh.SetGroupVersionKind(trainer.GroupVersion.WithKind(kind))
						fresh.SetName(s.namespace + "-new")
						fresh.SetNamespace("")
						if kind == trainer.TrainingRuntimeKind {
							fresh.SetNamespace(s.namespace)
						}
						s.must(s.cluster.Client.Create(s.ctx, fresh, client.DryRunAll))
					}
				})
			}
		}
	}
	for _, want := range []string{"torch-distributed", "deepspeed-distributed", "jax-distributed", "mlx-distributed", "xgboost-distributed", "torch-distributed-with-cache", "torchtune-llama3.2-1b", "torchtune-llama3.2-3b", "torchtune-qwen2.5-1.5b"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
	// Those that the cluster has were there before Signalbox came.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind + "List"))
	if err := shared.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, runtime := range list.Items {
		if runtime.GetLabels()[unvalidated] != "disabled" {
			continue
		}
		again := runtime.DeepCopy()
		again.SetAnnotations(map[string]string{"touched": time.Now().Format(time.RFC3339)})
		if err := shared.Client.Update(t.Context(), again, client.DryRunAll); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", runtime.GetName(), err)
		}
	}
}

// runtimesIn reads the runtimes in the YAML files of a folder.
func runtimesIn(t *testing.T, dir string) map[string][]*unstructured.Unstructured {
	t.Helper()
	found := map[string][]*unstructured.Unstructured{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		for decoder := kyaml.NewYAMLOrJSONDecoder(file, 4096); ; {
			var raw json.RawMessage
			if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			object := &unstructured.Unstructured{}
			if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &object.Object) != nil {
				continue
			}
			if kind := object.GetKind(); kind == trainer.ClusterTrainingRuntimeKind || kind == trainer.TrainingRuntimeKind {
				found[path] = append(found[path], object)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
