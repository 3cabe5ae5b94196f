package diff

import "github.com/signalbox-dev/signalbox/internal/kubectl"

// Exit codes, as those of diff. All errors but those of exit have that of trouble.
const (
	exitSame      = 0
	exitDifferent = 1
	exitTrouble   = 2
)

// exit returns the error that ends the command with this code and says nothing more.
func exit(code int) error {
	if code == exitSame {
		return nil
	}
	return &kubectl.ExitError{Code: code}
}
