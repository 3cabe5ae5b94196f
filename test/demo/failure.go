package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// failure is an error that the logs of some parts may explain.
type failure struct {
	err   error
	parts []*cluster.Process
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// tailLines is how many lines of each log are shown.
const tailLines = 10

// reportLogs prints the ends of the logs that may explain the error.
func reportLogs(out io.Writer, err error) {
	var f *failure
	if !errors.As(err, &f) {
		return
	}
	for _, part := range f.parts {
		state := "runs"
		if !part.Running() {
			state = "does not run"
		}
		_, _ = fmt.Fprintf(out, "\n%s (%s), log %s, which goes with the cluster, ends with:\n", part.Name, state, part.LogPath)
		log, err := os.ReadFile(part.LogPath)
		if err != nil {
			log = []byte(err.Error())
		}
		_, _ = fmt.Fprintf(out, "%s\n", tail(log, tailLines))
	}
}

// tail returns the last n lines of the text.
func tail(text []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}
