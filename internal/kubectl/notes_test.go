package kubectl

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNotesAreSaidOnce(t *testing.T) {
	notes := &Notes{}
	print := func(want string) {
		t.Helper()
		var out strings.Builder
		notes.Print(&out)
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	print("")
	notes.Add("no right to read JobSets")
	notes.Add("Kueue is\n\x1b[2Jaway")
	notes.Add("no right to read JobSets")
	print("note: no right to read JobSets\nnote: Kueue is [2Jaway\n")
	print("")
	notes.Add("Kueue is [2Jaway")
	notes.Add("one more")
	print("note: one more\n")
	if diff := cmp.Diff([]string{"no right to read JobSets", "Kueue is [2Jaway", "one more"}, notes.All()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNotesOfSeveralAtOnce(t *testing.T) {
	notes := &Notes{}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { notes.Add(fmt.Sprint("note ", i%10)) })
	}
	group.Wait()
	if got := len(notes.All()); got != 10 {
		t.Errorf("%d notes, want 10", got)
	}
}

func TestExitError(t *testing.T) {
	why := errors.New("why")
	if err := (&ExitError{Code: 2, Err: why}); err.Error() != "why" || !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	if err := (&ExitError{Code: 1}); err.Error() != "" || errors.Unwrap(err) != nil {
		t.Errorf("error %v", err)
	}
}
