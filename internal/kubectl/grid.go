package kubectl

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Column is one column of a Grid.
type Column struct {
	Header string
	// Rank is by how much it is missed where there is no room for all: 1 is the most and stays, and of the
	// others those of the highest rank go first.
	Rank int
	// Least is the least width, in characters: for lines that are to stand below others.
	Least int
}

// Cell is one cell of a Grid. Its text may be of others: a Grid cleans it.
type Cell struct {
	Text   string
	Colour Colour
}

// Grid is a table without lines, whose columns give way on a narrow terminal.
type Grid struct {
	Columns []Column
	// Rows have a cell for each column.
	Rows [][]Cell
	// NoHeaders leaves out the line of the headers.
	NoHeaders bool
}

const (
	// gap is between two columns.
	gap = 2
	// leastCut is the width below which no column is cut.
	leastCut = 8
)

// Add adds a row, of a cell for each column.
func (g *Grid) Add(cells ...Cell) { g.Rows = append(g.Rows, cells) }

// Print writes the grid.
func (g *Grid) Print(out io.Writer, terminal Terminal) error {
	for _, line := range g.Lines(terminal) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// Lines returns the lines of the grid, as wide as the terminal at most, if that is not too narrow for what
// cannot be left out.
func (g *Grid) Lines(terminal Terminal) []string {
	rows := make([][]Cell, 0, len(g.Rows)+1)
	if !g.NoHeaders {
		headers := make([]Cell, len(g.Columns))
		for i, column := range g.Columns {
			headers[i] = Cell{Text: column.Header}
		}
		rows = append(rows, headers)
	}
	for _, row := range g.Rows {
		clean := make([]Cell, len(row))
		for i, cell := range row {
			clean[i] = Cell{Text: Clean(cell.Text), Colour: cell.Colour}
		}
		rows = append(rows, clean)
	}
	widths := make([]int, len(g.Columns))
	for i, column := range g.Columns {
		widths[i] = column.Least
		for _, row := range rows {
			widths[i] = max(widths[i], Columns(row[i].Text))
		}
	}
	shown := g.fit(widths, terminal.Width)
	mark := terminal.mark()
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = lineOf(row, widths, shown, mark, terminal)
	}
	return lines
}

// fit returns the columns that have room, and narrows widths where even those are too wide.
func (g *Grid) fit(widths []int, room int) (shown []int) {
	for i := range g.Columns {
		shown = append(shown, i)
	}
	if room <= 0 {
		return shown
	}
	for over(widths, shown, room) > 0 {
		// Of those of a rank the last goes first.
		least := -1
		for at, i := range shown {
			if g.Columns[i].Rank > 1 && (least < 0 || g.Columns[i].Rank >= g.Columns[shown[least]].Rank) {
				least = at
			}
		}
		if least < 0 {
			break
		}
		shown = slices.Delete(shown, least, least+1)
	}
	for over(widths, shown, room) > 0 {
		widest := shown[0]
		for _, i := range shown {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastCut {
			break
		}
		widths[widest]--
	}
	return shown
}

// over returns by how much the columns are too wide.
func over(widths, shown []int, room int) int {
	total := gap * (len(shown) - 1)
	for _, i := range shown {
		total += widths[i]
	}
	return total - room
}

func lineOf(row []Cell, widths, shown []int, mark string, terminal Terminal) string {
	var line strings.Builder
	blank := 0
	for _, i := range shown {
		text := cut(row[i].Text, widths[i], mark)
		if text != "" {
			line.WriteString(strings.Repeat(" ", blank))
			line.WriteString(terminal.Paint(row[i].Colour, text))
			blank = 0
		}
		blank += widths[i] - Columns(text) + gap
	}
	return line.String()
}
