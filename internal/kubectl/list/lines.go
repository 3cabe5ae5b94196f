package list

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// What a line of --watch says of a TrainJob in the place of its state, when it is not listed any more.
const (
	// Deleted: it is not there any more.
	Deleted kubectl.State = "Deleted"
	// Unselected: it is there, and does not match the selectors any more.
	Unselected kubectl.State = "Unselected"
	// Left: it is not listed any more, and whether it is there could not be read.
	Left kubectl.State = "Left"
)

// lines are the rows that were written, where each change is a new line.
type lines struct {
	written map[types.UID]Row
	// gone are lines to be written before all others: a TrainJob of the same name may have come since.
	gone []Row
}

// remove notes that a TrainJob is not listed any more.
func (l *lines) remove(row Row, state kubectl.State) {
	row.State = state
	row.SecondsLeft, row.Position = nil, 0
	l.gone = append(l.gone, row)
	delete(l.written, row.UID)
}

// next returns the lines to be written when these are the rows: of those that are gone, in the order in
// which they went, and of those that are new or not what they were, in theirs.
func (l *lines) next(rows []Row) []Row {
	if l.written == nil {
		l.written = make(map[types.UID]Row, len(rows))
	}
	out := l.gone
	l.gone = nil
	for _, row := range rows {
		news := newsOf(row)
		if was, found := l.written[row.UID]; !found || was != news {
			l.written[row.UID] = news
			out = append(out, row)
		}
	}
	return out
}

// newsOf returns the part of a row of which a change is worth a line: time that passes, a queue that moves
// and another edit of a runtime that has changed already are not.
func newsOf(row Row) Row {
	row.SecondsLeft, row.Position, row.LiveRevision = nil, 0, ""
	if row.RunsOn == kubectl.FromLive {
		row.Revision = ""
	}
	return row
}
