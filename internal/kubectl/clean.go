package kubectl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Clean makes one line of a text that somebody else wrote, and takes out what a terminal would act on:
// control characters, with them the start of all escape sequences, and those that turn the direction of
// writing. Line ends and tabs become a space, bytes that are no UTF-8 the replacement character.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u0085', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r), turns(r):
			return -1
		case r == utf8.RuneError:
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// turns tells whether the character has no looks of its own and changes how its neighbours are shown:
// the direction in which they are written, or where they are joined.
func turns(r rune) bool { return unicode.Is(unicode.Cf, r) }

// Columns returns how many columns of a terminal a text takes that is clean.
func Columns(text string) int {
	columns := 0
	for _, r := range text {
		columns += columnsOf(r)
	}
	return columns
}

func columnsOf(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens a text to this many columns, at least 1, and ends it with mark where something is left out.
func cut(text string, columns int, mark string) string {
	if Columns(text) <= columns {
		return text
	}
	room := columns - Columns(mark)
	var short strings.Builder
	for _, r := range text {
		if room -= columnsOf(r); room < 0 {
			break
		}
		short.WriteRune(r)
	}
	return short.String() + mark
}
