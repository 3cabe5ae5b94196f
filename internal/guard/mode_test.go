package guard

import (
	"flag"
	"io"
	"testing"
)

// A flag takes each mode by its name, and nothing else.
func TestMode(t *testing.T) {
	parse := func(args ...string) (Mode, string, error) {
		var mode Mode
		set := flag.NewFlagSet("test", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		set.TextVar(&mode, "in-use", Deny, "")
		err := set.Parse(args)
		return mode, set.Lookup("in-use").DefValue, err
	}
	if mode, text, err := parse(); mode != Deny || text != "Deny" || err != nil {
		t.Errorf("by default %q, shown as %q, %v", mode, text, err)
	}
	for _, want := range []Mode{Deny, Warn, Allow} {
		if mode, _, err := parse("-in-use=" + string(want)); mode != want || err != nil {
			t.Errorf("%s: %q, %v", want, mode, err)
		}
		if text, err := want.MarshalText(); string(text) != string(want) || err != nil {
			t.Errorf("%s is written as %q, %v", want, text, err)
		}
	}
	for _, text := range []string{"", "deny", "DENY", " Deny", "Never"} {
		mode, _, err := parse("-in-use=" + text)
		want := `invalid value "` + text + `" for flag -in-use: must be Deny, Warn or Allow`
		if mode != Deny || err == nil || err.Error() != want {
			t.Errorf("%q: %q, %v; want %s", text, mode, err, want)
		}
	}
}
