package main

import (
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// style is the start of a terminal's escape sequence, empty for plain text.
type style string

const (
	plain style = ""
	bold  style = "\x1b[1m"
	dim   style = "\x1b[2m"
	red   style = "\x1b[1;31m"
	green style = "\x1b[32m"
	cyan  style = "\x1b[36m"

	styleEnd = "\x1b[0m"
)

// wantsColour tells whether the file is a terminal that may get colours; see no-color.org.
func wantsColour(file *os.File, getenv func(string) string) bool {
	if getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// line is one line of the timeline.
type line struct {
	kind, name, text string
	// rest is what is left until the deadline, in words; empty when none counts.
	rest  string
	style style
}

// screen prints the timeline.
type screen struct {
	out    io.Writer
	colour bool
	start  time.Time
}

func (s *screen) print(at time.Time, l line) {
	_, _ = fmt.Fprintln(s.out, l.format(at.Sub(s.start), s.colour))
}

func (s *screen) note(text string) {
	_, _ = fmt.Fprintln(s.out, text)
}

func (s *screen) heading(text string) {
	_, _ = fmt.Fprintln(s.out, "\n"+paint(text, bold, s.colour))
}

// format lays the line out in columns: time, kind, name, text, rest.
func (l line) format(after time.Duration, colour bool) string {
	text := fmt.Sprintf("%-9s  ", l.kind)
	if l.name != "" {
		text += fmt.Sprintf("%-21s  ", l.name)
	}
	text = fmt.Sprintf("%6.1fs  ", after.Seconds()) + paint(text+l.text, l.style, colour)
	if l.rest != "" {
		text += "  " + paint("("+l.rest+")", cyan, colour)
	}
	return text
}

func paint(text string, s style, colour bool) string {
	if !colour || s == plain {
		return text
	}
	return string(s) + text + styleEnd
}

// remaining says how much of the TrainJob's time is left at an instant, in words; empty
// when no deadline counts.
func remaining(job *trainer.TrainJob, at time.Time) string {
	switch decision := deadline.Evaluate(job, at); decision.State {
	case deadline.Waiting:
		return fmt.Sprintf("%.1fs left", decision.RequeueAfter.Seconds())
	case deadline.Expired:
		return "deadline reached"
	}
	return ""
}

// styleOf makes what the story is about stand out.
func styleOf(o observation) style {
	switch object := o.object.(type) {
	case *trainer.TrainJob:
		if object.DeadlineExceeded() {
			return red
		}
		return bold
	case *corev1.Event:
		if object.Reason == trainer.ReasonDeadlineExceeded {
			return red
		}
		return dim
	}
	return plain
}
