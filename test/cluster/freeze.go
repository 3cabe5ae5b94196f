package cluster

import "syscall"

// Freeze stops the part where it is (SIGSTOP): its connections stay open and nothing is answered,
// as of a node that hangs. Thaw lets it go on; Kill ends it all the same, Stop waits for Thaw.
func (p *Process) Freeze() error { return p.interrupt(syscall.SIGSTOP) }

// Thaw lets a part that Freeze stopped go on (SIGCONT), with all that has come in meanwhile.
func (p *Process) Thaw() error { return p.interrupt(syscall.SIGCONT) }

// interrupt sends a signal that does not end the part. It is an error when it does not run.
func (p *Process) interrupt(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return syscall.ESRCH
	}
	return p.cmd.Process.Signal(s)
}
