package kueue

import "maps"

// clone returns an object that is not shared, with fields that are.
func clone(object Object) Object {
	out := make(Object, len(object)+1)
	maps.Copy(out, object)
	return out
}

// put sets a field, or removes it when there is no value.
func put(object Object, key string, value any) {
	if value == nil {
		delete(object, key)
		return
	}
	object[key] = value
}

// child returns the object at the path; nil when there is none.
func child(object Object, path ...string) Object {
	for _, key := range path {
		object, _ = object[key].(Object)
	}
	return object
}

// list returns the objects of a list; what is none stands there as nil.
func list(object Object, key string) []Object {
	entries, _ := object[key].([]any)
	objects := make([]Object, len(entries))
	for i, entry := range entries {
		objects[i], _ = entry.(Object)
	}
	return objects
}

// named returns the first object of a list that has the name; nil when none has.
func named(objects []Object, name string) Object {
	for _, object := range allNamed(objects, name) {
		return object
	}
	return nil
}

// allNamed returns the objects of a list that have the name.
func allNamed(objects []Object, name string) []Object {
	var out []Object
	for _, object := range objects {
		if nameOf(object) == name {
			out = append(out, object)
		}
	}
	return out
}

// nameOf returns the name of a pod set, a replicatedJob or a container.
func nameOf(object Object) string {
	name, _ := object["name"].(string)
	return name
}

// number returns a whole number.
func number(object Object, key string, otherwise int64) int64 {
	if value, ok := object[key].(int64); ok {
		return value
	}
	return otherwise
}
