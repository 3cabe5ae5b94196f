package kubectl

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// Notes collect what could not be found out, and what else is to be said beside an answer: each once. They
// may be added to from several goroutines.
type Notes struct {
	mu      sync.Mutex
	all     []string
	printed int
}

// Add adds a note, one sentence without a full stop, unless it is there.
func (n *Notes) Add(note string) {
	note = Clean(note)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.all, note) {
		n.all = append(n.all, note)
	}
}

// All returns the notes, in the order in which they came.
func (n *Notes) All() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// Print writes the notes that it has not written yet, a line each.
func (n *Notes) Print(out io.Writer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, note := range n.all[n.printed:] {
		fmt.Fprintln(out, "note: "+note)
	}
	n.printed = len(n.all)
}
