package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// readyTimeout bounds how long a part may take until it is ready. It is long,
// since a loaded machine of two cores starts many parts at once; a part that
// exits is noticed at once.
const readyTimeout = 4 * time.Minute

// Process is one part of a cluster. Its methods may be called from any
// goroutine, but not Start and Stop of the same part at the same time.
type Process struct {
	// Name is the name of the program, such as kube-apiserver.
	Name string
	// LogPath is the file that holds what the part prints, over all its starts.
	LogPath string
	// MetricsURL is where a part of signalbox serves its Prometheus metrics (plain
	// HTTP), such as http://127.0.0.1:20001/metrics. Empty for all other parts.
	MetricsURL string

	path string
	args []string
	env  []string
	dir  string
	// group is the process group that the supervisor kills.
	group  int
	report func(format string, args ...any)
	// before runs before each start; ready is asked until it returns nil.
	before func(context.Context) error
	// probe is the URL of the readiness probe of a part of signalbox.
	probe string
	ready func(context.Context) error

	mu       sync.Mutex
	cmd      *exec.Cmd
	done     chan struct{}
	stopping bool
}

// Start starts the part, with the same command and ports as before, and returns
// when it is ready: it says so itself, and each of its webhooks answers. It is
// an error if it runs already, exits, or is not ready within two minutes; such
// an error ends with the last lines of its log.
func (p *Process) Start(ctx context.Context) error {
	if p.before != nil {
		if err := p.before(ctx); err != nil {
			return fmt.Errorf("before starting %s: %w", p.Name, err)
		}
	}
	cmd, done, err := p.launch()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	err = poll(ctx, p.ready)
	select {
	case <-done:
		return fmt.Errorf("%s exited before it was ready (%s), its log ends with:\n%s", p.Name, cmd.ProcessState, p.logTail())
	default:
	}
	if err != nil {
		return fmt.Errorf("%s does not get ready: %w; its log ends with:\n%s", p.Name, err, p.logTail())
	}
	return nil
}

func (p *Process) launch() (*exec.Cmd, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil, nil, errors.New("it runs already")
	}
	log, err := os.OpenFile(p.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.env, p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: p.group}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	p.cmd, p.done, p.stopping = cmd, done, false
	go func() {
		_ = cmd.Wait()
		close(done)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.cmd == cmd && !p.stopping {
			p.report("%s exited by itself: %s", p.Name, cmd.ProcessState)
		}
	}()
	return cmd, done, nil
}

// Stop asks the part to end (SIGTERM) and waits until it has. It returns nil at
// once when the part does not run, and an error when ctx ends first; the part
// may then still run.
func (p *Process) Stop(ctx context.Context) error {
	done := p.signal(syscall.SIGTERM)
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping %s: %w", p.Name, ctx.Err())
	}
}

// Kill ends the part without warning (SIGKILL), as a crash of its node would,
// and waits until it is gone.
func (p *Process) Kill() {
	if done := p.signal(syscall.SIGKILL); done != nil {
		<-done
	}
}

// Running says whether the part runs: it was started, was not stopped and did
// not exit by itself.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal returns nil when the part does not run.
func (p *Process) signal(s syscall.Signal) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	p.stopping = true
	_ = p.cmd.Process.Signal(s) // fails only when it has just ended
	return p.done
}

func (p *Process) logTail() string {
	data, err := os.ReadFile(p.LogPath)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if len(lines) > 25 {
		lines = lines[len(lines)-25:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// poll calls check until it returns nil, or ctx ends: the error is then the last
// one of check.
func poll(ctx context.Context, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
