package admission

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/signalbox-dev/signalbox/internal/kueue"
)

// annotationPatch returns the smallest JSON patch that gives each annotation in want its
// value, nil for absent, and leaves all others alone. Operations are in the order of keys.
func annotationPatch(have map[string]string, want map[string]*string) []jsonpatch.Operation {
	var patch []jsonpatch.Operation
	if have == nil {
		// There is no map yet to add a key to: it comes whole.
		missing := map[string]string{}
		for key, value := range want {
			if value != nil {
				missing[key] = *value
			}
		}
		if len(missing) > 0 {
			patch = append(patch, jsonpatch.NewOperation("add", "/metadata/annotations", missing))
		}
		return patch
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, found := have[key]
		path := "/metadata/annotations/" + pointerToken.Replace(key)
		switch {
		case want[key] == nil && found:
			patch = append(patch, jsonpatch.NewOperation("remove", path, nil))
		case want[key] != nil && !found:
			patch = append(patch, jsonpatch.NewOperation("add", path, *want[key]))
		case want[key] != nil && *want[key] != value:
			patch = append(patch, jsonpatch.NewOperation("replace", path, *want[key]))
		}
	}
	return patch
}

// specPatch returns the JSON patch that gives spec.activeDeadlineSeconds of the object the
// value want, nil for absent. An object without a spec, which no API server stores, is left
// alone: there is nothing to patch into.
func specPatch(object decoded, want *int64) []jsonpatch.Operation {
	const path = "/spec/activeDeadlineSeconds"
	switch have := object.Spec.ActiveDeadlineSeconds; {
	case want == nil && have == nil, want != nil && have != nil && *want == *have:
		return nil
	case want == nil:
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", path, nil)}
	case !object.hasSpec:
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, *want)}
}

// kueueTwice returns the JSON patch that takes out the entries of runtimePatches that Kueue has
// added once more: called twice for one creation, since a webhook after it has changed the
// TrainJob, it appends its entry again, and the API refuses the duplicate.
func kueueTwice(runtimePatches stdjson.RawMessage) []jsonpatch.Operation {
	var entries []map[string]any
	if err := decodePart(runtimePatches, &entries); err != nil {
		// The API server refuses it.
		return nil
	}
	var patch []jsonpatch.Operation
	var first map[string]any
	for i, entry := range entries {
		if entry["manager"] != kueue.PatchManager {
			continue
		}
		// Trainer's own webhook dates the entries that it sees.
		delete(entry, "time")
		switch {
		case first == nil:
			first = entry
		case reflect.DeepEqual(first, entry):
			// An entry goes to the place of the one before it that went.
			path := fmt.Sprintf("/spec/runtimePatches/%d", i-len(patch))
			patch = append(patch, jsonpatch.NewOperation("remove", path, nil))
		}
	}
	return patch
}

// pointerToken escapes a key for use in a JSON pointer (RFC 6901).
var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")
