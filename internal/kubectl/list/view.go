package list

import (
	"fmt"
	"io"
	"time"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// shape says which columns a list has.
func (l *lister) shape() shape {
	return shape{wide: l.options.Output == kubectl.OutputWide, allNamespaces: l.options.AllNamespaces, kueue: l.picture.kueue}
}

// look says how its rows are shown.
func (l *lister) look(terminal kubectl.Terminal, now time.Time) look {
	return look{now: now, zone: l.zone, unicode: terminal.Unicode, wide: l.options.Output == kubectl.OutputWide}
}

// once writes the answer to a list without --watch.
func once(o *kubectl.Options, l *lister, now time.Time) error {
	rows := l.picture.rows(now)
	switch o.Output {
	case kubectl.OutputJSON, kubectl.OutputYAML:
		return kubectl.Encode(o.Out, document{Time: now.UTC().Truncate(time.Second), Items: rows, Notes: l.notes.All()}, o.Output)
	case kubectl.OutputName:
		for i := range rows {
			if err := writeName(o.Out, &rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, none(o))
		return err
	}
	terminal := o.Terminal()
	grid := l.shape().grid(rows, l.look(terminal, now), nil)
	grid.NoHeaders = o.NoHeaders
	return grid.Print(o.Out, terminal)
}

// none says that there are no TrainJobs, as kubectl does.
func none(o *kubectl.Options) string {
	if o.AllNamespaces {
		return "No TrainJobs found."
	}
	return fmt.Sprintf("No TrainJobs found in namespace %s.", kubectl.Clean(o.Namespace))
}

// drawn shows the whole list over what it showed before.
type drawn struct {
	options *kubectl.Options
	// terminal is what it draws on, which may have another size each time.
	terminal func() kubectl.Terminal
	screen   screen
}

func (d *drawn) gone(Row, kubectl.State) {}

func (d *drawn) show(now time.Time, l *lister, troubles []string) error {
	terminal := d.terminal()
	rows := l.picture.rows(now)
	top := kubectl.Cut(summary(rows, now, l.zone), terminal)
	var below [][]string
	for _, note := range append(l.notes.All(), troubles...) {
		var wrapped []string
		for _, line := range kubectl.Wrap("note: "+note, terminal.Width) {
			wrapped = append(wrapped, kubectl.Cut(line, terminal))
		}
		below = append(below, wrapped)
	}
	grid := l.shape().grid(rows, l.look(terminal, now), nil)
	grid.NoHeaders = d.options.NoHeaders
	var lines []string
	if len(rows) > 0 {
		lines = grid.Lines(terminal)
	}
	return d.screen.draw(fit(append([]string{top}, lines...), below, terminal.Height))
}

// appended writes a line for each change.
type appended struct {
	options *kubectl.Options
	lines   lines
	// shape and least are those of the first lines, so that later ones stand below them.
	shape *shape
	least map[string]int
	worry map[string]bool
}

func (a *appended) gone(row Row, state kubectl.State) { a.lines.remove(row, state) }

func (a *appended) show(now time.Time, l *lister, troubles []string) error {
	a.say(l, troubles)
	rows := a.lines.next(l.picture.rows(now))
	if len(rows) == 0 {
		return nil
	}
	switch a.options.Output {
	case kubectl.OutputJSON, kubectl.OutputYAML, kubectl.OutputName:
		return a.documents(rows)
	}
	terminal := a.options.Terminal()
	first := a.shape == nil
	if first {
		shape := l.shape()
		a.shape = &shape
	}
	grid := a.shape.grid(rows, l.look(terminal, now), a.least)
	grid.NoHeaders = !first || a.options.NoHeaders
	a.least = widths(grid)
	return grid.Print(a.options.Out, terminal)
}

// documents writes each row for scripts.
func (a *appended) documents(rows []Row) error {
	for i := range rows {
		var err error
		switch a.options.Output {
		case kubectl.OutputName:
			err = writeName(a.options.Out, &rows[i])
		case kubectl.OutputYAML:
			if _, err = io.WriteString(a.options.Out, "---\n"); err == nil {
				err = kubectl.Encode(a.options.Out, rows[i], a.options.Output)
			}
		default:
			err = kubectl.Encode(a.options.Out, rows[i], a.options.Output)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say writes what is new of notes and of troubles, and that one is over.
func (a *appended) say(l *lister, troubles []string) {
	l.notes.Print(a.options.ErrOut)
	now := map[string]bool{}
	for _, trouble := range troubles {
		now[trouble] = true
		if !a.worry[trouble] {
			fmt.Fprintln(a.options.ErrOut, "note: "+trouble)
		}
	}
	if len(a.worry) > 0 && len(now) == 0 {
		fmt.Fprintln(a.options.ErrOut, "note: all is followed again")
	}
	a.worry = now
}
