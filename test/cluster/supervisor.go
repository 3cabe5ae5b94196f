package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// supervisor ends a cluster's processes and removes its folder when this
// process closes it or dies, be it by SIGKILL. It is a shell that waits for the
// end of a pipe: only this process holds the write end, and the kernel closes
// it in every case.
//
// All parts of the cluster run in one process group, so that one kill reaches
// them, also a part that was being started at that moment. The group's leader
// is a process that does nothing: the shell cannot lead it, since it must
// outlive the kill to remove the folder.
type supervisor struct {
	group int
	pipe  *os.File
	cmds  []*exec.Cmd
}

// The folder is removed in a loop, since a dying process may still add a file.
const supervisorScript = `trap '' HUP INT TERM
read -r line
kill -9 "-$1"
tries=0
while [ -e "$2" ] && [ $tries -lt 100 ]; do
	rm -rf "$2" || sleep 1
	tries=$((tries + 1))
done`

const holderScript = `trap '' HUP INT TERM
read -r line`

// supervise starts a supervisor for the folder dir.
func supervise(dir string) (*supervisor, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = read.Close() }()
	s := &supervisor{pipe: write}
	start := func(script string, args ...string) (int, error) {
		cmd := exec.Command("/bin/sh", append([]string{"-c", script, "cluster-supervisor"}, args...)...)
		cmd.Stdin = read
		cmd.Dir = "/"
		// A group of its own keeps the terminal's Ctrl-C away from it.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return 0, fmt.Errorf("starting the cluster's supervisor: %w", err)
		}
		s.cmds = append(s.cmds, cmd)
		return cmd.Process.Pid, nil
	}
	if s.group, err = start(holderScript); err == nil {
		_, err = start(supervisorScript, strconv.Itoa(s.group), dir)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Close kills what is left of the cluster's processes, removes its folder and
// waits for both. A second call does nothing.
func (s *supervisor) Close() error {
	if s.pipe == nil {
		return nil
	}
	_ = s.pipe.Close()
	s.pipe = nil
	for _, cmd := range s.cmds {
		_ = cmd.Wait() // the holder is killed with its group: its status says nothing
	}
	return nil
}
