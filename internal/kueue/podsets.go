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
	// Template is the spec of the snapshot's JobSet template.
	Template Object
	// Drifted tells whether the runtime is other than the snapshot. Otherwise Kueue may only
	// not know yet that it is not.
	Drifted bool
	// TrainJob is the TrainJob as it is stored.
	TrainJob Object
	// JobSet is the JobSet that was built from the snapshot; nil when there is none.
	JobSet Object
	// Workload are the pod sets of the Workload that Kueue has for the TrainJob, waiting or not;
	// nil when there is none that may stand without a JobSet to compare it with.
	Workload []Object
	// HasQuota tells whether that Workload has quota.
	HasQuota bool
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
	built := pods.built(asked, templates)
	switch {
	case pods.Workload != nil && pods.fits(built):
		shown, source = pods.Workload, FromWorkload
	case pods.JobSet != nil && pods.Drifted:
		shown, source = built, FromJobSet
	default:
		return nil, "", nil
	}
	out := make([]Object, 0, len(shown))
	for _, podSet := range shown {
		name := nameOf(podSet)
		podSet = compose(podSet, templates[name])
		for _, from := range []Object{named(pods.Workload, name), named(asked, name)} {
			if podSet["topologyRequest"] == nil {
				put(podSet, "topologyRequest", from["topologyRequest"])
			}
		}
		out = append(out, podSet)
	}
	return out, source, nil
}

// fits tells whether the Workload may stand for what was built.
func (p Pods) fits(built []Object) bool {
	if !p.Drifted {
		return p.JobSet != nil && same(p.Workload, built)
	}
	return p.JobSet == nil || agree(p.Workload, built) || p.HasQuota && covers(p.Workload, built)
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

// compose returns a pod set with its containers, and what else there is of its pods from the
// template of the snapshot, where that has it.
func compose(podSet, template Object) Object {
	podSet = clone(podSet)
	if template == nil {
		return podSet
	}
	spec := clone(child(template, "spec"))
	for _, key := range containerLists {
		put(spec, key, child(podSet, "template", "spec")[key])
	}
	template = clone(template)
	template["spec"] = spec
	podSet["template"] = template
	return podSet
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
