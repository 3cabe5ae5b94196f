package cluster

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress writes lines of progress, one at a time.
type progress struct {
	mu      sync.Mutex
	out     io.Writer
	started time.Time
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	return &progress{out: out, started: time.Now()}
}

// Write takes whole lines.
func (p *progress) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := fmt.Fprintf(p.out, "%5.1fs %s", time.Since(p.started).Seconds(), line); err != nil {
		return 0, err
	}
	return len(line), nil
}

func (p *progress) step(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format+"\n", args...)
}
