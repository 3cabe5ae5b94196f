package list

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// shape says which columns there are.
type shape struct {
	wide, allNamespaces, kueue bool
}

// columns returns those that there are.
func (s shape) columns() []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.shown != nil && !c.shown(s) })
}

// grid makes the table of rows. least are widths that its columns have at least; nil for none.
func (s shape) grid(rows []Row, l look, least map[string]int) *kubectl.Grid {
	shown := s.columns()
	grid := &kubectl.Grid{}
	for _, c := range shown {
		grid.Columns = append(grid.Columns, kubectl.Column{Header: c.header, Rank: c.rank, Least: least[c.header]})
	}
	for i := range rows {
		cells := make([]kubectl.Cell, len(shown))
		for j, c := range shown {
			cells[j].Text = c.text(&rows[i], l)
			if c.colour != nil {
				cells[j].Colour = c.colour(&rows[i], l)
			}
		}
		grid.Add(cells...)
	}
	return grid
}

// widths returns how wide the columns of a grid are.
func widths(grid *kubectl.Grid) map[string]int {
	out := map[string]int{}
	for i, c := range grid.Columns {
		out[c.Header] = max(c.Least, kubectl.Columns(c.Header))
		for _, row := range grid.Rows {
			out[c.Header] = max(out[c.Header], kubectl.Columns(kubectl.Clean(row[i].Text)))
		}
	}
	return out
}

// summary counts the TrainJobs by their state, for the line above a table that is drawn again and again.
func summary(rows []Row, now time.Time, zone *time.Location) string {
	counts := map[kubectl.State]int{}
	for i := range rows {
		counts[rows[i].State]++
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s  %d TrainJob", now.In(zone).Format(time.TimeOnly), len(rows))
	if len(rows) != 1 {
		text.WriteString("s")
	}
	separator := ": "
	for _, state := range []kubectl.State{
		kubectl.Running, kubectl.Finishing, kubectl.Queued, kubectl.Suspended, kubectl.Succeeded, kubectl.Failed, kubectl.DeadlineExceeded,
	} {
		if counts[state] > 0 {
			fmt.Fprintf(&text, "%s%d %s", separator, counts[state], words(state))
			separator = ", "
		}
	}
	return text.String()
}

// words writes a state as words.
func words(state kubectl.State) string {
	if state == kubectl.DeadlineExceeded {
		return "deadline exceeded"
	}
	return strings.ToLower(string(state))
}
