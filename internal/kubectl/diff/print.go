package diff

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// printUnified prints a unified diff, with colours where the terminal has them. What is in the
// runtimes is of others.
func printUnified(out io.Writer, text string, terminal kubectl.Terminal) error {
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		line = visible(line)
		if _, err := fmt.Fprintln(out, terminal.Paint(colourOf(line, i), line)); err != nil {
			return err
		}
	}
	return nil
}

// visible writes characters that have no looks of their own as YAML escapes them: a terminal would act
// on them, or they would hide a difference.
func visible(line string) string {
	var seen strings.Builder
	for _, r := range line {
		switch {
		case r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r):
			seen.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&seen, `\U%08x`, r)
		default:
			fmt.Fprintf(&seen, `\u%04x`, r)
		}
	}
	return kubectl.Clean(seen.String())
}

// colourOf returns the colour of the line of this number, counted from 0. The first two are the labels.
func colourOf(line string, number int) kubectl.Colour {
	switch {
	case number < 2:
		return kubectl.Bold
	case strings.HasPrefix(line, "@@"):
		return kubectl.Cyan
	case strings.HasPrefix(line, "-"):
		return kubectl.Red
	case strings.HasPrefix(line, "+"):
		return kubectl.Green
	}
	return kubectl.Plain
}

// printUses prints the TrainJobs of a runtime, which are sorted, in the format that was asked for.
func printUses(o *kubectl.Options, runtime target, uses []useReport) error {
	switch o.Output {
	case kubectl.OutputJSON, kubectl.OutputYAML:
		return kubectl.Encode(o.Out, runtimeUses{Runtime: runtime.report(), TrainJobs: append([]useReport{}, uses...)}, o.Output)
	case kubectl.OutputName:
		for _, use := range uses {
			if _, err := fmt.Fprintf(o.Out, "%s.%s/%s\n", strings.ToLower(trainer.TrainJobKind), trainer.GroupVersion.Group, kubectl.Clean(use.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	if !o.NoHeaders {
		if _, err := fmt.Fprintln(o.Out, kubectl.Clean(runtime.headline())); err != nil {
			return err
		}
	}
	if len(uses) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No unfinished TrainJob refers to it.")
		return err
	}
	return gridOf(o, uses).Print(o.Out, o.Terminal())
}

// gridOf makes a table of the TrainJobs: what each is built from at its next start only in the wide one.
func gridOf(o *kubectl.Options, uses []useReport) *kubectl.Grid {
	grid := &kubectl.Grid{NoHeaders: o.NoHeaders}
	column := func(header string, rank int, shown bool, cell func(useReport) kubectl.Cell) {
		if !shown {
			return
		}
		grid.Columns = append(grid.Columns, kubectl.Column{Header: header, Rank: rank})
		for i, use := range uses {
			if len(grid.Rows) == i {
				grid.Rows = append(grid.Rows, nil)
			}
			grid.Rows[i] = append(grid.Rows[i], cell(use))
		}
	}
	text := func(of func(useReport) string) func(useReport) kubectl.Cell {
		return func(use useReport) kubectl.Cell { return kubectl.Cell{Text: of(use)} }
	}
	wide := o.Output == kubectl.OutputWide
	column("NAMESPACE", 2, o.AllNamespaces, text(func(u useReport) string { return u.Namespace }))
	column("NAME", 1, true, text(func(u useReport) string { return u.Name }))
	column("RUNTIME", 1, true, func(u useReport) kubectl.Cell {
		colour := []kubectl.Colour{kubectl.Yellow, kubectl.Red, kubectl.Plain}[u.rank()]
		return kubectl.Cell{Text: u.standing(), Colour: colour}
	})
	column("REVISION", 3, true, text(func(u useReport) string { return orNone(u.Revision) }))
	column("ACTIVE", 4, true, text(func(u useReport) string { return yesNo(u.Active) }))
	column("FROM", 5, true, text(func(u useReport) string { return string(u.From) }))
	column("NEXT", 6, wide, text(func(u useReport) string { return orNone(string(u.Next)) }))
	column("WHY", 7, wide, text(func(u useReport) string { return orNone(u.Why) }))
	return grid
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
