package kueue

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// containerLists are the lists of containers of a pod.
var containerLists = []string{"containers", "initContainers"}

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

// weights returns the weights of the containers of a pod set by their names.
func weights(podSet Object, key string) map[string]weight {
	out := map[string]weight{}
	for _, container := range list(child(podSet, "template", "spec"), key) {
		out[nameOf(container)] = weigh(container)
	}
	return out
}

// weigh reads a container. Of what is stored, these fields have their types.
func weigh(container Object) (w weight) {
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(container, &w)
	return w
}

// equalResources tells whether two resources of containers are of the same quantities.
func equalResources(a, b Object) bool {
	x, y := weigh(Object{"resources": a}).Resources, weigh(Object{"resources": b}).Resources
	return equality.Semantic.DeepEqual(x.Requests, y.Requests) && equality.Semantic.DeepEqual(x.Limits, y.Limits)
}

// alike tells whether two lists are of pod sets of the same names and counts, and whose lists of
// containers are equal.
func alike(a, b []Object, equal func(a, b Object, key string) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if nameOf(a[i]) != nameOf(b[i]) || number(a[i], "count", 1) != number(b[i], "count", 1) {
			return false
		}
		for _, key := range containerLists {
			if !equal(a[i], b[i], key) {
				return false
			}
		}
	}
	return true
}

// same tells whether two lists of pod sets are of as many pods with the same containers, as
// Kueue compares them.
func same(a, b []Object) bool {
	return alike(a, b, func(a, b Object, key string) bool {
		return equality.Semantic.DeepEqual(containersOf(a, key), containersOf(b, key))
	})
}

// containersOf reads the containers of a pod set.
func containersOf(podSet Object, key string) []corev1.Container {
	var out []corev1.Container
	for _, container := range list(child(podSet, "template", "spec"), key) {
		var c corev1.Container
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(container, &c)
		out = append(out, c)
	}
	return out
}

// agree tells whether two lists of pod sets are of as many pods, of the same images and
// resources.
func agree(a, b []Object) bool {
	return alike(a, b, func(a, b Object, key string) bool {
		return equality.Semantic.DeepEqual(weights(a, key), weights(b, key))
	})
}

// covers tells whether the pod sets of a Workload are of as many pods and resources, at least, as
// those that were built.
func covers(workload, built []Object) bool {
	for _, podSet := range built {
		has := named(workload, nameOf(podSet))
		if has == nil || number(has, "count", 1) < number(podSet, "count", 1) {
			return false
		}
		for _, key := range containerLists {
			have := weights(has, key)
			for name, need := range weights(podSet, key) {
				if !have[name].covers(need) {
					return false
				}
			}
		}
	}
	return true
}

// covers tells whether a container takes at least as much as another. One that goes on running
// takes its own beside the others.
func (w weight) covers(need weight) bool {
	if len(need.Resources.Claims) > 0 && !equality.Semantic.DeepEqual(w.Resources.Claims, need.Resources.Claims) {
		return false
	}
	for _, list := range []corev1.ResourceList{need.Resources.Requests, need.Resources.Limits} {
		for kind := range list {
			has, needs := w.takes(kind), need.takes(kind)
			if has.Cmp(needs) < 0 || w.RestartPolicy != need.RestartPolicy {
				return false
			}
		}
	}
	return true
}
