package kubectl

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// newTerminal opens a terminal of this size.
func newTerminal(t *testing.T, columns, rows uint16) *os.File {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { controller.Close() })
	descriptor := int(controller.Fd())
	if err := unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(descriptor, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(descriptor, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal
}

func TestTerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		env    map[string]string
		system string
		want   Terminal
	}{
		"that can all":        {map[string]string{"TERM": "xterm"}, "linux", Terminal{Colour: true, Redraws: true}},
		"dumb":                {map[string]string{"TERM": "dumb"}, "linux", Terminal{}},
		"without a name":      {nil, "linux", Terminal{}},
		"of Windows":          {nil, "windows", Terminal{Colour: true, Redraws: true}},
		"for who dislikes":    {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, "linux", Terminal{Redraws: true}},
		"NO_COLOR that is ''": {map[string]string{"TERM": "xterm", "NO_COLOR": ""}, "linux", Terminal{Colour: true, Redraws: true}},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			want.Width, want.Height = 97, 31
			got := terminalOf(newTerminal(t, 97, 31), func(name string) string { return tc.env[name] }, tc.system)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
