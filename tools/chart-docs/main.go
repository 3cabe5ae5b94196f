// Command chart-docs writes the table of values into the README of a chart: a row for each
// value that has a comment in values.yaml, with its default, and what values.schema.json takes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// What stands before and after the table in the README.
const (
	begin = "<!-- The table is made from values.yaml and values.schema.json by `make generate`. -->\n"
	end   = "<!-- End of the table. -->\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart-docs CHART")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "chart-docs:", err)
		os.Exit(1)
	}
}

// run writes the README of the chart in a folder anew.
func run(chart string) error {
	var texts [3]string
	for i, name := range []string{"values.yaml", "values.schema.json", "README.md"} {
		content, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			return err
		}
		texts[i] = string(content)
	}
	table, err := makeTable(texts[0], texts[1])
	if err != nil {
		return err
	}
	readme, err := replace(texts[2], table)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(chart, "README.md"), []byte(readme), 0o644)
}

// replace puts the table between the marks of a README.
func replace(readme, table string) (string, error) {
	before, rest, found := strings.Cut(readme, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", errors.New("the README has no marks around its table of values")
	}
	return before + begin + "\n" + table + "\n" + end + after, nil
}

// row is a value that has a comment.
type row struct {
	// path is the name of the value, of the names above it and its own.
	path    []string
	comment string
}

func makeTable(values, schema string) (string, error) {
	var tree, shape map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &tree); err != nil {
		return "", fmt.Errorf("values.yaml: %w", err)
	}
	if err := json.Unmarshal([]byte(schema), &shape); err != nil {
		return "", fmt.Errorf("values.schema.json: %w", err)
	}
	rows := rowsOf(values, tree)
	if err := checkComplete(nil, tree, rows); err != nil {
		return "", err
	}
	table := &strings.Builder{}
	table.WriteString("| Value | Default | Takes | Meaning |\n|---|---|---|---|\n")
	definitions, _ := shape["definitions"].(map[string]any)
	for _, r := range rows {
		value, _ := lookup(tree, r.path)
		name := strings.Join(r.path, ".")
		part := at(shape, definitions, r.path)
		if part == nil {
			return "", fmt.Errorf("the schema does not have %s", name)
		}
		written, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		if list, ok := value.([]any); ok && len(list) > 0 && len(written) > 40 {
			written = []byte("[...]")
		}
		fmt.Fprintf(table, "| `%s` | `%s` | %s | %s |\n", name, written, takes(part, definitions),
			strings.ReplaceAll(r.comment, "|", `\|`))
	}
	return table.String(), nil
}

var keyLine = regexp.MustCompile(`^( *)([A-Za-z_]+):`)

// rowsOf finds the comments in values.yaml, which is indented by two spaces: those that stand
// right above a name. Names inside of lists are not values of the chart.
func rowsOf(values string, tree map[string]any) []row {
	var rows []row
	var path, comment []string
	for line := range strings.Lines(values) {
		line = strings.TrimRight(line, "\n")
		if text, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "#"); ok {
			comment = append(comment, strings.TrimSpace(text))
			continue
		}
		if match := keyLine.FindStringSubmatch(line); match != nil {
			depth := len(match[1]) / 2
			path = append(path[:min(depth, len(path)):min(depth, len(path))], match[2])
			if _, found := lookup(tree, path); found && len(path) == depth+1 && len(comment) > 0 {
				rows = append(rows, row{path: path, comment: strings.Join(comment, " ")})
			}
		}
		comment = nil
	}
	return rows
}

// checkComplete checks that every value that holds no other has a comment, or is part of one
// that has.
func checkComplete(path []string, value any, rows []row) error {
	for _, r := range rows {
		if len(path) > 0 && strings.Join(r.path, ".") == strings.Join(path, ".") {
			return nil
		}
	}
	parts, ok := value.(map[string]any)
	if !ok || len(parts) == 0 {
		return fmt.Errorf("%s has no comment in values.yaml", strings.Join(path, "."))
	}
	for name, part := range parts {
		if err := checkComplete(append(path[:len(path):len(path)], name), part, rows); err != nil {
			return err
		}
	}
	return nil
}

// lookup returns the value at a path.
func lookup(tree any, path []string) (any, bool) {
	for _, name := range path {
		parts, ok := tree.(map[string]any)
		if !ok {
			return nil, false
		}
		if tree, ok = parts[name]; !ok {
			return nil, false
		}
	}
	return tree, true
}

// at returns the part of the schema that is about a path; nil for none.
func at(schema, definitions map[string]any, path []string) map[string]any {
	for _, name := range path {
		properties, _ := resolve(schema, definitions)["properties"].(map[string]any)
		schema, _ = properties[name].(map[string]any)
	}
	if schema == nil {
		return nil
	}
	return resolve(schema, definitions)
}

// resolve follows a reference to a definition.
func resolve(schema, definitions map[string]any) map[string]any {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return schema
	}
	definition, _ := definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	return definition
}

// takes says in words what a part of the schema takes.
func takes(schema, definitions map[string]any) string {
	if allowed, ok := schema["enum"].([]any); ok {
		var names []string
		for _, value := range allowed {
			text, _ := json.Marshal(value)
			names = append(names, "`"+string(text)+"`")
		}
		return strings.Join(names, ", ")
	}
	least, hasLeast := schema["minimum"]
	most, hasMost := schema["maximum"]
	switch kind := fmt.Sprint(schema["type"]); {
	case kind == "integer" && hasLeast && hasMost:
		return fmt.Sprintf("integer, %v to %v", least, most)
	case kind == "integer" && hasLeast:
		return fmt.Sprintf("integer, at least %v", least)
	case kind == "boolean":
		return "`true`, `false`"
	case kind == "array":
		items, _ := schema["items"].(map[string]any)
		switch of := takes(resolve(items, definitions), definitions); of {
		case "string", "integer", "object":
			return "list of " + of + "s"
		default:
			return "list of " + strings.Replace(of, "integer", "integers", 1)
		}
	case kind == "object" && schema["properties"] == nil:
		return "map of strings"
	default:
		return kind
	}
}
