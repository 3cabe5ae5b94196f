package deadline

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// What decides must follow from its arguments alone: no client, context, logger or clock.
func TestPureFiles(t *testing.T) {
	allowed := []string{
		"fmt", "slices", "strconv", "time",
		"k8s.io/apimachinery/pkg/api/equality",
		"k8s.io/apimachinery/pkg/util/validation/field",
		"k8s.io/apimachinery/pkg/api/meta",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"github.com/signalbox-dev/signalbox/api/v1alpha1",
		"github.com/signalbox-dev/signalbox/internal/trainer",
	}
	for _, name := range []string{"deadline.go", "stamp.go", "validate.go", "terminal.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}
