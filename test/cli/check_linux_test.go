package cli_test

import "testing"

// On a terminal results have colours, and what does not fit goes on below itself.
func TestCLICheckOnATerminal(t *testing.T) {
	s := withoutTrainer(t)
	for name, tc := range map[string]struct {
		columns int
		env     []string
		args    []string
	}{
		"check-narrow":           {columns: 60},
		"check-narrower":         {columns: 30},
		"check-terminal":         {columns: 300},
		"check-without-colour":   {columns: 60, env: []string{"NO_COLOR=1"}},
		"check-without-headers":  {columns: 60, env: []string{"TERM=dumb"}, args: []string{"--no-headers"}},
		"check-wide-on-a-narrow": {columns: 60, args: []string{"-o", "wide"}},
	} {
		text, code := s.onTerminal(tc.columns, 24, tc.env, append([]string{"check"}, tc.args...)...).ends()
		if !s.is(name, text) || code != 1 {
			t.Errorf("not as in %s: exit code %d\n%s", name, code, text)
		}
	}
	for _, format := range []string{"yaml", "json"} {
		text, code := s.onTerminal(60, 24, nil, "check", "-o", format).ends()
		if !s.is("check-"+format, text) || code != 1 {
			t.Errorf("-o %s: exit code %d\n%s", format, code, text)
		}
	}
}
