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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// PatchManager is the manager of Kueue's own entry in the runtimePatches of a TrainJob.
const PatchManager = "kueue.x-k8s.io/manager"

// Object is a JSON object.
type Object = map[string]any

// Pods is what is known of the pods of a TrainJob that lives on a snapshot of its runtime.
type Pods struct {
	// Template is the spec of the snapshot's JobSet template, Live that of the runtime as it is,
	// which only some TrainJobs need, see NeedsLive.
	Template, Live Object
	// Drifted tells whether the runtime is other than the snapshot. Otherwise Kueue may only
	// not know yet that it is not.
	Drifted bool
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
//
// Where the runtime has not drifted, Kueue's own view is right, or will be in a moment: nothing
// is shown then but a Workload that is in all of what the JobSet was built from.
func Show(asked []Object, pods Pods) (shown []Object, source string, err error) {
	templates, err := pods.templates()
	if err != nil {
		return nil, "", err
	}
	built := pods.built(asked, templates, false)
	switch {
	case pods.Admitted != nil && pods.fits(asked, templates, built):
		shown, source = pods.Admitted, FromWorkload
	case pods.JobSet != nil && pods.Drifted:
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

// fits tells whether the Workload may stand for what was built.
func (p Pods) fits(asked []Object, templates map[string]Object, built []Object) bool {
	switch {
	case !p.Drifted:
		return p.JobSet != nil && same(p.Admitted, built)
	case p.JobSet == nil || agree(p.Admitted, built):
		return true
	}
	return p.Reserved && (covers(p.Admitted, built) || covers(p.Admitted, p.built(asked, templates, true)))
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
