package kubectl

import "testing"

func TestClean(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain text":                 {"eight-hours", "eight-hours"},
		"nothing":                    {"", ""},
		"indented":                   {"  spec:", "  spec:"},
		"a colour":                   {"\x1b[31mred\x1b[0m", "[31mred[0m"},
		"a title of the window":      {"\x1b]0;owned\x07text", "]0;ownedtext"},
		"a sequence of C1":           {"a\u009b31mb", "a31mb"},
		"line ends and tabs":         {"a\nb\tc\r\nd", "a b c d"},
		"line ends of Unicode":       {"a\u2028b\u2029c\u0085d", "a b c d"},
		"back over what was written": {"no\b\b\x7fyes", "noyes"},
		"from right to left":         {"a\u202eb\u2066c\u2069d\u200fe\u061cf", "abcdef"},
		"nothing that can be seen":   {"a\u200bb\ufeffc\u200dd", "abcd"},
		"no UTF-8":                   {"a\xffb\x9bc", "a\ufffdb\ufffdc"},
		"other languages":            {"Zug 列車 поезд", "Zug 列車 поезд"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(tc.text); got != tc.want {
				t.Errorf("Clean(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		clean := Clean(text)
		for _, r := range clean {
			if r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u202e' || r == '\u2066' {
				t.Errorf("Clean(%q) has %q", text, r)
			}
		}
		if again := Clean(clean); again != clean {
			t.Errorf("Clean(%q) = %q, and of that %q", text, clean, again)
		}
	})
}

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "列車": 4, "e\u0301": 1, "поезд": 5} {
		if got := Columns(text); got != want {
			t.Errorf("Columns(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		terminal Terminal
		want     string
	}{
		"no terminal":            {"a long text", Terminal{}, "a long text"},
		"room enough":            {"a long text", Terminal{Width: 11}, "a long text"},
		"too long":               {"a long text", Terminal{Width: 10}, "a long te~"},
		"with characters":        {"a long text", Terminal{Width: 10, Unicode: true}, "a long te…"},
		"half of a wide one":     {"列車列車", Terminal{Width: 4, Unicode: true}, "列…"},
		"with an escape":         {"a\x1b[1mb", Terminal{Width: 20}, "a[1mb"},
		"in one line, then long": {"a\nb\nc", Terminal{Width: 4}, "a b~"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Cut(tc.text, tc.terminal); got != tc.want {
				t.Errorf("Cut = %q, want %q", got, tc.want)
			}
		})
	}
}
