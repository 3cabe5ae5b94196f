package figures

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// targetColumns are the columns of the table of targets.
var targetColumns = []string{"target", "wanted", "got", "result"}

// targetTable is the table of targets.
func (r *Report) targetTable() Table {
	table := Table{Title: "Targets", Columns: targetColumns}
	for _, target := range r.Targets {
		verdict := "missed"
		if target.Met {
			verdict = "met"
		}
		table.Rows = append(table.Rows, []string{target.What, target.Want, target.Got, verdict})
	}
	return table
}

// tables are the tables of the page, that of the targets last.
func (r *Report) tables() []Table {
	tables := append([]Table(nil), r.Tables...)
	if len(r.Targets) > 0 {
		tables = append(tables, r.targetTable())
	}
	return tables
}

// lines returns the columns' names and the rows of a table, all of the same number of cells,
// each of which is one line.
func (t Table) lines() [][]string {
	lines := append([][]string{t.Columns}, t.Rows...)
	width := 0
	for _, line := range lines {
		width = max(width, len(line))
	}
	for i, line := range lines {
		cells := make([]string, width)
		for j, cell := range line {
			cells[j] = oneLine(cell)
		}
		lines[i] = cells
	}
	return lines
}

// oneLine joins the words of a text with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Print writes the report for a terminal.
func (r *Report) Print(w io.Writer) error {
	page := &bytes.Buffer{}
	fmt.Fprintf(page, "\n%s: %s\n%s, %s\n", r.Name, r.Title, r.Machine.Date, r.Machine)
	for _, table := range r.tables() {
		fmt.Fprintf(page, "\n%s\n", table.Title)
		aligned := &strings.Builder{}
		columns := tabwriter.NewWriter(aligned, 0, 0, 2, ' ', 0)
		for _, line := range table.lines() {
			fmt.Fprintf(columns, "  %s\t\n", strings.Join(line, "\t"))
		}
		if err := columns.Flush(); err != nil {
			return err
		}
		for line := range strings.Lines(aligned.String()) {
			fmt.Fprintln(page, strings.TrimRight(line, " \n"))
		}
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(page)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(page, "- %s\n", oneLine(note))
	}
	_, err := w.Write(page.Bytes())
	return err
}

var (
	// A bar would end the cell, a bracket the text of the picture.
	cellEscapes = strings.NewReplacer("|", `\|`)
	altEscapes  = strings.NewReplacer("[", `\[`, "]", `\]`)
)

// markdown writes the report as a page.
func (r *Report) markdown() []byte {
	page := &bytes.Buffer{}
	fmt.Fprintf(page, "# %s\n\n", oneLine(r.Title))
	fmt.Fprintf(page, "<!-- Written by `%s`: the next run replaces it. -->\n\n", r.Command)
	fmt.Fprintf(page, "Measured by `%s` on %s: %s.\n", r.Command, r.Machine.Date, r.Machine)
	for _, table := range r.tables() {
		fmt.Fprintf(page, "\n## %s\n\n", oneLine(table.Title))
		for i, line := range table.lines() {
			for j, cell := range line {
				line[j] = cellEscapes.Replace(cell)
			}
			fmt.Fprintf(page, "| %s |\n", strings.Join(line, " | "))
			if i == 0 {
				fmt.Fprintf(page, "|%s\n", strings.Repeat("---|", len(line)))
			}
		}
	}
	if len(r.Plots) > 0 {
		fmt.Fprint(page, "\n## Plots\n")
	}
	for _, plot := range r.Plots {
		fmt.Fprintf(page, "\n![%s](%s-%s.svg)\n", altEscapes.Replace(oneLine(plot.Title)), r.Name, plot.Name)
	}
	if len(r.Notes) > 0 {
		fmt.Fprint(page, "\n## Notes\n\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(page, "- %s\n", oneLine(note))
	}
	return page.Bytes()
}
