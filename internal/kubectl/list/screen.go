package list

import (
	"bytes"
	"fmt"
	"io"
	"slices"
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

// fit puts notes below lines, and leaves out what has no room in so many rows, of which the last stays empty:
// notes from a third of the rows on, then lines. It says how many are left out. 0 rows have room for all.
func fit(lines []string, notes [][]string, rows int) []string {
	below := slices.Concat(notes...)
	if rows <= 0 {
		return append(lines, below...)
	}
	room := rows - 1
	if most := max(room/3, 1); len(below) > most {
		below = nil
		for i, note := range notes {
			if len(below)+len(note) > most-1 {
				below = append(below, fmt.Sprintf("... and %d more notes", len(notes)-i))
				break
			}
			below = append(below, note...)
		}
	}
	if room < 2 {
		below = nil
	}
	room -= len(below)
	switch left := len(lines) - (room - 1); {
	case len(lines) <= room:
	case room < 2:
		lines = lines[:room:room]
	default:
		lines = append(lines[:room-1:room-1], fmt.Sprintf("... and %d more", left))
	}
	return append(lines, below...)
}
