package kubectl

import (
	"slices"
	"testing"
)

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"nothing":            {"", 10, []string{""}},
		"no width":           {"as  it is", 0, []string{"as  it is"}},
		"fits exactly":       {"one two", 7, []string{"one two"}},
		"one too many":       {"one two", 6, []string{"one", "two"}},
		"a long word":        {"a transformation of", 5, []string{"a", "transformation", "of"}},
		"characters count":   {"für übel", 8, []string{"für übel"}},
		"white space is one": {" a   b ", 9, []string{"a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Wrap(tc.text, tc.width); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
