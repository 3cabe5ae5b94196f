package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// line waits until list --watch has written a line of this TrainJob and state since the last one that was
// waited for, and returns where the line ends.
func (p *process) line(from int, name, state string) int {
	p.s.Helper()
	pattern := regexp.MustCompile(fmt.Sprintf(`(?m)^%s +%s .*\n`, name, state))
	end := 0
	p.s.eventually(state+" "+name, func() (bool, string) {
		out := p.out.String()
		at := pattern.FindStringIndex(out[from:])
		if at != nil {
			end = from + at[1]
		}
		return at != nil, "\n" + out + "\nand on standard error\n" + p.errOut.String()
	})
	return end
}

func TestCLIListWatch(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mine := s.mine()
	s.create("one", mine, suspended(), labelled("team", "vision"), deadline(28800))
	s.becomes("one", trainer.ConditionSuspended, "True/Suspended")
	p := s.start("list", "--watch", "-l", "team=vision")
	at := p.line(0, "one", "Suspended")
	s.resume("one")
	at = p.line(at, "one", "Running")

	// Deleted, and created anew under its name.
	s.remove("one")
	s.create("one", mine, suspended(), labelled("team", "vision"))
	at = p.line(at, "one", "Deleted")
	at = p.line(at, "one", "Suspended")

	s.patch("one", `{"metadata":{"labels":{"team":"speech"}}}`)
	at = p.line(at, "one", "Unselected")
	s.patch("one", `{"metadata":{"labels":{"team":"vision"}}}`)
	p.line(at, "one", "Suspended")
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d after an interrupt", code)
	}
	if out := p.out.String(); strings.Count(out, "NAME ") != 1 || strings.Contains(out, "\x1b") || p.errOut.String() != "" {
		t.Errorf("headers or escape sequences in\n%s\nstandard error\n%s", out, p.errOut.String())
	}
}

// The rights are taken while it watches: what was there stays, and a note says so.
func TestCLIListWatchRevoked(t *testing.T) {
	s := withoutSignalbox(t)
	s.create("one", s.mine(), suspended())
	rules := may(trainer.GroupVersion.Group, "trainjobs")
	user := s.asIn(rules)
	p := user.start("list", "--watch")
	at := p.line(0, "one", "Suspended")
	user.revoke(rules)
	// A watch that is open lasts on, as long as the API server does.
	s.cluster.APIServer.Kill()
	s.must(s.cluster.APIServer.Start(s.ctx))
	s.eventually("a note", func() (bool, string) {
		text := p.errOut.String()
		return strings.Contains(text, "note: TrainJobs cannot be followed since "), text
	})
	if out := p.out.String()[at:]; strings.Contains(out, "Deleted") {
		t.Errorf("what may not be read is said to be deleted:\n%s", out)
	}
}

// On a terminal the list is drawn over what was there.
func TestCLIListWatchTerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mine := s.mine()
	s.create("one", mine, suspended(), deadline(28800))
	s.becomes("one", trainer.ConditionSuspended, "True/Suspended")
	p := s.onTerminal(80, 10, nil, "list", "-w")
	p.shows("1 TrainJob: 1 suspended")
	s.resume("one")
	p.shows("1 TrainJob: 1 running")
	p.shows("\x1b[3A\r")
	for i := range 9 {
		s.create(fmt.Sprintf("more-%d", i), mine, suspended())
	}
	p.shows("10 TrainJobs: 1 running, 9 suspended")
	p.shows("... and 4 more")
	p.resize(30, 10)
	p.shows("10 TrainJobs: 1 run…")
	p.interrupt()
	if _, code := p.ends(); code != 0 {
		t.Errorf("exit code %d after an interrupt", code)
	}
}
