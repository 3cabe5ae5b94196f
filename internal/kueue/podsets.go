// Package kueue shows Kueue what a TrainJob runs. Kueue computes the pod sets of a TrainJob from
// its live runtime, while the TrainJob lives on a snapshot.
//
// Pod sets, and what they are made of, are handled as JSON: fields that these sources do not
// know survive. What is given is never changed, and what is returned shares parts of it.
package kueue

import (
	"fmt"
	"reflect"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// PatchManager is the manager of Kueue's own entry in the runtimePatches of a TrainJob.
const PatchManager = "kueue.x-k8s.io/manager"

// Object is a JSON object.
type Object = map[string]any

// Pods is what is known of the pods of a TrainJob that lives on a snapshot of its runtime.
type Pods struct {
	// Template is the spec of the snapshot's JobSet template.
	Template Object
	// TrainJob is the TrainJob as it is stored.
	TrainJob Object
	// Admitted are the pod sets of the Workload that Kueue has for the TrainJob; nil without
	// one, or when it must not be gone by.
	Admitted []Object
	// Reserved tells whether that Workload has quota.
	Reserved bool
	// JobSet is the JobSet that was built from the snapshot; nil when there is none.
	JobSet Object
}

// Sources of the pod sets that are shown: values of the label source of the metric.
const (
	// FromWorkload are those that Kueue itself computed before.
	FromWorkload = "workload"
	// FromJobSet are those that Kueue would compute.
	FromJobSet = "jobset"
)

// Show returns the pod sets that run, or will, in place of those that Kueue computed from the
// live runtime, and where they come from; "" when nothing tells which they are.
//
// They are those of Kueue's Workload, so that Kueue finds nothing changed; but when the JobSet
// has other images, resources or counts, it is the JobSet's that are true. A Workload that has
// quota, which Kueue would take away for it, stands unless the JobSet takes more than that.
// Tolerations, and the rest of a pod that decides where it may run, come from the snapshot and
// the runtimePatches in both cases: a user may change these while the TrainJob is suspended.
func Show(asked []Object, pods Pods) (shown []Object, source string, err error) {
	templates, err := pods.templates()
	if err != nil {
		return nil, "", err
	}
	built := pods.built(asked, templates)
	switch {
	case pods.Admitted != nil && (pods.JobSet == nil || agree(pods.Admitted, built) || pods.Reserved && covers(pods.Admitted, built)):
		shown, source = pods.Admitted, FromWorkload
	case pods.JobSet != nil:
		shown, source = built, FromJobSet
	default:
		return nil, "", nil
	}
	out := make([]Object, 0, len(shown))
	for _, podSet := range shown {
		out = append(out, compose(podSet, named(asked, nameOf(podSet)), templates[nameOf(podSet)]))
	}
	return out, source, nil
}

// Patch returns the JSON patch by which a Workload gets other pod sets; nil when it has them.
func Patch(have, want []Object) []jsonpatch.Operation {
	if reflect.DeepEqual(have, want) {
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("replace", "/spec/podSets", want)}
}

// PodSets returns the pod sets of a Workload.
func PodSets(workload Object) []Object { return list(child(workload, "spec"), "podSets") }

// compose returns a pod set with the containers of one, and what else there is of its pods from
// the template of the snapshot, where that has it.
func compose(podSet, asked, template Object) Object {
	if template == nil {
		return podSet
	}
	spec := clone(child(template, "spec"))
	for _, key := range containerLists {
		put(spec, key, child(podSet, "template", "spec")[key])
	}
	template = clone(template)
	template["spec"] = spec
	out := clone(podSet)
	out["template"] = template
	if out["topologyRequest"] == nil {
		put(out, "topologyRequest", asked["topologyRequest"])
	}
	return out
}

// templates returns the pod templates of the snapshot by the names of their replicatedJobs,
// with the runtimePatches in them that are not Kueue's: strategic merge patches, in their order,
// as Trainer applies them.
func (p Pods) templates() (map[string]Object, error) {
	templates := map[string]Object{}
	for _, job := range list(p.Template, "replicatedJobs") {
		templates[nameOf(job)] = child(job, "template", "spec", "template")
	}
	for _, patch := range list(child(p.TrainJob, "spec"), "runtimePatches") {
		if patch["manager"] == PatchManager {
			continue
		}
		for _, job := range list(child(patch, "trainingRuntimeSpec", "template", "spec"), "replicatedJobs") {
			name, change := nameOf(job), child(job, "template", "spec", "template")
			if templates[name] == nil || change == nil {
				continue
			}
			// It works on what it is given.
			merged, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(templates[name]), runtime.DeepCopyJSON(change), corev1.PodTemplateSpec{})
			if err != nil {
				return nil, fmt.Errorf("runtimePatches of %s: %w", name, err)
			}
			templates[name] = merged
		}
	}
	return templates, nil
}

// built returns the pod sets that Kueue would make of the JobSet: for each replicatedJob as many
// pods as all its Jobs have together. What Trainer adds to containers for its frameworks, and
// Kueue does not know of, is left out.
func (p Pods) built(asked []Object, templates map[string]Object) []Object {
	var out []Object
	for _, entry := range list(child(p.JobSet, "spec"), "replicatedJobs") {
		job := child(entry, "template", "spec")
		parallelism := number(job, "parallelism", 1)
		podSet := Object{
			"name":  nameOf(entry),
			"count": number(entry, "replicas", 1) * min(parallelism, number(job, "completions", parallelism)),
		}
		spec := Object{}
		for _, key := range containerLists {
			known := append(list(child(templates[nameOf(entry)], "spec"), key),
				list(child(named(asked, nameOf(entry)), "template", "spec"), key)...)
			put(spec, key, reduce(list(child(job, "template", "spec"), key), known))
		}
		podSet["template"] = Object{"spec": spec}
		out = append(out, podSet)
	}
	return out
}

// reduce returns the containers that are known, each without the entries of its lists that are
// in none of its name; nil for no container.
func reduce(containers, known []Object) any {
	var out []any
	for _, container := range containers {
		same := allNamed(known, nameOf(container))
		if len(same) == 0 {
			continue
		}
		container = clone(container)
		for field, key := range map[string]string{"env": "name", "ports": "containerPort", "volumeMounts": "mountPath"} {
			put(container, field, entries(list(container, field), key, field, same))
		}
		out = append(out, container)
	}
	if out == nil {
		return nil
	}
	return out
}

// entries returns those of a list of which a container has one with the same key; nil for none.
func entries(have []Object, key, field string, containers []Object) any {
	known := map[string]bool{}
	for _, container := range containers {
		for _, entry := range list(container, field) {
			known[fmt.Sprint(entry[key])] = true
		}
	}
	var out []any
	for _, entry := range have {
		if known[fmt.Sprint(entry[key])] {
			out = append(out, entry)
		}
	}
	if out == nil {
		return nil
	}
	return out
}

// weight is what of a container takes resources or tells what it runs.
type weight struct {
	Image         string                        `json:"image,omitempty"`
	Resources     corev1.ResourceRequirements   `json:"resources,omitempty"`
	RestartPolicy corev1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
}

// takes is how much of a resource a container asks for. The API server takes a limit for what is
// not asked for.
func (w weight) takes(name corev1.ResourceName) resource.Quantity {
	if quantity, found := w.Resources.Requests[name]; found {
		return quantity
	}
	return w.Resources.Limits[name]
}

// containerLists are the lists of containers of a pod.
var containerLists = []string{"containers", "initContainers"}

// agree tells whether two lists of pod sets are of as many pods, of the same images and
// resources.
func agree(a, b []Object) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if nameOf(a[i]) != nameOf(b[i]) || number(a[i], "count", 1) != number(b[i], "count", 1) {
			return false
		}
		for _, key := range containerLists {
			if !equality.Semantic.DeepEqual(weights(a[i], key), weights(b[i], key)) {
				return false
			}
		}
	}
	return true
}

// covers tells whether the admitted pod sets are of as many pods and resources, at least, as
// those that were built.
func covers(admitted, built []Object) bool {
	for _, podSet := range built {
		has := named(admitted, nameOf(podSet))
		if has == nil || number(has, "count", 1) < number(podSet, "count", 1) {
			return false
		}
		for _, key := range containerLists {
			have := weights(has, key)
			for name, need := range weights(podSet, key) {
				for _, list := range []corev1.ResourceList{need.Resources.Requests, need.Resources.Limits} {
					for kind := range list {
						takes := need.takes(kind)
						available := have[name].takes(kind)
						// One that goes on running takes its own beside the others.
						if available.Cmp(takes) < 0 || have[name].RestartPolicy != need.RestartPolicy {
							return false
						}
					}
				}
			}
		}
	}
	return true
}

// weights returns the weights of the containers of a pod set by their names.
func weights(podSet Object, key string) map[string]weight {
	out := map[string]weight{}
	for _, container := range list(child(podSet, "template", "spec"), key) {
		var w weight
		// Of what is stored, these fields have their types.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(container, &w)
		out[nameOf(container)] = w
	}
	return out
}
