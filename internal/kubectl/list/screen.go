package list

import (
	"bytes"
	"fmt"
	"io"
)

// screen draws text over what it has drawn before.
type screen struct {
	out io.Writer
	// drawn is how many lines are there.
	drawn int
}

// The control sequences of a terminal: up by some lines, to the end of the line and of the screen.
const (
	cursorUp  = "\x1b[%dA"
	eraseLine = "\x1b[K"
	eraseRest = "\x1b[J"
)

// draw draws lines in the place of those that it drew before. They must fit: no wider and, with the line
// below the last, no more than the terminal has.
func (s *screen) draw(lines []string) error {
	var text bytes.Buffer
	if s.drawn > 0 {
		fmt.Fprintf(&text, cursorUp, s.drawn)
	}
	text.WriteString("\r")
	for _, line := range lines {
		text.WriteString(line + eraseLine + "\n")
	}
	text.WriteString(eraseRest)
	s.drawn = len(lines)
	_, err := s.out.Write(text.Bytes())
	return err
}

// fit cuts lines to what has room above these others in so many rows, of which the last stays empty, and
// says how many are left out.
func fit(lines, below []string, rows int) []string {
	room := max(rows-1-len(below), 3)
	if rows > 0 && len(lines) > room {
		left := len(lines) - (room - 1)
		lines = append(lines[:room-1:room-1], fmt.Sprintf("... and %d more", left))
	}
	return append(lines, below...)
}
