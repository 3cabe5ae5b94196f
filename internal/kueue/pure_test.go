package kueue

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// What is shown must follow from its arguments alone: no client, context, logger or clock.
func TestPureFiles(t *testing.T) {
	allowed := []string{
		"fmt", "maps", "reflect", "slices", "time",
		"gomodules.xyz/jsonpatch/v2",
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/api/equality",
		"k8s.io/apimachinery/pkg/api/meta",
		"k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
		"k8s.io/apimachinery/pkg/runtime",
		"k8s.io/apimachinery/pkg/util/strategicpatch",
		"github.com/signalbox-dev/signalbox/api/v1alpha1",
		"github.com/signalbox-dev/signalbox/internal/trainer",
	}
	for _, name := range []string{"podsets.go", "json.go", "workload.go"} {
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
