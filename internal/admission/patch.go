package admission

import (
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// annotationPatch returns the smallest JSON patch that gives each annotation in want its
// value, "" for absent, and leaves all others alone. Operations are in the order of keys.
func annotationPatch(have, want map[string]string) []jsonpatch.Operation {
	var patch []jsonpatch.Operation
	if have == nil {
		// There is no map yet to add a key to: it comes whole.
		missing := maps.Clone(want)
		maps.DeleteFunc(missing, func(_, value string) bool { return value == "" })
		if len(missing) > 0 {
			patch = append(patch, jsonpatch.NewOperation("add", "/metadata/annotations", missing))
		}
		return patch
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, found := have[key]
		path := "/metadata/annotations/" + pointerToken.Replace(key)
		switch {
		case want[key] == "" && found:
			patch = append(patch, jsonpatch.NewOperation("remove", path, nil))
		case want[key] != "" && !found:
			patch = append(patch, jsonpatch.NewOperation("add", path, want[key]))
		case want[key] != value:
			patch = append(patch, jsonpatch.NewOperation("replace", path, want[key]))
		}
	}
	return patch
}

// pointerToken escapes a key for use in a JSON pointer (RFC 6901).
var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")
