package kueue

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// built returns the pod sets that Kueue would make of the JobSet: for each replicatedJob as many
// pods as all its Jobs have together. What Trainer adds to containers for its frameworks, and
// Kueue does not know of, is left out.
//
// A Kueue that is built with Trainer before 2.3 takes the resourcesPerNode of a TrainJob in the
// place of what the runtime has, a later one adds them to it, as Trainer 2.3 does. What Kueue asks
// tells which it is, unless both come to the same there; inDoubt is whether it is taken for the
// former then.
func (p Pods) built(asked []Object, templates map[string]Object, inDoubt bool) []Object {
	var out []Object
	for _, entry := range list(child(p.JobSet, "spec"), "replicatedJobs") {
		name := nameOf(entry)
		job := child(entry, "template", "spec")
		parallelism := number(job, "parallelism", 1)
		question := named(asked, name)
		spec := Object{}
		for _, key := range containerLists {
			known := append(list(child(templates[name], "spec"), key), list(child(question, "template", "spec"), key)...)
			put(spec, key, reduce(list(child(job, "template", "spec"), key), known, p.env()))
		}
		if replaces, told := p.replaces(name, question); replaces || !told && inDoubt {
			p.replaceResources(spec)
		}
		out = append(out, Object{
			"name":     name,
			"count":    number(entry, "replicas", 1) * min(parallelism, number(job, "completions", parallelism)),
			"template": Object{"spec": spec},
		})
	}
	return out
}

// perNode are the resources that the TrainJob itself says; nil for none.
func (p Pods) perNode() Object {
	resources := child(p.TrainJob, "spec", "trainer", "resourcesPerNode")
	if len(child(resources, "requests"))+len(child(resources, "limits")) == 0 {
		return nil
	}
	return resources
}

// NeedsLive tells whether the runtime as it is makes a difference.
func (p Pods) NeedsLive() bool { return p.Drifted && p.perNode() != nil }

// replaces tells by what Kueue asks of a pod set whether it takes the resources of the TrainJob in
// the place of those of the runtime, and whether that can be told.
func (p Pods) replaces(name string, asked Object) (replaces, told bool) {
	perNode := p.perNode()
	node := named(list(child(asked, "template", "spec"), "containers"), trainer.NodeContainer)
	switch {
	case perNode == nil:
		return false, true
	case node == nil:
		return false, false
	case !equalResources(child(node, "resources"), perNode):
		return false, true
	}
	live := child(named(list(p.Live, "replicatedJobs"), name), "template", "spec", "template", "spec")
	has := child(named(list(live, "containers"), trainer.NodeContainer), "resources")
	for _, key := range []string{"requests", "limits"} {
		for kind := range child(has, key) {
			if _, said := child(perNode, key)[kind]; !said {
				return true, true
			}
		}
	}
	return false, false
}

// replaceResources gives the container of a node the resources that the TrainJob says.
func (p Pods) replaceResources(spec Object) {
	containers, _ := spec["containers"].([]any)
	for i, container := range containers {
		if container := container.(Object); nameOf(container) == trainer.NodeContainer {
			container = clone(container)
			container["resources"] = p.perNode()
			containers[i] = container
		}
	}
}

// env are the variables that the TrainJob itself sets, or has Trainer set.
func (p Pods) env() []Object {
	spec := child(p.TrainJob, "spec")
	all := []Object{{"name": "STORAGE_URI"}}
	for _, of := range []Object{child(spec, "trainer"), child(spec, "initializer", "dataset"), child(spec, "initializer", "model")} {
		all = append(all, list(of, "env")...)
	}
	return all
}

// reduce returns the containers that are known, each without the entries of its lists that are
// in none of its name; of its variables those of env stay too. It returns nil for no container.
func reduce(containers, known, env []Object) any {
	var out []any
	for _, container := range containers {
		same := allNamed(known, nameOf(container))
		if len(same) == 0 {
			continue
		}
		container = clone(container)
		for field, key := range map[string]string{"env": "name", "ports": "containerPort", "volumeMounts": "mountPath"} {
			var keep []Object
			if field == "env" {
				keep = append(keep, env...)
			}
			for _, other := range same {
				keep = append(keep, list(other, field)...)
			}
			put(container, field, entries(list(container, field), keep, key))
		}
		out = append(out, container)
	}
	if out == nil {
		return nil
	}
	return out
}

// entries returns those of a list that have the key of one to keep; nil for none.
func entries(have, keep []Object, key string) any {
	known := map[string]bool{}
	for _, entry := range keep {
		known[fmt.Sprint(entry[key])] = true
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
