//go:build !windows

package kubectl

// heedsSequences is for consoles that need to be told to.
func heedsSequences(uintptr) bool { return true }

// writesUnicode is for consoles that do not go by the locale.
func writesUnicode() bool { return false }
