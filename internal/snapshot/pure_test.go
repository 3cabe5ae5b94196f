package snapshot

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// What is sealed must follow from its arguments alone: no client, context, logger or clock.
func TestPureFiles(t *testing.T) {
	allowed := []string{
		"bytes", "compress/gzip", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json",
		"errors", "fmt", "maps", "io", "slices", "strings", "time",
		"k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/types",
		"k8s.io/apimachinery/pkg/util/json",
		"sigs.k8s.io/yaml",
		"github.com/signalbox-dev/signalbox/api/v1alpha1",
		"github.com/signalbox-dev/signalbox/internal/trainer",
	}
	for _, name := range []string{"seal.go", "snapshot.go", "revision.go"} {
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
