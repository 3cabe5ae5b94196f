package guard

import "fmt"

// Mode says what becomes of what breaks the unfinished TrainJobs of a runtime.
type Mode string

// The modes.
const (
	// Deny refuses it.
	Deny Mode = "Deny"
	// Warn lets it pass and warns.
	Warn Mode = "Warn"
	// Allow lets it pass.
	Allow Mode = "Allow"
)

// UnmarshalText implements encoding.TextUnmarshaler, for flags.
func (m *Mode) UnmarshalText(text []byte) error {
	switch mode := Mode(text); mode {
	case Deny, Warn, Allow:
		*m = mode
		return nil
	}
	return fmt.Errorf("must be %s, %s or %s", Deny, Warn, Allow)
}

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m), nil }
