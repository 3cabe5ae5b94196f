package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// page writes lines that are broken to the width of the terminal.
type page struct {
	out io.Writer
	kubectl.Terminal
	err error
}

// Print writes a report for people. wide also says where in the cluster each thing stands.
func Print(out io.Writer, report Report, terminal kubectl.Terminal, wide bool) error {
	p := &page{out: out, Terminal: terminal}
	p.head(report)
	p.title("Timeline")
	p.timeline(report, wide)
	p.title("What stops it")
	for _, limit := range report.Limits {
		p.limit(limit, report.Now)
	}
	p.title("What it runs on")
	p.content(report.Content)
	p.title("What looks wrong")
	p.findings(report.Findings)
	return p.err
}

func (p *page) head(report Report) {
	p.line("", "TrainJob ", report.Namespace+"/"+report.Name, kubectl.Bold)
	state := string(report.State)
	switch {
	case !report.Finished.IsZero():
		state += fmt.Sprintf(" at %s (%s)", stampText(report.Finished), fromNow(report.Finished, report.Now))
	case !report.ActiveSince.IsZero():
		state += fmt.Sprintf(", active since %s (%s)", stampText(report.ActiveSince), fromNow(report.ActiveSince, report.Now))
	}
	if report.Why != "" {
		state += ": " + report.Why
	}
	p.line("", "State    ", state, stateColour(report.State))
	if report.Queue != "" {
		queue := report.Queue
		if report.Position > 0 {
			queue += fmt.Sprintf(", place %d", report.Position)
		}
		p.line("", "Queue    ", queue, "")
	}
}

func stateColour(state kubectl.State) kubectl.Colour {
	switch state {
	case kubectl.Running, kubectl.Succeeded:
		return kubectl.Green
	case kubectl.Failed, kubectl.DeadlineExceeded:
		return kubectl.Red
	case kubectl.Finishing:
		return kubectl.Yellow
	}
	return kubectl.Plain
}

func (p *page) timeline(report Report, wide bool) {
	const columns = "%-20s  %-9s  "
	ahead := false
	for _, entry := range report.Timeline {
		style := kubectl.Plain
		if entry.Ahead {
			style = kubectl.Faint
			if !ahead {
				p.line("  ", fmt.Sprintf(columns, stampText(report.Now), "now"), "", "")
			}
			ahead = true
		}
		text := entry.Text
		if wide {
			text += " (" + entry.Where + ")"
		}
		p.line("  ", fmt.Sprintf(columns, stampText(entry.At), fromNow(entry.At, report.Now)), text, style)
	}
}

var limitNames = map[Kind]string{
	ActiveDeadline:      "deadline",
	RunPolicy:           "run policy",
	KueueExecution:      "Kueue",
	RuntimeClock:        "runtime",
	TimeToStay:          "after its end",
	TimeToStaySucceeded: "after its end",
	TimeToStayFailed:    "after its end",
}

func (p *page) limit(limit Limit, now time.Time) {
	const column = "%-15s"
	text := limit.Text
	if !limit.At.IsZero() {
		text = fmt.Sprintf("%s, %s: %s", stampText(limit.At), fromNow(limit.At, now), text)
	}
	p.line("  ", fmt.Sprintf(column, limitNames[limit.Kind]), text, "")
	var by []string
	if limit.Seconds != nil {
		by = append(by, exact(time.Duration(*limit.Seconds)*time.Second))
	}
	if limit.DecidedBy != "" {
		by = append(by, "decided by "+limit.DecidedBy)
	}
	if limit.Where != "" {
		by = append(by, "in "+limit.Where)
	}
	if len(by) > 0 {
		p.line("  ", fmt.Sprintf(column, ""), strings.Join(by, ", "), kubectl.Faint)
	}
}

func (p *page) content(content Content) {
	const column = "%-15s"
	put := func(name, text string, style kubectl.Colour) { p.line("  ", fmt.Sprintf(column, name), text, style) }
	put("runtime", content.Runtime, "")
	if content.Revision != "" {
		put("revision", content.Revision, "")
	}
	from := content.Text
	if !content.SealedAt.IsZero() {
		from += ", at " + stampText(content.SealedAt)
	}
	put("content", from, "")
	switch {
	case content.Gone:
		put("runtime now", "gone", kubectl.Yellow)
	case content.From == kubectl.FromLive:
	case content.Changed == nil:
		put("runtime now", "whether it has changed since is not known", "")
	case *content.Changed:
		put("runtime now", "changed since: revision "+content.LiveRevision, kubectl.Yellow)
	default:
		put("runtime now", "the same", "")
	}
	if content.Next != "" && content.Next != content.From {
		put("when resumed", textOf(content.Next), "")
	}
	for i, image := range content.Images {
		name := ""
		if i == 0 {
			name = "images"
		}
		put(name, image.Container+"  "+image.Image, "")
	}
}

func (p *page) findings(findings []Finding) {
	if len(findings) == 0 {
		p.line("  ", "nothing", "", "")
	}
	for _, finding := range findings {
		style := kubectl.Plain
		if finding.Level == Warning {
			style = kubectl.Yellow
		}
		const column = "%-9s"
		p.line("  ", fmt.Sprintf(column, finding.Level), finding.Text, style)
		if finding.Do != "" {
			p.line("  ", fmt.Sprintf(column, ""), "to do: "+finding.Do, "")
		}
	}
}

func (p *page) title(text string) {
	p.write("")
	p.write(p.Paint(kubectl.Bold, text))
}

// line writes an indent, a head, and a text that goes on in lines below itself where the terminal is
// too narrow.
func (p *page) line(indent, head, text string, style kubectl.Colour) {
	text = kubectl.Clean(text)
	below := len(indent) + len([]rune(head))
	if p.Width > 0 && p.Width-below < 24 {
		// There is no room beside the head.
		p.write(strings.TrimRight(indent+head, " "))
		if text == "" {
			return
		}
		for _, part := range kubectl.Wrap(text, p.Width-len(indent)-2) {
			p.write(indent + "  " + p.Paint(style, part))
		}
		return
	}
	width := 0
	if p.Width > 0 {
		width = p.Width - below
	}
	for i, part := range kubectl.Wrap(text, width) {
		if i > 0 {
			head = strings.Repeat(" ", len([]rune(head)))
		}
		p.write(strings.TrimRight(indent+head+p.Paint(style, part), " "))
	}
}

func (p *page) write(line string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, line)
	}
}

// stampText writes an instant in full.
func stampText(at time.Time) string { return at.UTC().Format(time.RFC3339) }
