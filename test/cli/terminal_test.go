package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// terminal is the plugin at work in a pseudo terminal.
type terminal struct {
	s      *scene
	cmd    *exec.Cmd
	master *os.File
	out    shared
	read   chan struct{}
}

// onTerminal starts the plugin, built, in a terminal of this many columns and rows, with these variables
// (NAME=VALUE) besides. What it prints is in out, with the carriage returns that the terminal adds.
func (s *scene) onTerminal(columns, rows int, env []string, args ...string) *terminal {
	s.Helper()
	path, err := binary()
	s.must(err)
	master, slave, err := openTerminal(columns, rows)
	if errors.Is(err, errors.ErrUnsupported) {
		s.Skip("pseudo terminals are opened as Linux does")
	}
	s.must(err)
	p := &terminal{s: s, master: master, read: make(chan struct{})}
	p.cmd = exec.CommandContext(s.ctx, path, s.arguments(args)...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = p.cmd.Start()
	s.must(errors.Join(err, slave.Close()))
	go func() {
		defer close(p.read)
		// It ends with EIO when the last process has closed the terminal.
		for buffer := make([]byte, 4096); ; {
			n, err := master.Read(buffer)
			_, _ = p.out.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	s.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.read
		_ = p.cmd.Wait()
		_ = master.Close()
	})
	return p
}

// shows waits until the terminal got this text.
func (p *terminal) shows(text string) {
	p.s.Helper()
	p.s.eventually("the text "+text, func() (bool, string) {
		out := p.out.String()
		return strings.Contains(out, text), fmt.Sprintf("%q", out)
	})
}

// resize gives the terminal another size.
func (p *terminal) resize(columns, rows int) {
	p.s.Helper()
	p.s.must(setSize(p.master, columns, rows))
}

// interrupt types Ctrl-C.
func (p *terminal) interrupt() {
	p.s.Helper()
	_, err := p.master.WriteString("\x03")
	p.s.must(err)
}

// ends waits until the plugin ends by itself, and returns all that the terminal got, with plain ends of
// lines, and the exit code.
func (p *terminal) ends() (text string, code int) {
	p.s.Helper()
	<-p.read
	err := p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.s.Fatal(err)
	}
	return strings.ReplaceAll(p.out.String(), "\r\n", "\n"), p.cmd.ProcessState.ExitCode()
}

// The harness shows what a terminal shows.
func TestCLITerminal(t *testing.T) {
	t.Parallel()
	s := withoutTrainer(t)
	text, code := s.onTerminal(100, 20, nil, "version").ends()
	if want := "kubectl-signalbox "; !strings.HasPrefix(text, want) || code != 0 {
		t.Errorf("exit code %d, text %q, want it to begin with %q", code, text, want)
	}
}
