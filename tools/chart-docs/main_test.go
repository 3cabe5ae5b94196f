package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const schema = `{"properties": {
	"mode": {"enum": ["", "Fail"]}, "log": {"properties": {"level": {"type": "string"}}}, "count": {"$ref": "#/definitions/count"},
	"names": {"type": "array", "items": {"type": "string"}}, "resources": {"type": "object"}
}, "definitions": {"count": {"type": "integer", "minimum": 1, "maximum": 9}}}`

const values = `# Values.

# One
# of two | three.
mode: ""
log:
  # How much.
  level: info
# How many.
count: 2
# The names.
names:
  # Not a value.
  - name: a
    other: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
# What it asks for.
resources:
  requests:
    cpu: 1
`

func TestTable(t *testing.T) {
	got, err := makeTable(values, schema)
	if err != nil {
		t.Fatal(err)
	}
	want := "| Value | Default | Takes | Meaning |\n|---|---|---|---|\n" +
		"| `mode` | `\"\"` | `\"\"`, `\"Fail\"` | One of two \\| three. |\n" +
		"| `log.level` | `\"info\"` | string | How much. |\n" +
		"| `count` | `2` | integer, 1 to 9 | How many. |\n" +
		"| `names` | `[...]` | list of strings | The names. |\n" +
		"| `resources` | `{\"requests\":{\"cpu\":1}}` | map of strings | What it asks for. |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ values, want string }{
		"a value without a comment":            {strings.Replace(values, "# How many.\n", "", 1), "count has no comment in values.yaml"},
		"a value in a group without a comment": {strings.Replace(values, "  # How much.\n", "", 1), "log.level has no comment in values.yaml"},
		"a comment that stands apart":          {strings.Replace(values, "# How many.\n", "# How many.\n\n", 1), "count has no comment in values.yaml"},
		"a value that the schema lacks":        {values + "# New.\nnew: 1\n", "the schema does not have new"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := makeTable(tc.values, schema); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	got, err := replace("before\n"+begin+"old\n"+end+"after\n", "new\n")
	if want := "before\n" + begin + "\nnew\n\n" + end + "after\n"; err != nil || got != want {
		t.Errorf("README %q, error %v; want %q", got, err, want)
	}
	if _, err := replace("before\n"+begin, "new\n"); err == nil {
		t.Error("a README without the mark at the end: no error")
	}
}
