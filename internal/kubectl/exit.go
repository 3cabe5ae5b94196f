package kubectl

// ExitError ends the process with a code of its own.
type ExitError struct {
	// Code the process exits with: 1 or more.
	Code int
	// Err is said on standard error; nil where all has been said.
	Err error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }
