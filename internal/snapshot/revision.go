package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// Revision identifies the content of a runtime's spec: the first 16 hexadecimal digits of the
// SHA-256 of its canonical JSON. The value must be as JSON decodes into any, with whole
// numbers as int64 or float64.
//
// Canonical are sorted keys, no white space, and none of what Trainer's own types add, drop or
// rewrite when a runtime passes through them, which changes nothing that runs: nulls, the
// template's annotations for revision and source, and in the JobSet template empty lists, the empty
// objects of embedded structs ("resources": {}), zero values that are the same as absence, and
// the spelling of quantities. All else counts: an empty object that is a choice, such as
// "torch": {} or "emptyDir": {}, and every field that these sources do not know.
func Revision(spec map[string]any) string {
	sum := sha256.Sum256(encode(Canonical(spec)))
	return hex.EncodeToString(sum[:8])
}

// Canonical returns what of a runtime's spec counts for its revision: two are equal if and only if
// their revisions are. It may share parts with the spec, so that neither must be changed.
func Canonical(spec map[string]any) map[string]any {
	canonical := make(map[string]any, len(spec))
	for key, value := range spec {
		if key == "template" {
			value = withoutOwn(value)
		}
		if value, found := reduce(key, value, spec, key == "template"); found {
			canonical[key] = value
		}
	}
	return canonical
}

// withoutOwn returns the JobSet template without the annotations that say what it is.
func withoutOwn(template any) any {
	annotations := annotationsOf(template)
	_, revision := annotations[v1alpha1.AnnotationRuntimeRevision]
	_, source := annotations[v1alpha1.AnnotationRuntimeSource]
	if !revision && !source {
		return template
	}
	rest := clone(annotations)
	delete(rest, v1alpha1.AnnotationRuntimeRevision)
	delete(rest, v1alpha1.AnnotationRuntimeSource)
	return withAnnotations(template.(map[string]any), rest)
}

// annotationsOf returns the annotations of a JobSet template; nil when it has none.
func annotationsOf(template any) map[string]any {
	object, _ := template.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// withAnnotations returns the JobSet template with these annotations for its own, and leaves
// the one that it is given as it is.
func withAnnotations(template, annotations map[string]any) map[string]any {
	metadata, _ := template["metadata"].(map[string]any)
	metadata = clone(metadata)
	metadata["annotations"] = annotations
	template = clone(template)
	template["metadata"] = metadata
	return template
}

// clone copies the outermost map; of nil it makes an empty one.
func clone(object map[string]any) map[string]any {
	out := make(map[string]any, len(object)+1)
	for key, value := range object {
		out[key] = value
	}
	return out
}

// Keys of the JobSet template whose value is an embedded struct, so that an empty one is the
// same as none.
var emptyIsAbsent = []string{"metadata", "spec", "template", "status"}

// Keys of the JobSet template whose value is a map with keys of the user's. What is in it
// counts as it is; an empty one is the same as none.
var freeMaps = []string{"labels", "annotations", "matchLabels", "nodeSelector", "options", "volumeAttributes", "userAnnotations"}

// Keys of the JobSet template whose value is a map of quantities, and those whose value is one.
var (
	quantities = []string{"limits", "requests", "overhead", "capacity", "allocatedResources"}
	quantity   = []string{"sizeLimit", "divisor"}
)

// Keys of the JobSet template whose zero value is the same as absence, by its type: those of
// fields that are no pointers anywhere, and left out when they are zero.
var (
	falseIsAbsent = []string{
		"chapAuthDiscovery", "chapAuthSession", "hostIPC", "hostNetwork", "hostPID", "readOnly", "sslEnabled", "stdin", "stdinOnce", "tty",
	}
	emptyTextIsAbsent = []string{
		"dnsPolicy", "effect", "groupName", "host", "hostIP", "hostname", "image", "imagePullPolicy", "medium", "nodeName", "operator",
		"prefix", "priorityClassName", "protocol", "pullPolicy", "reference", "restartStrategy", "schedulerName", "scheme", "secretName",
		"serviceAccount", "serviceAccountName", "subPath", "subPathExpr", "subdomain", "terminationMessagePath",
		"terminationMessagePolicy", "user", "volumeName", "workingDir",
	}
	zeroIsAbsent = []string{
		"failureThreshold", "hostPort", "initialDelaySeconds", "maxRestarts", "partition", "periodSeconds", "successThreshold", "timeoutSeconds",
	}
)

// reduce brings a value to its canonical form, without changing the one it is given. It
// returns false when the value is the same as none. Inside the JobSet template, whose types
// are known, more is reduced than outside.
func reduce(key string, value any, parent map[string]any, template bool) (any, bool) {
	switch value := value.(type) {
	case nil:
		return nil, false
	case map[string]any:
		switch {
		case template && slices.Contains(quantities, key):
			return reduceQuantities(value)
		case template && slices.Contains(freeMaps, key):
			value = maps.Clone(value)
			maps.DeleteFunc(value, func(_ string, v any) bool { return v == nil })
			return value, len(value) > 0
		}
		out := make(map[string]any, len(value))
		for k, v := range value {
			if reduced, found := reduce(k, v, value, template); found {
				out[k] = reduced
			}
		}
		if len(out) == 0 && template && absentWhenEmpty(key, parent) {
			return nil, false
		}
		return out, true
	case []any:
		if len(value) == 0 && template {
			return nil, false
		}
		out := make([]any, len(value))
		for i, v := range value {
			out[i], _ = reduce("", v, nil, template)
		}
		return out, true
	case bool:
		return value, value || !template || !slices.Contains(falseIsAbsent, key)
	case string:
		// The value of an environment variable or a toleration, next to its name or key.
		_, named := parent["name"]
		_, keyed := parent["key"]
		if value == "" && template && (slices.Contains(emptyTextIsAbsent, key) || key == "value" && (named || keyed)) {
			return nil, false
		}
	case int64:
		if value == 0 && template && slices.Contains(zeroIsAbsent, key) {
			return nil, false
		}
	}
	if template && slices.Contains(quantity, key) {
		value = reduceQuantity(value)
		return value, key != "divisor" || value != "0"
	}
	return value, true
}

// absentWhenEmpty tells whether the object at this key is the same as none when it is empty.
// The resources of a container or a volume claim are; those of a pod are a choice.
func absentWhenEmpty(key string, parent map[string]any) bool {
	if key == "resources" {
		_, pod := parent["containers"]
		return !pod
	}
	return slices.Contains(emptyIsAbsent, key)
}

func reduceQuantities(values map[string]any) (any, bool) {
	out := make(map[string]any, len(values))
	for name, value := range values {
		if value != nil {
			out[name] = reduceQuantity(value)
		}
	}
	return out, len(out) > 0
}

// reduceQuantity spells a quantity as its type does; what is none stays as it is.
func reduceQuantity(value any) any {
	switch value.(type) {
	case string, int64, float64:
	default:
		return value
	}
	parsed, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return value
	}
	return parsed.String()
}

// encode writes JSON with sorted keys and nothing escaped that need not be. The value comes
// from JSON, so it can be written.
func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("encode JSON: %v", err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
