package check

import (
	"fmt"
	"strings"
)

// Level is how what was looked at is.
type Level string

// The levels, from the best to the worst.
const (
	// OK needs nothing.
	OK Level = "ok"
	// Unknown could not be looked at, mostly for want of a right.
	Unknown Level = "unknown"
	// Warning works, but not as well as it could, or not for long.
	Warning Level = "warning"
	// Fault does not work.
	Fault Level = "fault"
)

// Item is one line of the answer.
type Item struct {
	// Check is what was looked at.
	Check string `json:"check"`
	Level Level  `json:"result"`
	// Finding is what was found, as a clause without a full stop.
	Finding string `json:"finding"`
	// Todo is what to do about it, in the same form; "" where there is nothing to do.
	Todo string `json:"todo,omitempty"`
}

// Answer is all that was found.
type Answer struct {
	// Level is the worst there is: Fault, else Unknown, else Warning, else OK.
	Level Level  `json:"result"`
	Items []Item `json:"checks"`
}

// answer sums up the items.
func answer(items []Item) Answer {
	level := OK
	for _, worse := range []Level{Warning, Unknown, Fault} {
		if count(items, worse) > 0 {
			level = worse
		}
	}
	return Answer{Level: level, Items: items}
}

// count returns how many of the items are of this level.
func count(items []Item, level Level) int {
	n := 0
	for _, item := range items {
		if item.Level == level {
			n++
		}
	}
	return n
}

// ExitCode is what the process exits with: 0 where nothing is at fault, 1 where something is, and 2
// where nothing that could be looked at is, but not all could.
func (a Answer) ExitCode() int {
	switch a.Level {
	case Fault:
		return 1
	case Unknown:
		return 2
	}
	return 0
}

// Summary says why the exit code is not 0; "" where it is.
func (a Answer) Summary() string {
	faults, unknown := count(a.Items, Fault), count(a.Items, Unknown)
	switch {
	case faults > 0:
		return plural(faults, "fault")
	case unknown > 0:
		return plural(unknown, "check") + " could not be made"
	}
	return ""
}

// plural returns the number with the noun, as in "2 faults".
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// some returns the first of the names with commas, and how many more there are.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
