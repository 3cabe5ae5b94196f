// Package guard keeps runtimes from doing harm: no second clock in them, and no edit or
// deletion that breaks what Trainer and Kueue look up in the runtime of an unfinished TrainJob.
//
// A runtime is handled as the JSON that is stored; what is of another type than the rules
// expect, the API server refuses by its schema.
package guard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// What to use instead of a field that is not allowed.
const (
	deadlineText = "must not be set in a runtime: it is a second clock, by which pods end without their TrainJob; use spec.activeDeadlineSeconds of the TrainJob"
	ttlText      = "must not be set in a runtime: it deletes what its TrainJob still counts; set lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished on the runtime"
)

// Clocks returns an error for each field of the runtime's spec that is a clock of its own, with
// its path and value: activeDeadlineSeconds of a Job template, of its pod template or of the
// JobSet template, and ttlSecondsAfterFinished of a Job template or of the JobSet template.
// What is in before, the spec that is stored, is not an error again; it is nil for a new
// runtime.
func Clocks(before, after map[string]any) field.ErrorList {
	old := map[string]any{}
	eachClock(before, func(key string, _ *field.Path, value any, _ string) { old[key] = value })
	var errs field.ErrorList
	eachClock(after, func(key string, path *field.Path, value any, text string) {
		if stored, found := old[key]; !found || !reflect.DeepEqual(stored, value) {
			errs = append(errs, field.Invalid(path, value, text))
		}
	})
	return errs
}

// eachClock calls found for each clock in the spec, with a key that names it whatever the order
// of the replicatedJobs.
func eachClock(spec map[string]any, found func(key string, path *field.Path, value any, text string)) {
	look := func(where string, path *field.Path, object map[string]any, deadline, ttl bool) {
		if value := object["activeDeadlineSeconds"]; value != nil && deadline {
			found(where+" deadline", path.Child("activeDeadlineSeconds"), value, deadlineText)
		}
		if value := object["ttlSecondsAfterFinished"]; value != nil && ttl {
			found(where+" ttl", path.Child("ttlSecondsAfterFinished"), value, ttlText)
		}
	}
	path := field.NewPath("spec", "template", "spec")
	jobSet := child(spec, "template", "spec")
	look("JobSet", path, jobSet, true, true)
	for i, entry := range list(jobSet, "replicatedJobs") {
		name, _ := entry["name"].(string)
		job := path.Child("replicatedJobs").Index(i).Child("template", "spec")
		look("Job "+name, job, child(entry, "template", "spec"), true, true)
		look("pod "+name, job.Child("template", "spec"), child(entry, "template", "spec", "template", "spec"), true, false)
	}
}

// Defaults returns an error for each annotation of a runtime that sets a default of its
// TrainJobs and is not a number of seconds that it may be. What is in before, the annotations
// that are stored, is not an error again; it is nil for a new runtime.
func Defaults(before, after map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, setting := range []struct {
		key   string
		least int64
	}{
		{v1alpha1.AnnotationDefaultActiveDeadlineSeconds, v1alpha1.MinDeadlineSeconds},
		{v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, v1alpha1.MinTTLSeconds},
	} {
		value, found := after[setting.key]
		if stored, was := before[setting.key]; !found || was && stored == value {
			continue
		}
		if _, err := v1alpha1.ParseSeconds(value, setting.least); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(setting.key), value, err.Error()))
		}
	}
	return errs
}

// Needs are what unfinished TrainJobs need of their runtime beside its replicatedJobs and
// containers.
type Needs struct {
	// Dataset and Model tell whether one has a dataset or a model fetched by an initializer.
	Dataset, Model bool
}

// Breaks returns an error for each difference between the stored spec of a runtime and the new
// one that makes Trainer or Kueue fail on the TrainJobs that refer to it: a replicatedJob that
// comes, goes or has another number of replicas, a container or initContainer that goes, and a
// volume mount that goes and an initializer needs.
func Breaks(before, after map[string]any, needs Needs) field.ErrorList {
	path := field.NewPath("spec", "template", "spec", "replicatedJobs")
	old, now := jobsOf(before), jobsOf(after)
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(old)) {
		is, found := now[name]
		if !found {
			errs = append(errs, field.Forbidden(path.Key(name), "cannot be removed or renamed"))
			continue
		}
		was := old[name]
		if was.replicas != is.replicas {
			errs = append(errs, field.Forbidden(path.Key(name).Child("replicas"), fmt.Sprintf("cannot be changed from %d to %d", was.replicas, is.replicas)))
		}
		pod := path.Key(name).Child("template", "spec", "template", "spec")
		for _, kind := range []string{"containers", "initContainers"} {
			for _, container := range slices.Sorted(maps.Keys(was.containers[kind])) {
				if _, found := is.containers[kind][container]; !found {
					errs = append(errs, field.Forbidden(pod.Child(kind).Key(container), "cannot be removed or renamed"))
				}
			}
		}
		needed := name == trainer.DatasetInitializer && needs.Dataset || name == trainer.ModelInitializer && needs.Model
		container, found := is.containers["containers"][name]
		if needed && found && mounts(was.containers["containers"][name]) && !mounts(container) {
			errs = append(errs, field.Forbidden(pod.Child("containers").Key(name).Child("volumeMounts").Key(trainer.InitializerVolume), "cannot be removed"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, found := old[name]; !found {
			errs = append(errs, field.Forbidden(path.Key(name), "cannot be added"))
		}
	}
	return errs
}

// replicatedJob is what the neighbours look up of a replicatedJob.
type replicatedJob struct {
	replicas int64
	// containers by list and name.
	containers map[string]map[string]map[string]any
}

func jobsOf(spec map[string]any) map[string]replicatedJob {
	jobs := map[string]replicatedJob{}
	for _, entry := range list(child(spec, "template", "spec"), "replicatedJobs") {
		name, _ := entry["name"].(string)
		job := replicatedJob{replicas: 1, containers: map[string]map[string]map[string]any{}}
		if replicas, ok := entry["replicas"].(int64); ok {
			job.replicas = replicas
		}
		pod := child(entry, "template", "spec", "template", "spec")
		for _, kind := range []string{"containers", "initContainers"} {
			job.containers[kind] = map[string]map[string]any{}
			for _, container := range list(pod, kind) {
				name, _ := container["name"].(string)
				job.containers[kind][name] = container
			}
		}
		jobs[name] = job
	}
	return jobs
}

// mounts tells whether the container has the volume mount that an initializer writes to.
func mounts(container map[string]any) bool {
	return slices.ContainsFunc(list(container, "volumeMounts"), func(mount map[string]any) bool {
		return mount["name"] == trainer.InitializerVolume
	})
}

// child returns the object at the path; nil when there is none.
func child(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// list returns the objects of a list.
func list(object map[string]any, key string) []map[string]any {
	entries, _ := object[key].([]any)
	objects := make([]map[string]any, len(entries))
	for i, entry := range entries {
		objects[i], _ = entry.(map[string]any)
	}
	return objects
}
