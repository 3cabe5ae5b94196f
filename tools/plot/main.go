// Command plot draws the plots of reports that test/bench has written: for each NAME.json of a
// folder, NAME-PLOT.svg for each of its plots.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// report is what is drawn of a report: see test/bench/figures.
type report struct {
	Name  string    `json:"name"`
	Plots []drawing `json:"plots"`
}

// drawing is a plot of lines.
type drawing struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	X      string `json:"x"`
	Y      string `json:"y"`
	LogX   bool   `json:"logX"`
	LogY   bool   `json:"logY"`
	Series []line `json:"series"`
}

// line is a line of a plot.
type line struct {
	Name   string `json:"name"`
	Points []struct {
		X float64 `json:"x"`
		Y float64 `json:"y"`
	} `json:"points"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plot FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

// run draws all plots of the reports in a folder, and names the files that it has written. What
// cannot be drawn keeps nothing else from being drawn.
func run(folder string, log io.Writer) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no report in %s", folder)
	}
	var failures []error
	for _, file := range files {
		r, err := read(file)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, d := range r.Plots {
			path := filepath.Join(folder, r.Name+"-"+d.Name+".svg")
			content, err := d.svg()
			if err == nil {
				err = os.WriteFile(path, content, 0o644)
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("%s, plot %s: %w", file, d.Name, err))
				continue
			}
			fmt.Fprintln(log, path)
		}
	}
	return errors.Join(failures...)
}

func read(file string) (report, error) {
	var r report
	content, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if r.Name == "" {
		return r, fmt.Errorf("%s is no report: it has no name", file)
	}
	return r, nil
}
