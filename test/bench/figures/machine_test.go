package figures

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// proc is a /proc with these files, and without those whose text is empty.
func proc(files map[string]string) fstest.MapFS {
	system := fstest.MapFS{}
	for name, text := range map[string]string{
		"cpuinfo":              "processor\t: 0\nmodel\t\t: 2\nmodel name\t: Maker: Processor 1\n\nprocessor\t: 1\nmodel name\t: Processor 2\n",
		"meminfo":              "MemFree:        1 kB\nMemTotal:       2048 kB\n",
		"loadavg":              "0.50 1.15 3.60 1/87 15075\n",
		"sys/kernel/osrelease": "6.1.0-amd64\n",
	} {
		if other, ok := files[name]; ok {
			text = other
		}
		if text != "" {
			system[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return system
}

func TestMachineOf(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  Machine
	}{
		"all of it": {nil, Machine{CPU: "Maker: Processor 1", Memory: 2 << 20, Load: 0.5, Kernel: "6.1.0-amd64"}},
		"a processor without a model": {
			map[string]string{"cpuinfo": "processor\t: 0\nCPU part\t: 0xd0c\n"},
			Machine{CPU: runtime.GOARCH, Memory: 2 << 20, Load: 0.5, Kernel: "6.1.0-amd64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := machineOf(proc(tc.files))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineOfRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no load":         {map[string]string{"loadavg": ""}, "open loadavg"},
		"a load in words": {map[string]string{"loadavg": "high"}, "loadavg: "},
		"no memory":       {map[string]string{"meminfo": "MemFree: 1 kB\n"}, "meminfo: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := machineOf(proc(tc.files)); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %s...", err, tc.want)
			}
		})
	}
}

func TestThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads Linux's /proc")
	}
	m, err := ThisMachine()
	if err != nil {
		t.Fatal(err)
	}
	if m.CPU == "" || m.Processors < 1 || m.Memory < 1<<20 || m.Kernel == "" || m.Go != runtime.Version() || m.Load < 0 ||
		!regexp.MustCompile(`^20\d\d-\d\d-\d\d$`).MatchString(m.Date) {
		t.Errorf("%+v", m)
	}
}
