package kubectl

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestTerminalThatIsNone(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("TERM", "xterm")
	for name, streams := range map[string]genericiooptions.IOStreams{"a file": {Out: file}, "a buffer": {Out: &bytes.Buffer{}}} {
		if diff := cmp.Diff(Terminal{Unicode: true}, (&Options{IOStreams: streams}).Terminal()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestUnicode(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"no locale":            {nil, false},
		"C":                    {map[string]string{"LANG": "C"}, false},
		"UTF-8":                {map[string]string{"LANG": "en_US.UTF-8"}, true},
		"as some write it":     {map[string]string{"LANG": "C.utf8"}, true},
		"of characters":        {map[string]string{"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, true},
		"LC_ALL comes first":   {map[string]string{"LC_ALL": "POSIX", "LC_CTYPE": "C.UTF-8", "LANG": "C.UTF-8"}, false},
		"empty is none at all": {map[string]string{"LC_ALL": "", "LANG": "C.UTF-8"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := func(name string) string { return tc.env[name] }
			if got := terminalOf(&bytes.Buffer{}, env, "linux"); got.Unicode != tc.want {
				t.Errorf("Unicode %v, want %v", got.Unicode, tc.want)
			}
		})
	}
}

func TestPaint(t *testing.T) {
	colours := Terminal{Colour: true}
	for _, tc := range []struct {
		got, want string
	}{
		{colours.Paint(Red, "text"), "\x1b[31mtext\x1b[0m"},
		{colours.Paint(Plain, "text"), "text"},
		{colours.Paint(Red, ""), ""},
		{Terminal{}.Paint(Red, "text"), "text"},
	} {
		if tc.got != tc.want {
			t.Errorf("%q, want %q", tc.got, tc.want)
		}
	}
}
