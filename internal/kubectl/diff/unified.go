package diff

import (
	"bytes"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
)

// side is one side of a comparison.
type side struct {
	// label is what the lines --- and +++ say.
	label string
	// text is YAML; "" for a runtime that is gone.
	text string
}

// document writes what counts of a runtime as YAML: what names it, and its spec as its revision
// sees it. Two documents of one runtime are equal if and only if their revisions are.
func document(source v1alpha1.RuntimeSource, namespace string, spec map[string]any) (string, error) {
	metadata := map[string]any{"name": source.Name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	text, err := snapshot.ToYAML(map[string]any{
		"apiVersion": source.APIVersion,
		"kind":       source.Kind,
		"metadata":   metadata,
		"spec":       snapshot.Canonical(spec),
	})
	if err != nil {
		return "", fmt.Errorf("write %s as YAML: %w", snapshot.Name(source), err)
	}
	return text, nil
}

// unified returns the differences as a unified diff with three lines of context; "" for none.
func unified(before, after side) string {
	text := diff.Diff(before.label, []byte(before.text), after.label, []byte(after.text))
	// Its first line is the command of which this would be the output.
	if _, rest, found := bytes.Cut(text, []byte("\n")); found {
		text = rest
	}
	return string(text)
}
