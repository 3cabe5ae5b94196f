package list

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// look is how rows are shown.
type look struct {
	// now is the server's time, zone that of its reader.
	now  time.Time
	zone *time.Location
	// unicode: a bar is drawn by blocks, not by letters. wide: times are written in full.
	unicode, wide bool
}

// column is one of what list shows of a TrainJob.
type column struct {
	header string
	// rank is by how much it is missed where there is no room for all: 1 the most.
	rank int
	// shown tells when there is such a column; nil is always.
	shown func(shape) bool
	text  func(*Row, look) string
	// colour is how the text is painted; nil is not at all.
	colour func(*Row, look) kubectl.Colour
}

func ifWide(s shape) bool          { return s.wide }
func ifAllNamespaces(s shape) bool { return s.allNamespaces }
func ifKueue(s shape) bool         { return s.kueue }

// columns are all that there are, from the left.
var columns = []column{
	{header: "NAMESPACE", rank: 2, shown: ifAllNamespaces, text: func(r *Row, _ look) string { return r.Namespace }},
	{header: "NAME", rank: 1, text: func(r *Row, _ look) string { return r.Name }},
	{header: "STATE", rank: 1, text: func(r *Row, _ look) string { return string(r.State) }, colour: stateColour},
	{header: "SINCE", rank: 9, text: func(r *Row, l look) string { return l.time(r.ActiveSince) }},
	{header: "DEADLINE", rank: 5, text: func(r *Row, l look) string { return l.time(r.Deadline) }},
	{header: "LEFT", rank: 2, text: leftOf, colour: leftColour},
	{header: "OF LIMIT", rank: 3, text: barOf, colour: leftColour},
	{header: "LIMIT", rank: 10, text: limitOf},
	{header: "FROM", rank: 7, text: fromOf},
	{header: "RUNTIME", rank: 6, text: runtimeOf},
	{header: "CHANGED", rank: 4, text: changedOf, colour: changedColour},
	{header: "QUEUE", rank: 8, shown: ifKueue, text: func(r *Row, _ look) string { return orNone(r.Queue) }},
	{header: "POSITION", rank: 8, shown: ifKueue, text: positionOf},
	{header: "FINISHED", rank: 11, shown: ifWide, text: func(r *Row, l look) string { return l.time(r.Finished) }},
	{header: "RUNS ON", rank: 12, shown: ifWide, text: func(r *Row, _ look) string { return string(r.RunsOn) }},
	{header: "REVISION", rank: 13, shown: ifWide, text: func(r *Row, _ look) string { return orNone(r.Revision) }},
	{header: "AGE", rank: 14, shown: ifWide, text: func(r *Row, l look) string { return duration.HumanDuration(l.now.Sub(r.Created)) }},
}

func (l look) time(at time.Time) string {
	if l.wide {
		return exactly(at, l.zone)
	}
	return instant(at, l.now, l.zone)
}

// orNone is the text, or what stands for none: an empty cell would shift the others for who reads them
// by a script.
func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func leftOf(r *Row, l look) string {
	if !r.counts() {
		return "-"
	}
	return leftText(r.left(l.now))
}

func barOf(r *Row, l look) string {
	if !r.counts() || r.limit <= 0 {
		return "-"
	}
	return bar(r.left(l.now), r.limit, l.unicode)
}

func leftColour(r *Row, l look) kubectl.Colour {
	if !r.counts() {
		return kubectl.Plain
	}
	switch urgencyOf(r.left(l.now), r.limit) {
	case soon:
		return kubectl.Yellow
	case urgent, counted:
		return kubectl.Red
	}
	return kubectl.Green
}

func stateColour(r *Row, _ look) kubectl.Colour {
	switch r.State {
	case kubectl.Running:
		return kubectl.Green
	case kubectl.Finishing:
		return kubectl.Yellow
	case kubectl.Failed, kubectl.DeadlineExceeded:
		return kubectl.Red
	}
	return kubectl.Plain
}

func limitOf(r *Row, _ look) string {
	if r.limit <= 0 {
		return "-"
	}
	return duration.HumanDuration(r.limit)
}

// fromOf says who gave the limit, or where the author of the TrainJob set it.
func fromOf(r *Row, l look) string {
	switch {
	case r.LimitSource == "":
		return "-"
	case l.wide:
		return deadline.Decision{Source: deadline.Source(r.LimitSource), By: r.LimitBy}.Origin()
	case r.LimitBy != "":
		return r.LimitBy
	case r.LimitSource == string(deadline.SourceAnnotation):
		return "annotation"
	}
	return "spec"
}

// runtimeOf names the runtime; its kind is left out where that is the usual one.
func runtimeOf(r *Row, l look) string {
	if l.wide {
		return r.Runtime
	}
	return strings.TrimPrefix(r.Runtime, runtimeKinds[0]+"/")
}

func changedOf(r *Row, _ look) string {
	switch r.Changed {
	case Unknown:
		return "?"
	case Follows:
		return "-"
	}
	return string(r.Changed)
}

func changedColour(r *Row, _ look) kubectl.Colour {
	switch r.Changed {
	case HasChanged:
		return kubectl.Yellow
	case Gone:
		return kubectl.Red
	}
	return kubectl.Plain
}

func positionOf(r *Row, _ look) string {
	if r.Position == 0 {
		return "-"
	}
	return strconv.Itoa(r.Position)
}
