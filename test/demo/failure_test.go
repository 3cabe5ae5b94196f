package main

import "testing"

func TestTail(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"longer":  {"a\nb\nc\n", "b\nc"},
		"shorter": {"a", "a"},
		"empty":   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(tail([]byte(tc.text), 2)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
