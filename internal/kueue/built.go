package kueue

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// built returns the pod sets that Kueue would make of the JobSet: for each replicatedJob as many
// pods as all its Jobs have together. What Trainer adds to containers for its frameworks, and
// Kueue does not know of, is left out.
func (p Pods) built(asked []Object, templates map[string]Object) []Object {
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
		if perNode := p.perNode(); perNode != nil && (p.trains(name) && !p.adds(question) || name == trainer.NodeContainer && p.asksPerNode(question)) {
			replaceResources(spec, perNode)
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

// adds tells whether Kueue asks for what the TrainJob itself says of the resources of a node, and
// for more. A Kueue that is built with Trainer before 2.3, as all up to 0.19 are, takes those in the
// place of what the runtime has. A later one adds them, as Trainer 2.3 does, which shows wherever
// the runtime has any besides. One answer tells nothing of the next: who may edit a runtime could
// have another TrainJob taken for what it is not.
func (p Pods) adds(asked Object) bool {
	perNode, has := p.perNode(), child(nodeOf(asked), "resources")
	said, more := Object{}, false
	for _, key := range []string{"requests", "limits"} {
		part := Object{}
		for kind, quantity := range child(has, key) {
			if _, ours := child(perNode, key)[kind]; ours {
				part[kind] = quantity
			} else {
				more = true
			}
		}
		said[key] = part
	}
	return more && equalResources(said, perNode)
}

// nodeOf returns the container of a pod set that trains; nil when it has none.
func nodeOf(podSet Object) Object {
	return named(list(child(podSet, "template", "spec"), "containers"), trainer.NodeContainer)
}

// asksPerNode tells whether a pod set is of the resources that the TrainJob itself says. With MPI
// the replicatedJob of that name may be, which is not the one that trains.
func (p Pods) asksPerNode(podSet Object) bool {
	return equalResources(child(nodeOf(podSet), "resources"), p.perNode())
}

// trains tells whether a replicatedJob is the one that trains, of whose container the TrainJob
// sets the resources.
func (p Pods) trains(name string) bool {
	job := named(list(p.Template, "replicatedJobs"), name)
	return child(job, "template", "metadata", "labels")[trainer.LabelAncestor] == trainer.AncestorTrainer
}

// replaceResources gives the container of a node these resources.
func replaceResources(spec, resources Object) {
	containers, _ := spec["containers"].([]any)
	for i, container := range containers {
		if container := container.(Object); nameOf(container) == trainer.NodeContainer && !equalResources(child(container, "resources"), resources) {
			container = clone(container)
			container["resources"] = resources
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
