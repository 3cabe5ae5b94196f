package figures

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// fileName is what a bench and a plot may be called: files have their names.
var fileName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Write writes NAME.json and NAME.md into a folder, which it makes where it is missing. The page
// shows the plots as NAME-PLOT.svg, which tools/plot draws. Each file is replaced as a whole, or
// stays as it was.
func (r *Report) Write(folder string) error {
	if err := r.checkNames(); err != nil {
		return err
	}
	content := &bytes.Buffer{}
	encoder := json.NewEncoder(content)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the figures of %s: %w", r.Name, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(
		replace(filepath.Join(folder, r.Name+".json"), content.Bytes()),
		replace(filepath.Join(folder, r.Name+".md"), r.markdown()))
}

// checkNames checks that all files of the report have proper names, no two the same.
func (r *Report) checkNames() error {
	if !fileName.MatchString(r.Name) {
		return fmt.Errorf("%q is no name for a bench: lower case, digits and dashes", r.Name)
	}
	seen := map[string]bool{}
	for _, plot := range r.Plots {
		if !fileName.MatchString(plot.Name) {
			return fmt.Errorf("%q is no name for a plot of %s: lower case, digits and dashes", plot.Name, r.Name)
		}
		if seen[plot.Name] {
			return fmt.Errorf("two plots of %s have the name %q", r.Name, plot.Name)
		}
		seen[plot.Name] = true
	}
	return nil
}

// replace puts a new file in the place of an old one at once.
func replace(path string, content []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
