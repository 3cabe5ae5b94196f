package kubectl

import "strings"

// Wrap breaks a text between words into lines of this width, in columns; 0 or less leaves it as it
// is. A word that is longer has a line for itself. An empty text is one empty line.
func Wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case Columns(*last)+1+Columns(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}
