package list

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// brief is what a line says, shortened.
func brief(rows []Row) []string {
	var out []string
	for _, row := range rows {
		out = append(out, string(row.State)+" "+row.Name+" "+string(row.UID))
	}
	return out
}

func TestLines(t *testing.T) {
	running := Row{Name: "a", UID: "1", State: kubectl.Running, SecondsLeft: ptr.To[int64](60), Position: 0}
	queued := Row{Name: "b", UID: "2", State: kubectl.Queued, Position: 4, RunsOn: kubectl.FromLive, Revision: "x", LiveRevision: "x"}
	var l lines
	step := func(name string, want []string, rows ...Row) {
		t.Helper()
		if diff := cmp.Diff(want, brief(l.next(rows))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	step("at first", []string{"Running a 1", "Queued b 2"}, running, queued)
	step("nothing has changed", nil, running, queued)

	later := running
	later.SecondsLeft = ptr.To[int64](30)
	moved := queued
	moved.Position, moved.Revision, moved.LiveRevision = 3, "y", "y"
	step("time has passed, the queue has moved, the runtime of what waits was edited", nil, later, moved)

	admitted := moved
	admitted.State, admitted.Position = kubectl.Running, 0
	step("one was admitted", []string{"Running b 2"}, admitted, later)

	l.remove(later, Deleted)
	again := running
	again.UID = "3"
	step("one was deleted, and there is another of its name", []string{"Deleted a 1", "Running a 3"}, admitted, again)

	l.remove(admitted, Unselected)
	step("one is not selected any more", []string{"Unselected b 2"}, again)
	step("it is again", []string{"Running b 2"}, again, admitted)
}
