package list

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// watch starts to show what happens to the scene, and returns what lets something happen and waits until
// it is shown.
func (s *scene) watchHere(t *testing.T, v viewer) (happen func(k *kind, what ...happening)) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{lister: s.lister, viewer: v, do: make(chan func(context.Context)), troubles: map[string]string{}}
	done := make(chan error)
	go func() { done <- w.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.touch = func() { w.post(ctx, func(context.Context) {}) }
	synctest.Wait()
	return func(k *kind, what ...happening) {
		for _, h := range what {
			w.post(ctx, func(ctx context.Context) { w.apply(ctx, k, h) })
		}
		s.touch()
		time.Sleep(frame)
		synctest.Wait()
	}
}

// since returns what was written since it was last asked.
func since(buffer *bytes.Buffer) string {
	text := buffer.String()
	buffer.Reset()
	return text
}

func TestAppended(t *testing.T) {
	s := newScene(t, "")
	synctest.Test(t, func(t *testing.T) {
		happen := s.watchHere(t, &appended{options: s.options})
		same(t, "at first", `
NAME     STATE             SINCE     DEADLINE  LEFT  OF LIMIT    LIMIT  FROM                   RUNTIME  CHANGED  QUEUE  POSITION
limited  Running           12:00:00  13:00:00  15m   ###.......  60m    LifecyclePolicy/night  torch    yes      -      -
free     Running           12:00:00  -         -     -           -      -                      torch    no       -      -
queued   Queued            -         -         -     -           60s    spec                   torch    -        team   1
failed   DeadlineExceeded  12:00:00  -         -     -           60s    annotation             torch    no       -      -
`, since(s.out))

		s.at = s.at.Add(14 * time.Minute)
		s.touch()
		time.Sleep(2 * second)
		synctest.Wait()
		same(t, "time has passed", "", since(s.out))
		s.at = s.at.Add(time.Minute)
		s.touch()
		time.Sleep(second)
		synctest.Wait()
		same(t, "the deadline is reached", `
limited  Finishing         12:00:00  13:00:00  0s    ..........  60m    LifecyclePolicy/night  torch    yes      -      -
`, since(s.out))

		again := builder.TrainJob("ns", "free").UID("another").Created(s.at).Suspended().Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Obj()
		old := builder.TrainJob("ns", "free").Obj()
		happen(s.jobs,
			happening{what: taken, object: stored(t, old), state: Deleted},
			happening{what: put, object: stored(t, again)},
			happening{what: taken, object: stored(t, builder.TrainJob("ns", "failed").Obj()), state: Unselected},
		)
		same(t, "one is replaced, one is not selected any more", `
free     Deleted           12:00:00  -         -     -           -      -                      torch    no       -      -
failed   Unselected        12:00:00  -         -     -           60s    annotation             torch    no       -      -
free     Suspended         -         -         -     -           -      -                      torch    ?        -      -
`, since(s.out))
		same(t, "notes", "", since(s.notes))
	})
}

// Where nothing may be read any more, nothing is gone.
func TestWatchKeepsWhatItSaw(t *testing.T) {
	s := newScene(t, "")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "trainjobs"}, "", errors.New("rights\x1b[2Jrevoked"))
	synctest.Test(t, func(t *testing.T) {
		happen := s.watchHere(t, &appended{options: s.options})
		since(s.out)
		happen(s.jobs, happening{what: failed, err: forbidden}, happening{what: began}, happening{what: failed, err: forbidden})
		same(t, "lines", "", since(s.out))
		notes := since(s.notes)
		if !strings.HasPrefix(notes, "note: TrainJobs cannot be followed since 12:45:00, what is shown of them may be old: ") || strings.Count(notes, "\n") != 1 || strings.Contains(notes, "\x1b") {
			t.Errorf("notes are %q", notes)
		}
		if rows := s.picture.rows(s.at); len(rows) != 4 {
			t.Errorf("%d TrainJobs are left", len(rows))
		}

		happen(s.jobs, happening{what: began}, happening{what: listed, object: stored(t, builder.TrainJob("ns", "new").Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Obj())}, happening{what: ended}, happening{what: well})
		same(t, "notes", "note: all is followed again\n", since(s.notes))
		if out := since(s.out); strings.Count(out, "Deleted") != 4 || !strings.HasPrefix(out, "limited  Deleted ") || !strings.Contains(out, "\nnew ") {
			t.Errorf("after a new list:\n%s", out)
		}

		// What never could be read is a note, once.
		happen(s.sides[0], happening{what: failed, err: forbidden}, happening{what: failed, err: forbidden})
		same(t, "notes", "note: no right to read JobSets\n", since(s.notes))
	})
}

func TestAppendedDocuments(t *testing.T) {
	for output, want := range map[string]string{kubectl.OutputJSON: "{\n", kubectl.OutputYAML: "---\n", kubectl.OutputName: "trainjob."} {
		s := newScene(t, output)
		if err := (&appended{options: s.options}).show(s.at, s.lister, nil); err != nil {
			t.Fatal(err)
		}
		if got := s.out.String(); strings.Count("\n"+got, "\n"+want) != 4 {
			t.Errorf("%s is\n%s", output, got)
		}
	}
}
