package kubectl

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestEncode(t *testing.T) {
	type object struct {
		Text  string            `json:"text"`
		Names map[string]string `json:"names,omitempty"`
		Count int64             `json:"count,omitempty"`
	}
	for name, tc := range map[string]struct {
		value      object
		json, yaml string
	}{
		"plain": {
			object{Text: "a < b & c", Count: 1 << 60},
			"{\n    \"text\": \"a < b & c\",\n    \"count\": 1152921504606846976\n}\n",
			"count: 1152921504606846976\ntext: a < b & c\n",
		},
		"other languages": {object{Text: "поезд 列車"}, "{\n    \"text\": \"поезд 列車\"\n}\n", "text: поезд 列車\n"},
		"of several lines": {
			object{Text: "a\nb\n"}, "{\n    \"text\": \"a\\nb\\n\"\n}\n", "text: |\n  a\n  b\n",
		},
		"an escape sequence": {object{Text: "\x1b[31mred"}, "{\n    \"text\": \"\\u001b[31mred\"\n}\n", "text: \"\\u001b[31mred\"\n"},
		"DEL and C1":         {object{Text: "a\x7fb\u009b31m"}, "{\n    \"text\": \"a\\u007fb\\u009b31m\"\n}\n", "text: \"a\\u007fb\\u009b31m\"\n"},
		"another direction":  {object{Text: "a\u202eb"}, "{\n    \"text\": \"a\\u202eb\"\n}\n", "text: \"a\\u202eb\"\n"},
		"beyond 16 bits":     {object{Text: "a\U000e0041b"}, "{\n    \"text\": \"a\\udb40\\udc41b\"\n}\n", "text: \"a\\U000e0041b\"\n"},
		"no character":       {object{Text: "a\uffffb"}, "{\n    \"text\": \"a\\uffffb\"\n}\n", "text: \"a\\uffffb\"\n"},
		"in a name": {
			object{Names: map[string]string{"a\u2066": "b"}},
			"{\n    \"text\": \"\",\n    \"names\": {\n        \"a\\u2066\": \"b\"\n    }\n}\n",
			"names:\n  \"a\\u2066\": b\ntext: \"\"\n",
		},
		"a mark": {object{Text: "\x01202e\x01"}, "{\n    \"text\": \"\\u0001202e\\u0001\"\n}\n", "text: \"\\u0001202e\\u0001\"\n"},
		"spelt as a mark": {
			object{Text: `\x01202e\x01`, Names: map[string]string{"a": "\u202e"}},
			"{\n    \"text\": \"\\\\x01202e\\\\x01\",\n    \"names\": {\n        \"a\": \"\\u202e\"\n    }\n}\n",
			"names:\n  a: \"\\u202e\"\ntext: \"\\u005cx01202e\\u005cx01\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for format, want := range map[string]string{OutputJSON: tc.json, OutputYAML: tc.yaml} {
				var out strings.Builder
				if err := Encode(&out, tc.value, format); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, out.String()); diff != "" {
					t.Errorf("%s: -want +got:\n%s", format, diff)
				}
				var back object
				read := json.Unmarshal
				if format == OutputYAML {
					read = func(text []byte, value any) error { return yaml.Unmarshal(text, value) }
				}
				if err := read([]byte(out.String()), &back); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.value, back); diff != "" {
					t.Errorf("what %s reads again: -want +got:\n%s", format, diff)
				}
			}
		})
	}
	if err := Encode(&strings.Builder{}, func() {}, OutputJSON); err == nil {
		t.Error("a function was encoded")
	}
}
