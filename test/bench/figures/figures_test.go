package figures

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a report with all parts. What it is written as lies in testdata, where the test of
// tools/plot reads it too.
func example() *Report {
	return &Report{
		Name:  "example",
		Title: "What a start costs",
		Machine: Machine{
			CPU: "Processor 1", Processors: 2, Memory: 8 << 30, Kernel: "6.1.0", Go: "go1.26.0", Load: 0.25, Date: "2026-01-31",
		},
		Command: "make bench BENCH=example",
		Tables: []Table{
			{Title: "Time of a request", Columns: append([]string{"operation", "Signalbox"}, Quantiles...), Rows: [][]string{
				append([]string{"create", "off"}, millis(3).Row()...),
				append([]string{"create", "on"}, millis(4, 5, 2500).Row()...),
				append([]string{"update | delete\nof labels", "on"}, Samples(nil).Row()...),
			}},
			{Title: "Rows of any length", Columns: []string{"name"}, Rows: [][]string{{"a", "< 1 & > 0"}, nil, {"b", "", "3"}}},
		},
		Plots: []Plot{
			{
				Name: "create", Title: "Creation [ms]", X: "time (ms)", Y: "share of requests",
				Series: []Series{
					{Name: "stock", Points: millis(1, 2, 3).Distribution()},
					{Name: "Signalbox <on> & \"off\"", Points: millis(2, 3, 4).Distribution()},
				},
			},
			{
				Name: "at-once", Title: "Many at once", X: "TrainJobs", Y: "time (s)", LogX: true, LogY: true,
				Series: []Series{{Name: "bare limit", Points: []Point{{10, 0.05}, {100, 0.4}, {1000, 3}, {5000, 17.5}}}},
			},
		},
		Targets: []Target{
			{What: "p50 of create", Want: "at most 3 ms", Got: "4.00 ms"},
			{What: "requests at rest", Want: "none", Got: "none", Met: true},
		},
		Notes: []string{"Nothing else ran.", "Not measured:\nthe rest."},
	}
}

// TestWrite compares with the files in testdata.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "of", "figures")
	for range 2 {
		if err := example().Write(folder); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"example.json", "example.md"} {
		if diff := cmp.Diff(read(t, filepath.Join("testdata", name)), read(t, filepath.Join(folder, name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
		t.Errorf("files %v, error %v; want those two only", files, err)
	}
	var got Report
	if err := json.Unmarshal([]byte(read(t, filepath.Join(folder, "example.json"))), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), &got); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

// TestWriteReplaces checks that nothing is left of a longer file, and that a report that cannot
// be written leaves the files of one before.
func TestWriteReplaces(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "example.json")
	if err := os.WriteFile(file, bytes.Repeat([]byte("old "), 10000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := example().Write(folder); err != nil {
		t.Fatal(err)
	}
	want := read(t, filepath.Join("testdata", "example.json"))
	if got := read(t, file); got != want {
		t.Errorf("the file is now %d bytes, want %d", len(got), len(want))
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, error %v; want one that all may read", info.Mode(), err)
	}
	broken := example()
	broken.Plots[0].Series[0].Points[0].Y = math.NaN()
	if err := broken.Write(folder); err == nil || !strings.Contains(err.Error(), "the figures of example: json: unsupported value: NaN") {
		t.Errorf("error %v, want one about the NaN", err)
	}
	if got := read(t, file); got != want {
		t.Error("a report that cannot be written has changed the file")
	}
}

func TestWriteRefusesNames(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(r *Report)
		want   string
	}{
		"a bench without a name": {
			func(r *Report) { r.Name = "" }, `"" is no name for a bench: lower case, digits and dashes`},
		"a bench named as a folder above": {
			func(r *Report) { r.Name = "../a" }, `"../a" is no name for a bench: lower case, digits and dashes`},
		"a plot with a space": {
			func(r *Report) { r.Plots[1].Name = "at once" }, `"at once" is no name for a plot of example: lower case, digits and dashes`},
		"two plots of a name": {
			func(r *Report) { r.Plots[1].Name = "create" }, `two plots of example have the name "create"`},
	} {
		t.Run(name, func(t *testing.T) {
			report, folder := example(), t.TempDir()
			tc.change(report)
			if err := report.Write(folder); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
				t.Errorf("files %v, error %v; want none", files, err)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	want := `
example: What a start costs
2026-01-31, Processor 1, 2 processors, 8.0 GiB of memory, Linux 6.1.0, go1.26.0, load 0.25 before

Time of a request
  operation                  Signalbox  p50      p95      p99      max
  create                     off        3.00 ms  3.00 ms  3.00 ms  3.00 ms
  create                     on         5.00 ms  2.50 s   2.50 s   2.50 s
  update | delete of labels  on         -        -        -        -

Rows of any length
  name
  a     < 1 & > 0

  b                3

Targets
  target            wanted        got      result
  p50 of create     at most 3 ms  4.00 ms  missed
  requests at rest  none          none     met

- Nothing else ran.
- Not measured: the rest.
`
	got := &strings.Builder{}
	if err := example().Print(got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
