package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// example is what the tests of test/bench/figures compare with what they write.
const example = "../../test/bench/figures/testdata/example.json"

// folderOf makes a folder with the example and other files.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	content, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"example.json": string(content)}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// textsOf reads a drawing to its end as XML, and returns its texts.
func textsOf(t *testing.T, content []byte) []string {
	t.Helper()
	var texts []string
	var root string
	decoder := xml.NewDecoder(bytes.NewReader(content))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, content)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if root == "" {
			root = start.Name.Local
		}
		if start.Name.Local == "text" {
			var text string
			if err := decoder.DecodeElement(&text, &start); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	if root != "svg" {
		t.Errorf("the root is <%s>, want <svg>", root)
	}
	return texts
}

func TestRun(t *testing.T) {
	folder := folderOf(t, map[string]string{
		"no-plots.json": `{"name": "no-plots"}`,
		// What is left of a run before is replaced as a whole.
		"example-create.svg": strings.Repeat("old ", 10000),
	})
	log := &strings.Builder{}
	if err := run(folder, log); err != nil {
		t.Fatal(err)
	}
	create, atOnce := filepath.Join(folder, "example-create.svg"), filepath.Join(folder, "example-at-once.svg")
	if want := create + "\n" + atOnce + "\n"; log.String() != want {
		t.Errorf("log %q, want %q", log, want)
	}
	for path, want := range map[string][]string{
		create: {"Creation [ms]", "time (ms)", "share of requests", "stock", `Signalbox <on> & "off"`, "0.6", "1"},
		atOnce: {"Many at once", "TrainJobs", "time (s)", "bare limit", "0.1", "10", "1k", "5k"},
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts := textsOf(t, content)
		for _, text := range want {
			if !slices.Contains(texts, text) {
				t.Errorf("%s has no %q, only %q", path, text, texts)
			}
		}
	}
}

// TestSame checks that a plot that has not changed changes no file.
func TestSame(t *testing.T) {
	folder := folderOf(t, nil)
	var drawn [2]string
	for i := range drawn {
		if err := run(folder, io.Discard); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"example-create.svg", "example-at-once.svg"} {
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			drawn[i] += string(content)
		}
	}
	if drawn[0] != drawn[1] {
		t.Errorf("drawn twice:\n%s\n%s", drawn[0], drawn[1])
	}
}

func TestRunRefuses(t *testing.T) {
	const plot = `{"name": "other", "plots": [{"name": "plot", "logX": %v, "logY": %v, "series": [%s]}]}`
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":              {"{", "unexpected end of JSON input"},
		"another kind of JSON": {"{}", "is no report: it has no name"},
		"no series":            {fmt.Sprintf(plot, false, false, ""), "plot plot: it has no series"},
		"no points":            {fmt.Sprintf(plot, false, false, `{"name": "a"}`), "plot plot: a has no points"},
		"0 on a logarithmic x": {fmt.Sprintf(plot, true, false, `{"name": "a", "points": [{"x": 0, "y": 1}]}`),
			"plot plot: a: (0, 1) cannot be on a logarithmic axis"},
		"less on a logarithmic y": {fmt.Sprintf(plot, false, true, `{"name": "a", "points": [{"x": 0, "y": -1}]}`),
			"plot plot: a: (0, -1) cannot be on a logarithmic axis"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := folderOf(t, map[string]string{"a.json": tc.text})
			if err := run(folder, io.Discard); err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "a.json")) ||
				!strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("error %v, want one of a.json that ends with %s", err, tc.want)
			}
			// The other report is drawn all the same.
			if _, err := os.Stat(filepath.Join(folder, "example-at-once.svg")); err != nil {
				t.Error(err)
			}
		})
	}
	if err := run(t.TempDir(), io.Discard); err == nil {
		t.Error("a folder without reports: no error")
	}
}
