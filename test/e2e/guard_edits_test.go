package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// breakingEdit is an edit of a runtime that breaks what the neighbours look up in it.
type breakingEdit struct {
	// jobSet is the JobSet spec before, edit the JSON patch.
	jobSet, edit string
	// job makes the TrainJob one that it breaks.
	job change
	// trainer is what Trainer says when the TrainJob is changed afterwards; "" if it does not care.
	trainer string
	// start is what is said when one that waited is to start afterwards; "" if it starts.
	start string
	// fields are those that the guard names.
	fields []string
	// back tells that the way back breaks nothing.
	back bool
}

// patching makes a TrainJob that patches a replicatedJob of its runtime (JSON of the patch of
// the pod).
func patching(name, pod string) change {
	return func(job *unstructured.Unstructured) {
		set([]any{map[string]any{
			"manager": "example.com/me",
			"trainingRuntimeSpec": map[string]any{"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{
				map[string]any{"name": name, "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": untyped(pod)}}}},
			}}}},
		}}, "spec", "runtimePatches")(job)
	}
}

// fetching makes a TrainJob that has a dataset or a model fetched.
func fetching(what string) change {
	return set(map[string]any{"storageUri": "hf://team/" + what}, "spec", "initializer", what)
}

// initializerJob is the replicatedJob that fetches a dataset or a model.
func initializerJob(what string) string {
	name := what + "-initializer"
	return fmt.Sprintf(`{"name":%q,"template":{"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":%q}},"spec":{"template":{"spec":{
		"containers":[{"name":%q,"image":%q,"volumeMounts":[{"name":"initializer","mountPath":"/workspace"}]}],
		"volumes":[{"name":"initializer","emptyDir":{}}]}}}}}`, name, name, name, oldImage)
}

func breakingEdits() map[string]breakingEdit {
	const (
		jobs = "spec.template.spec.replicatedJobs"
		pods = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
	)
	pod := func(name string) string { return jobs + "[" + name + "].template.spec.template.spec" }
	node := strings.TrimSuffix(strings.TrimPrefix(jobSetOf(oldImage), `{"replicatedJobs":[`), "]}")
	more := replicatedJob("more", "", "")
	full := strings.Replace(node, `"containers":[`, `"initContainers":[{"name":"fetch","image":"i"}],"containers":[{"name":"helper","image":"h"},`, 1)
	return map[string]breakingEdit{
		"a replicatedJob is renamed": {
			jobSet: jobSetWith("", node), job: patching("node", `{"nodeSelector":{}}`),
			edit:   `[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/name","value":"other"}]`,
			start:  "spec.replicatedJobs[0].template.spec.template.spec.containers: Invalid value: ",
			fields: []string{jobs + "[node]", jobs + "[other]"},
		},
		"a replicatedJob is removed": {
			jobSet: jobSetWith("", node, more), job: patching("more", `{"nodeSelector":{}}`),
			edit:   `[{"op":"remove","path":"/spec/template/spec/replicatedJobs/1"}]`,
			start:  "spec.replicatedJobs[0].template.spec.template.spec.containers: Invalid value: ",
			fields: []string{jobs + "[more]"},
		},
		"a replicatedJob is added": {
			jobSet: jobSetWith("", node), job: patching("node", `{"nodeSelector":{}}`),
			edit:   `[{"op":"add","path":"/spec/template/spec/replicatedJobs/-","value":` + more + `}]`,
			fields: []string{jobs + "[more]"},
		},
		"replicas change": {
			jobSet: jobSetWith("", node, more), job: patching("more", `{"nodeSelector":{}}`),
			edit:   `[{"op":"add","path":"/spec/template/spec/replicatedJobs/1/replicas","value":2}]`,
			fields: []string{jobs + "[more].replicas"},
		},
		"a container is renamed": {
			jobSet: jobSetWith("", full), job: patching("node", `{"containers":[{"name":"helper"}]}`),
			edit:   `[{"op":"replace","path":"` + pods + `/containers/0/name","value":"aide"}]`,
			start:  "spec.template.spec.containers[0].image: Required value",
			fields: []string{pod("node") + ".containers[helper]"},
		},
		"a container is removed": {
			jobSet: jobSetWith("", full), job: patching("node", `{"containers":[{"name":"helper"}]}`),
			edit:   `[{"op":"remove","path":"` + pods + `/containers/0"}]`,
			start:  "spec.template.spec.containers[0].image: Required value",
			fields: []string{pod("node") + ".containers[helper]"},
			back:   true,
		},
		"an initContainer is renamed": {
			jobSet: jobSetWith("", full), job: patching("node", `{"initContainers":[{"name":"fetch"}]}`),
			edit:   `[{"op":"replace","path":"` + pods + `/initContainers/0/name","value":"get"}]`,
			start:  "spec.template.spec.initContainers[0].image: Required value",
			fields: []string{pod("node") + ".initContainers[fetch]"},
		},
		"all initContainers are removed": {
			jobSet: jobSetWith("", full), job: patching("node", `{"initContainers":[{"name":"fetch"}]}`),
			edit:   `[{"op":"remove","path":"` + pods + `/initContainers"}]`,
			start:  "spec.template.spec.initContainers[0].image: Required value",
			fields: []string{pod("node") + ".initContainers[fetch]"},
			back:   true,
		},
		"the dataset's initializer is removed": {
			jobSet: jobSetWith("", initializerJob("dataset"), node), job: fetching("dataset"),
			edit:    `[{"op":"remove","path":"/spec/template/spec/replicatedJobs/0"}]`,
			trainer: "must have dataset-initializer job when trainJob is configured with input datasetConfig",
			fields:  []string{jobs + "[dataset-initializer]"},
		},
		"the model's initializer has another container": {
			jobSet: jobSetWith("", initializerJob("model"), node), job: fetching("model"),
			edit:    `[{"op":"replace","path":"` + pods + `/containers/0/name","value":"other"}]`,
			trainer: "must have container with name - model-initializer in the model-initializer job",
			fields:  []string{pod("model-initializer") + ".containers[model-initializer]"},
		},
		"the dataset's volume is no longer mounted": {
			jobSet: jobSetWith("", initializerJob("dataset"), node), job: fetching("dataset"),
			edit:    `[{"op":"remove","path":"` + pods + `/containers/0/volumeMounts"}]`,
			trainer: "must have volumeMount with name - initializer in container dataset-initializer of the dataset-initializer job",
			fields:  []string{pod("dataset-initializer") + ".containers[dataset-initializer].volumeMounts[initializer]"},
			back:    true,
		},
		"the model's volume is mounted by another name": {
			jobSet: jobSetWith("", initializerJob("model"), node), job: fetching("model"),
			edit: `[{"op":"replace","path":"` + pods + `/containers/0/volumeMounts/0/name","value":"init"},` +
				`{"op":"replace","path":"` + pods + `/volumes/0/name","value":"init"}]`,
			trainer: "must have volumeMount with name - initializer in container model-initializer of the model-initializer job",
			fields:  []string{pod("model-initializer") + ".containers[model-initializer].volumeMounts[initializer]"},
			back:    true,
		},
	}
}

// Edits that break the TrainJobs of a runtime. Where an initializer is gone, or no longer as
// Trainer wants it, stock refuses every change of the TrainJob that has it.
func TestGuardBreakingEdits(t *testing.T) {
	t.Parallel()
	const label, suspend, resume = `{"metadata":{"labels":{"team":"x"}}}`, `{"spec":{"suspend":true}}`, `{"spec":{"suspend":false}}`
	for name, tc := range breakingEdits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := func(s *scene, kind string) *unstructured.Unstructured {
				object := s.object(kind, "train", tc.jobSet)
				object.SetLabels(map[string]string{unvalidated: "disabled"})
				runtime := s.stored(object)
				s.createOn(runtime, "job", suspended(), tc.job, set([]any{"example.com/keep"}, "metadata", "finalizers"))
				return runtime
			}
			if tc.trainer != "" {
				t.Run("stock freezes the TrainJob", func(t *testing.T) {
					t.Parallel()
					for _, kind := range []string{namespaced, cluster_} {
						s := newSceneOn(t, stock)
						runtime := scenario(s, kind)
						s.must(s.alter(runtime, tc.edit))
						for _, patch := range []string{label, resume, `{"metadata":{"finalizers":null}}`} {
							s.refused("job", patch, tc.trainer)
						}
						s.must(s.reshape(runtime, tc.jobSet))
						s.eventually("the end of the finalizer", func() (bool, string) {
							err := s.patchAny(s.trainJob("job"), `{"metadata":{"finalizers":null}}`)
							return err == nil, fmt.Sprint(err)
						})
					}
				})
			}
			t.Run("signalbox denies it", func(t *testing.T) {
				t.Parallel()
				for _, kind := range []string{namespaced, cluster_} {
					s := newScene(t)
					runtime := scenario(s, kind)
					s.inUse(runtime)
					refused := func(err error) {
						t.Helper()
						if diff := cmp.Diff(append(tc.fields[:len(tc.fields):len(tc.fields)], allowPath), s.causes(err)); diff != "" {
							t.Errorf("%s: fields (-want +got):\n%s", kind, diff)
						}
						inUse := "is in use by 1 unfinished TrainJob: " + s.namespace + "/job"
						if err != nil && !strings.Contains(err.Error(), inUse) {
							t.Errorf("%s: %v, want in it: %s", kind, err, inUse)
						}
					}
					refused(s.alter(runtime, tc.edit))
					refused(s.alter(runtime, tc.edit, client.DryRunAll))
					// The leave must be there before.
					refused(s.alter(runtime, `[{"op":"add","path":"/metadata/annotations","value":{"`+v1alpha1.AnnotationAllowDisruption+`":"true"}},`+tc.edit[1:]))
					for _, patch := range []string{label, suspend} {
						s.must(s.patchAny(s.trainJob("job"), patch))
					}
					s.patch("job", `{"metadata":{"finalizers":null}}`)

					s.must(s.allowDisruption(runtime))
					stored := func() *unstructured.Unstructured {
						stored := bare(runtime)
						s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(stored), stored))
						return stored
					}
					s.must(s.alter(runtime, tc.edit, client.DryRunAll))
					s.must(s.alter(runtime, `[{"op":"replace","path":"/spec/mlPolicy/numNodes","value":3}]`))
					if got := stored().GetAnnotations()[v1alpha1.AnnotationAllowDisruption]; got != "true" {
						t.Errorf("%s: a dry run or a harmless edit took the leave away: %q", kind, got)
					}
					s.must(s.alter(runtime, tc.edit))
					if annotations := stored().GetAnnotations(); annotations[v1alpha1.AnnotationAllowDisruption] != "" {
						t.Errorf("%s: annotations %v", kind, annotations)
					}
					// It served once. The way back is another edit.
					if tc.back {
						s.must(s.reshape(runtime, tc.jobSet))
						refused(s.alter(runtime, tc.edit))
					} else if err := s.reshape(runtime, tc.jobSet); !apierrors.IsInvalid(err) {
						t.Errorf("%s: back with %v", kind, err)
					}

					s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
					s.deleted("job")
					s.eventually("an edit of a runtime that is free", func() (bool, string) {
						err := s.reshape(runtime, jobSetWith("", replicatedJob("quite", "", ""), replicatedJob("other", "", "")))
						return err == nil, fmt.Sprint(err)
					})
				}
			})
		})
	}
}

// A TrainJob that waits follows the live runtime. One that patches what is gone never starts.
func TestGuardBreakingEditsOfWaitingTrainJobs(t *testing.T) {
	t.Parallel()
	for name, tc := range breakingEdits() {
		if tc.trainer != "" {
			continue // it cannot even be resumed
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			runtime := s.stored(s.object(namespaced, "train", tc.jobSet))
			s.createOn(runtime, "job", suspended(), tc.job)
			s.becomes("job", trainer.ConditionSuspended, "True/Suspended")
			s.must(s.allowDisruption(runtime))
			s.must(s.alter(runtime, tc.edit))
			s.resume("job")
			if tc.start == "" {
				s.running("job")
				return
			}
			s.eventually("a failure to start", func() (bool, string) {
				// Events of one reason are counted together, under the text of the first.
				events := s.warnings("job")
				return strings.Contains(events, tc.start) || len(s.logged(s.cluster.Trainer, s.namespace, tc.start)) > 0, events
			})
			if pods := s.pods("job"); len(pods) != 0 {
				t.Errorf("it has pods: %s", s.children("job"))
			}
		})
	}
}

// Values change freely while TrainJobs use the runtime, and nothing happens to these.
func TestGuardHarmlessEdits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, kind := range []string{namespaced, cluster_} {
		runtime := s.stored(s.object(kind, "train", jobSetOf(oldImage)))
		name := "job-" + strings.ToLower(kind)
		s.createOn(runtime, name)
		pods := s.runs(name, oldImage)
		s.inUse(runtime)
		const container = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0"
		const pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
		for _, edit := range []string{
			`{"op":"replace","path":"` + container + `/image","value":"` + newImage + `"}`,
			`{"op":"add","path":"` + container + `/env","value":[{"name":"A","value":"b"}]}`,
			`{"op":"add","path":"` + container + `/command","value":["train"]}`,
			`{"op":"add","path":"` + container + `/args","value":["--fast"]}`,
			`{"op":"add","path":"` + container + `/resources","value":{"limits":{"cpu":"3","nvidia.com/gpu":"1"}}}`,
			`{"op":"replace","path":"/spec/mlPolicy","value":{"numNodes":4,"torch":{}}}`,
			`{"op":"add","path":"` + pod + `/tolerations","value":[{"key":"gpu","operator":"Exists"}]}`,
			`{"op":"add","path":"` + pod + `/nodeSelector","value":{"zone":"a"}}`,
			`{"op":"add","path":"` + pod + `/volumes","value":[{"name":"v","emptyDir":{}}]}`,
			`{"op":"add","path":"` + container + `/volumeMounts","value":[{"name":"v","mountPath":"/v"}]}`,
			`{"op":"add","path":"` + pod + `/containers/-","value":{"name":"sidecar","image":"s"}}`,
			`{"op":"add","path":"` + pod + `/containers/0","value":{"name":"sidecar-in-front","image":"s"}}`,
			`{"op":"add","path":"` + pod + `/initContainers","value":[{"name":"first","image":"s"}]}`,
			`{"op":"add","path":"/spec/template/spec/replicatedJobs/0/replicas","value":1}`,
			`{"op":"add","path":"/spec/template/spec/replicatedJobs/0/template/spec/backoffLimit","value":2}`,
			`{"op":"add","path":"/spec/template/spec/failurePolicy","value":{"maxRestarts":3}}`,
			`{"op":"add","path":"/spec/template/metadata/labels","value":{"team":"x"}}`,
			`{"op":"add","path":"/spec/podGroupPolicy","value":{"coscheduling":{"scheduleTimeoutSeconds":100}}}`,
			`{"op":"add","path":"/metadata/labels","value":{"team":"x"}}`,
		} {
			warned := s.warned(func(c client.Client) {
				if err := c.Patch(s.ctx, bare(runtime), client.RawPatch("application/json-patch+json", []byte("["+edit+"]"))); err != nil {
					t.Errorf("%s: %s: %v", kind, edit, err)
				}
			})
			if len(warned) != 0 {
				t.Errorf("%s: %s: warnings %q", kind, edit, warned)
			}
		}
		s.settled(name)
		if now := s.runs(name, oldImage); len(now) != len(pods) || now[0].UID != pods[0].UID {
			t.Errorf("%s: the pods of the TrainJob are others", kind)
		}
	}
}

// What a user reads who edits a runtime in use so that it breaks TrainJobs.
func TestGuardBreakingEditByKubectl(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	runtime := s.stored(s.object(namespaced, "mine", jobSetOf(oldImage)))
	s.createOn(runtime, "job", suspended())
	s.inUse(runtime)
	const edit = `[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/name","value":"main"},` +
		`{"op":"add","path":"/spec/template/spec/ttlSecondsAfterFinished","value":7}]`
	patch := func() string {
		return s.kubectl("", "patch", "trainingruntime", "mine", "--type", "json", "--patch", edit)
	}
	const clock = `spec.template.spec.ttlSecondsAfterFinished: Invalid value: 7: ` + secondTTL
	s.prints(`The TrainingRuntime "mine" is invalid: 
* `+clock+`
* spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[node]: Forbidden: cannot be removed or renamed
* metadata.annotations[lifecycle.trainer.kubeflow.org/allow-disruption]: Required value: must be "true" before an edit that breaks unfinished TrainJobs: TrainingRuntime `+s.namespace+`/mine is in use by 1 unfinished TrainJob: `+s.namespace+"/job\n", patch())
	// A leave to disrupt is none to set a clock.
	s.must(s.allowDisruption(runtime))
	s.prints(`The TrainingRuntime "mine" is invalid: `+clock+"\n", patch())
}
