package kubectl

import "golang.org/x/sys/windows"

// heedsSequences has the console heed escape sequences, which that of Windows 10 and later can.
func heedsSequences(console uintptr) bool {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(console), &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(windows.Handle(console), mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// writesUnicode tells whether the console takes UTF-8.
func writesUnicode() bool {
	const utf8 = 65001
	page, err := windows.GetConsoleOutputCP()
	return err == nil && page == utf8
}
