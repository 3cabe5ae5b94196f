package chart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestReadmeListsValues checks the values table: every value with its default, and no other.
func TestReadmeListsValues(t *testing.T) {
	got := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| [^|]+ \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(read(t, "README.md"), -1) {
		var value any
		if err := json.Unmarshal([]byte(match[2]), &value); err != nil {
			// A list that is too long for the table.
			got[match[1]] = match[2]
			continue
		}
		flatten(t, match[1], value, got)
	}
	if diff := cmp.Diff(defaults(t), got); diff != "" {
		t.Errorf("values.yaml and the table in README.md differ (-values.yaml +README.md):\n%s", diff)
	}
}

// TestSchemaCoversValues checks that the schema names the very values that values.yaml has,
// and lets no other name through.
func TestSchemaCoversValues(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	checkClosed(t, "", schema)
	known := walker{t: t, definitions: schema["definitions"].(map[string]any), values: defaults(t)}
	known.walk("", schema)
	// Not a value of this chart: Helm sets it for charts that are dependencies.
	delete(known.values, "global")
	for path := range known.values {
		t.Errorf("values.yaml has %s, the schema does not", path)
	}
}

// checkClosed checks that every part of the schema that lists properties refuses others.
func checkClosed(t *testing.T, path string, schema any) {
	t.Helper()
	switch schema := schema.(type) {
	case []any:
		for _, part := range schema {
			checkClosed(t, path, part)
		}
	case map[string]any:
		if _, listed := schema["properties"].(map[string]any); listed && schema["additionalProperties"] != false {
			t.Errorf("schema at %q: additionalProperties is not false", path)
		}
		for key, part := range schema {
			// Those of a condition are about properties that are listed beside it.
			if key != "if" && key != "then" && key != "else" {
				checkClosed(t, path+"/"+key, part)
			}
		}
	}
}

// walker crosses off values as it meets them in the schema.
type walker struct {
	t           *testing.T
	definitions map[string]any
	values      map[string]string
}

func (w walker) walk(path string, schema map[string]any) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = w.definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	}
	if _, leaf := w.values[path]; leaf {
		delete(w.values, path)
		return
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, part := range properties {
			w.walk(strings.TrimPrefix(path+"."+name, "."), part.(map[string]any))
		}
		return
	}
	// Free names, as those of resources: all values below are covered.
	covered := path == "global"
	for value := range w.values {
		if strings.HasPrefix(value, path+".") && schema["additionalProperties"] != nil {
			delete(w.values, value)
			covered = true
		}
	}
	if !covered {
		w.t.Errorf("the schema has %s, values.yaml does not", path)
	}
}

// defaults returns the path of every value in values.yaml with its default as JSON. Lists
// and empty maps are values; of a list that is not empty the content is left out.
func defaults(t *testing.T) map[string]string {
	t.Helper()
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	flatten(t, "", values, found)
	return found
}

func flatten(t *testing.T, path string, value any, into map[string]string) {
	t.Helper()
	if parts, ok := value.(map[string]any); ok && len(parts) > 0 {
		for name, part := range parts {
			flatten(t, strings.TrimPrefix(path+"."+name, "."), part, into)
		}
		return
	}
	if list, ok := value.([]any); ok && len(list) > 0 {
		into[path] = "[...]"
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	into[path] = string(text)
}

// read returns the content of a file of the chart.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, chart, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
