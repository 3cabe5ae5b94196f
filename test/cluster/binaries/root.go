package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/mod/modfile"
)

const rootModule = "github.com/signalbox-dev/signalbox"

// Root returns the folder that holds the go.mod of this project. It walks up
// from the working directory and then from this source file, so that it works
// for `go test` and `go run` alike and wherever the project was put.
func Root() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	for _, dir := range starts {
		for {
			if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && modfile.ModulePath(data) == rootModule {
				return dir, nil
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return "", errors.New("no go.mod of " + rootModule + " above the working directory or the source files")
}
