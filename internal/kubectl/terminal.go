package kubectl

import (
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// Terminal is what an answer is written to.
type Terminal struct {
	// Width and Height are in characters; 0 where there is no end, as in a file.
	Width, Height int
	// Colour, Unicode: it shows colours, and characters beyond ASCII.
	Colour, Unicode bool
	// Redraws: what was written can be written over.
	Redraws bool
}

// Colour is a colour, or another look, of a text.
type Colour string

// The colours, as terminals take them. Plain is none.
const (
	Plain  Colour = ""
	Bold   Colour = "\x1b[1m"
	Faint  Colour = "\x1b[2m"
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Cyan   Colour = "\x1b[36m"
)

// Paint gives a text, which is clean, a colour where there are any.
func (t Terminal) Paint(colour Colour, text string) string {
	if !t.Colour || colour == Plain || text == "" {
		return text
	}
	return string(colour) + text + "\x1b[0m"
}

// Cut makes one line of a text, and shortens it where the terminal is narrower.
func Cut(text string, terminal Terminal) string {
	text = Clean(text)
	if terminal.Width <= 0 {
		return text
	}
	return cut(text, terminal.Width, terminal.mark())
}

// mark is what stands for what is left out.
func (t Terminal) mark() string {
	if t.Unicode {
		return "…"
	}
	return "~"
}

// Terminal finds out what the answer goes to, anew each time: a window may have another size now.
func (o *Options) Terminal() Terminal {
	return terminalOf(o.Out, os.Getenv, runtime.GOOS)
}

func terminalOf(out io.Writer, env func(string) string, system string) Terminal {
	terminal := Terminal{Unicode: speaksUnicode(env, system)}
	file, is := out.(interface{ Fd() uintptr })
	if !is || !term.IsTerminal(int(file.Fd())) {
		return terminal
	}
	if width, height, err := term.GetSize(int(file.Fd())); err == nil {
		terminal.Width, terminal.Height = width, height
	}
	// A terminal of Windows has no TERM, and needs to be told to heed escape sequences.
	name := env("TERM")
	clever := name != "dumb" && (name != "" || system == "windows") && heedsSequences(file.Fd())
	terminal.Redraws = clever
	terminal.Colour = clever && env("NO_COLOR") == ""
	return terminal
}

// speaksUnicode goes by the locale.
func speaksUnicode(env func(string) string, system string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(env(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return system == "windows" && writesUnicode()
}
