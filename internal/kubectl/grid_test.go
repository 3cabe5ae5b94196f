package kubectl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newGrid() *Grid {
	g := &Grid{Columns: []Column{{Header: "NAMESPACE", Rank: 3}, {Header: "NAME", Rank: 1}, {Header: "LEFT", Rank: 2}, {Header: "LIMIT", Rank: 3}, {Header: "NOTE", Rank: 4}}}
	g.Add(Cell{Text: "team-a"}, Cell{Text: "eight-hours"}, Cell{Text: "5m", Colour: Red}, Cell{Text: "8h"}, Cell{Text: ""})
	g.Add(Cell{Text: "b"}, Cell{Text: "x"}, Cell{Text: "7h59m"}, Cell{Text: "8h"}, Cell{Text: "gone"})
	return g
}

func TestGrid(t *testing.T) {
	for name, tc := range map[string]struct {
		terminal Terminal
		change   func(*Grid)
		want     string
	}{
		"in a file": {want: `
NAMESPACE  NAME         LEFT   LIMIT  NOTE
team-a     eight-hours  5m     8h
b          x            7h59m  8h     gone`},
		"just wide enough": {terminal: Terminal{Width: 42}, want: `
NAMESPACE  NAME         LEFT   LIMIT  NOTE
team-a     eight-hours  5m     8h
b          x            7h59m  8h     gone`},
		"the highest rank goes first": {terminal: Terminal{Width: 41}, want: `
NAMESPACE  NAME         LEFT   LIMIT
team-a     eight-hours  5m     8h
b          x            7h59m  8h`},
		"of two of a rank the last": {terminal: Terminal{Width: 35}, want: `
NAMESPACE  NAME         LEFT
team-a     eight-hours  5m
b          x            7h59m`},
		"rank 1 stays": {terminal: Terminal{Width: 12}, want: `
NAME
eight-hours
x`},
		"and is cut": {terminal: Terminal{Width: 9}, want: `
NAME
eight-ho~
x`},
		"with characters": {terminal: Terminal{Width: 9, Unicode: true}, want: `
NAME
eight-ho…
x`},
		"but not to nothing": {terminal: Terminal{Width: 3}, want: `
NAME
eight-h~
x`},
		"without headers": {change: func(g *Grid) { g.NoHeaders = true }, want: `
team-a  eight-hours  5m     8h
b       x            7h59m  8h  gone`},
		"coloured": {terminal: Terminal{Width: 30, Colour: true}, want: `
NAMESPACE  NAME         LEFT
team-a     eight-hours  ` + "\x1b[31m5m\x1b[0m" + `
b          x            7h59m`},
		"below others": {change: func(g *Grid) { g.Columns[0].Least, g.Columns[4].Least = 12, 9 }, want: `
NAMESPACE     NAME         LEFT   LIMIT  NOTE
team-a        eight-hours  5m     8h
b             x            7h59m  8h     gone`},
		"of others": {change: func(g *Grid) { g.Rows[1][1].Text = "\x1b[2Jx\n列車" }, want: `
NAMESPACE  NAME         LEFT   LIMIT  NOTE
team-a     eight-hours  5m     8h
b          [2Jx 列車    7h59m  8h     gone`},
		"of no rows": {change: func(g *Grid) { g.Rows = nil }, want: `
NAMESPACE  NAME  LEFT  LIMIT  NOTE`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrid()
			if tc.change != nil {
				tc.change(g)
			}
			var out strings.Builder
			if err := g.Print(&out, tc.terminal); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n")+"\n", out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// No line is wider than the terminal, as long as that has room for a name.
func TestGridFits(t *testing.T) {
	for width := leastCut; width < 60; width++ {
		for _, line := range newGrid().Lines(Terminal{Width: width, Unicode: true}) {
			if Columns(line) > width {
				t.Errorf("%q takes %d columns of %d", line, Columns(line), width)
			}
		}
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestGridTellsThatItCannotBeWritten(t *testing.T) {
	if err := newGrid().Print(full{}, Terminal{}); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}
