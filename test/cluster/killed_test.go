package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// childVariable makes the test binary start a cluster and then wait for its own
// death, see TestKilledProcessLeavesNothing.
const childVariable = "SIGNALBOX_TEST_CLUSTER_CHILD"

// childReport is what the child prints, as a line of JSON, when its cluster is up.
type childReport struct {
	Dir  string
	Pids []int
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	if err := runChild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild() error {
	c, err := Start(context.Background(), Options{Bare: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	report := childReport{Dir: c.Dir}
	for _, p := range c.parts {
		report.Pids = append(report.Pids, p.cmd.Process.Pid)
	}
	for _, cmd := range c.supervisor.cmds {
		report.Pids = append(report.Pids, cmd.Process.Pid)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	select {}
}

func TestKilledProcessLeavesNothing(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var report childReport
	decodeErr := json.NewDecoder(out).Decode(&report)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	if decodeErr != nil {
		t.Fatalf("the child did not start a cluster: %v", decodeErr)
	}
	if len(report.Pids) != 4 {
		t.Errorf("processes of the cluster: got %v, want etcd, the API server and two of the supervisor", report.Pids)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := poll(ctx, func(context.Context) error { return leftovers(report) }); err != nil {
		t.Errorf("after SIGKILL: %v", err)
	}
}

func leftovers(report childReport) error {
	var left []error
	if _, err := os.Stat(report.Dir); !errors.Is(err, os.ErrNotExist) {
		left = append(left, fmt.Errorf("the folder %s is there (%w)", report.Dir, err))
	}
	for _, pid := range report.Pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			left = append(left, fmt.Errorf("process %d is there (%w)", pid, err))
		}
	}
	return errors.Join(left...)
}
