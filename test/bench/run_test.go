package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Each bench runs to its end, and finds something for every table, plot and target. Which figures it
// finds is for nobody to judge here.
func TestBenches(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	for _, b := range benches {
		t.Run(b.name, func(t *testing.T) {
			o := options{short: true, out: t.TempDir()}
			report, err := b.run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if report.Title == "" || len(report.Tables) == 0 {
				t.Errorf("title %q, %d tables", report.Title, len(report.Tables))
			}
			for _, table := range report.Tables {
				if len(table.Rows) == 0 {
					t.Errorf("table %q is empty", table.Title)
				}
				for _, row := range table.Rows {
					if len(row) != len(table.Columns) {
						t.Errorf("table %q has the columns %q and the row %q", table.Title, table.Columns, row)
					}
				}
			}
			for _, plot := range report.Plots {
				for _, series := range plot.Series {
					if len(series.Points) == 0 {
						t.Errorf("plot %q has no points for %q", plot.Name, series.Name)
					}
				}
			}
			for _, target := range report.Targets {
				if target.What == "" || target.Want == "" || target.Got == "" {
					t.Errorf("target %+v", target)
				}
			}
			report.Name = b.name
			if err := report.Print(os.Stderr); err != nil {
				t.Error(err)
			}
			if err := report.Write(o.out); err != nil {
				t.Fatal(err)
			}
			for _, extension := range []string{".json", ".md"} {
				if _, err := os.Stat(filepath.Join(o.out, b.name+extension)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
