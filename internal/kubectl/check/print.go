package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// levelWidth and checkWidth are the widths of the first two columns, and leastFinding is how narrow the last one may be
// before it goes below them.
const (
	levelWidth   = 9
	checkWidth   = 13
	leastFinding = 24
	below        = "  "
)

// colours are those of the levels.
var colours = map[Level]kubectl.Colour{OK: kubectl.Green, Warning: kubectl.Yellow, Fault: kubectl.Red, Unknown: kubectl.Cyan}

// table writes the answer for people: a line for each item, broken where the terminal is narrower.
func table(out io.Writer, answer Answer, terminal kubectl.Terminal, headless bool) error {
	var text strings.Builder
	if !headless {
		fmt.Fprintf(&text, "%-*s%-*sFINDING\n", levelWidth, "RESULT", checkWidth, "CHECK")
	}
	for _, item := range answer.Items {
		level := terminal.Paint(colours[item.Level], string(item.Level)) + strings.Repeat(" ", levelWidth-len(item.Level))
		head := level + fmt.Sprintf("%-*s", checkWidth, item.Check)
		indent, room := strings.Repeat(" ", levelWidth+checkWidth), 0
		if terminal.Width > 0 {
			room = terminal.Width - levelWidth - checkWidth
		}
		if terminal.Width > 0 && room < leastFinding {
			text.WriteString(strings.TrimRight(head, " ") + "\n")
			head, indent, room = below, below, max(terminal.Width-len(below), 1)
		}
		for i, line := range lines(item, room) {
			if i > 0 {
				head = indent
			}
			text.WriteString(head + line + "\n")
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// lines are the finding and what to do about it, in lines of this width; in one where it is 0, or both
// have room there.
func lines(item Item, width int) []string {
	finding, todo := kubectl.Clean(item.Finding), kubectl.Clean(item.Todo)
	if todo == "" {
		return kubectl.Wrap(finding, width)
	}
	whole := finding + "; to do: " + todo
	if len(kubectl.Wrap(whole, width)) == 1 {
		return []string{whole}
	}
	return append(kubectl.Wrap(finding, width), kubectl.Wrap("to do: "+todo, width)...)
}
