//go:build !linux

package cli_test

import (
	"errors"
	"os"
)

// Each system makes pseudo terminals in its own way: tests that need one are skipped.
func openTerminal(int, int) (master, slave *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}

func setSize(*os.File, int, int) error { return errors.ErrUnsupported }
