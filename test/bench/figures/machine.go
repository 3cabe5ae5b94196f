package figures

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// ThisMachine says on what machine and when this runs. It needs Linux's /proc.
func ThisMachine() (Machine, error) {
	machine, err := machineOf(os.DirFS("/proc"))
	if err != nil {
		return Machine{}, fmt.Errorf("read about this machine: %w", err)
	}
	machine.Processors, machine.Go, machine.Date = runtime.NumCPU(), runtime.Version(), time.Now().Format(time.DateOnly)
	return machine, nil
}

// machineOf reads what Linux tells in /proc.
func machineOf(proc fs.FS) (Machine, error) {
	var m Machine
	texts := map[string]string{}
	for _, name := range []string{"cpuinfo", "meminfo", "loadavg", "sys/kernel/osrelease"} {
		content, err := fs.ReadFile(proc, name)
		if err != nil {
			return m, err
		}
		texts[name] = string(bytes.TrimSpace(content))
	}
	m.Kernel = texts["sys/kernel/osrelease"]
	// Linux tells no model on arm64.
	if m.CPU = valueOf(texts["cpuinfo"], "model name"); m.CPU == "" {
		m.CPU = runtime.GOARCH
	}
	kibibytes, err := strconv.ParseInt(strings.TrimSuffix(valueOf(texts["meminfo"], "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return m, fmt.Errorf("meminfo: %w", err)
	}
	m.Memory = kibibytes << 10
	first, _, _ := strings.Cut(texts["loadavg"], " ")
	if m.Load, err = strconv.ParseFloat(first, 64); err != nil {
		return m, fmt.Errorf("loadavg: %w", err)
	}
	return m, nil
}

// valueOf returns the value in the first line KEY: VALUE; empty where there is none.
func valueOf(text, key string) string {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String describes the machine in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d processors, %.1f GiB of memory, Linux %s, %s, load %.2f before",
		m.CPU, m.Processors, float64(m.Memory)/(1<<30), m.Kernel, m.Go, m.Load)
}
