package list

import (
	"slices"
	"strings"
	"testing"
)

// Lines and notes never take more rows than there are, and notes no more than a third of them.
func TestFit(t *testing.T) {
	lines := []string{"summary", "header", "a", "b", "c", "d", "e"}
	notes := [][]string{{"note one", "goes on"}, {"note two"}, {"note three"}}
	for rows, text := range map[int]string{
		0:  "summary|header|a|b|c|d|e|note one|goes on|note two|note three",
		1:  "",
		2:  "summary",
		3:  "summary|... and 3 more notes",
		4:  "summary|... and 6 more|... and 3 more notes",
		10: "summary|header|a|b|c|... and 2 more|note one|goes on|... and 2 more notes",
		12: "summary|header|a|b|c|d|e|note one|goes on|... and 2 more notes",
		13: "summary|header|a|b|c|d|e|note one|goes on|note two|note three",
	} {
		var want []string
		if text != "" {
			want = strings.Split(text, "|")
		}
		got := fit(slices.Clone(lines), notes, rows)
		if !slices.Equal(got, want) {
			t.Errorf("in %d rows: %q, want %q", rows, got, want)
		}
		if rows > 0 && len(got) > rows-1 {
			t.Errorf("%d lines in %d rows", len(got), rows)
		}
	}
}
