package snapshot

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// counted looks are numbered, and take as long as they are told.
type counted struct {
	batches[string, int]
	looks atomic.Int32
}

func (c *counted) ask(ctx context.Context, key string, takes time.Duration) (int, error) {
	return c.do(ctx, key, func(ctx context.Context) (int, error) {
		number := int(c.looks.Add(1))
		select {
		case <-time.After(takes):
			return number, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

// answer is what one who asked was told, and when, since the start of the test.
type answer struct {
	look int
	err  error
	at   time.Duration
}

// asks has one after the other ask, each this long after the start, and returns their answers.
func (c *counted) asks(key string, takes time.Duration, at ...time.Duration) func() []answer {
	began, answers := time.Now(), make([]answer, len(at))
	for i := range at {
		go func() {
			time.Sleep(at[i])
			look, err := c.ask(context.Background(), key, takes)
			answers[i] = answer{look, err, time.Since(began)}
		}()
	}
	return func() []answer {
		synctest.Wait()
		return answers
	}
}

const ms = time.Millisecond

func TestBatches(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		at    []time.Duration
		want  []answer
	}{
		"one after the other": {10 * ms, []time.Duration{0, 20 * ms, 40 * ms}, []answer{{1, nil, 10 * ms}, {2, nil, 30 * ms}, {3, nil, 50 * ms}}},
		// Nobody is served by a look that began before.
		"during a look, the next serves all": {
			10 * ms, []time.Duration{0, ms, 2 * ms, 9 * ms},
			[]answer{{1, nil, 10 * ms}, {2, nil, 20 * ms}, {2, nil, 20 * ms}, {2, nil, 20 * ms}},
		},
		"during the next, the one after it": {
			10 * ms, []time.Duration{0, ms, 11 * ms, 12 * ms},
			[]answer{{1, nil, 10 * ms}, {2, nil, 20 * ms}, {3, nil, 30 * ms}, {3, nil, 30 * ms}},
		},
		// A look that hangs holds nobody up for longer.
		"a slow look": {
			time.Second, []time.Duration{0, 10 * ms, 20 * ms, 210 * ms},
			[]answer{{1, nil, time.Second}, {2, nil, 1110 * ms}, {2, nil, 1110 * ms}, {3, nil, 1310 * ms}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &counted{}
				answers := c.asks("key", tc.takes, tc.at...)
				time.Sleep(time.Minute)
				if got := answers(); !slices.Equal(got, tc.want) {
					t.Errorf("answers %v, want %v", got, tc.want)
				}
				if len(c.queues) != 0 {
					t.Errorf("%d queues are left", len(c.queues))
				}
			})
		})
	}
}

func TestBatchesByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		one, other := c.asks("one", 10*ms, 0), c.asks("other", 10*ms, 0)
		time.Sleep(time.Second)
		if a, b := one()[0], other()[0]; a.at != 10*ms || b.at != 10*ms {
			t.Errorf("answered after %s and %s, want 10ms each", a.at, b.at)
		}
	})
}

// Whoever gives up goes, and takes nothing from those who stay, even where the shared look was
// theirs to make.
func TestBatchesOutliveWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		first := c.asks("key", 50*ms, 0)
		time.Sleep(ms)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, _ = c.ask(ctx, "key", 50*ms) }()
		synctest.Wait()
		stays := c.asks("key", 50*ms, 0)
		left := make(chan error, 1)
		go func() {
			_, err := c.ask(ctx, "key", 50*ms)
			left <- err
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case err := <-left:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("left with %v", err)
			}
		default:
			t.Error("who gave up still waits")
		}
		time.Sleep(time.Second)
		if got := append(first(), stays()...); got[0].look != 1 || got[0].err != nil || got[1].look != 2 || got[1].err != nil {
			t.Errorf("answers %v, want the looks 1 and 2", got)
		}
	})
}

// A shared look ends at the latest when nobody can wait any more.
func TestBatchesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		answers := c.asks("key", time.Hour, 0, ms, 2*ms)
		time.Sleep(2 * time.Hour)
		got := answers()
		for _, shared := range got[1:] {
			if !errors.Is(shared.err, context.DeadlineExceeded) || shared.at != ms+joinFor+sharedLook {
				t.Errorf("answer %v, want the end of its time", shared)
			}
		}
	})
}

// A look that panics fails those whom it serves, and nobody after them.
func TestBatchesBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		first := c.asks("key", 10*ms, 0)
		time.Sleep(ms)
		broke := make(chan any, 1)
		go func() {
			defer func() { broke <- recover() }()
			_, _ = c.do(context.Background(), "key", func(context.Context) (int, error) { panic("broken") })
		}()
		synctest.Wait()
		shared := c.asks("key", 10*ms, 0)
		time.Sleep(time.Second)
		later := c.asks("key", 10*ms, 0)
		time.Sleep(time.Second)
		if got := <-broke; got != "broken" {
			t.Errorf("whoever looks recovers %v", got)
		}
		if got := shared()[0]; !errors.Is(got.err, errBroken) {
			t.Errorf("shared: %v", got)
		}
		if got := append(first(), later()...); got[0].err != nil || got[1].err != nil {
			t.Errorf("the others: %v", got)
		}
	})
}

// held is a store whose first read of metadata has been answered and is on its way until it is let
// go.
type held struct {
	client.Reader
	reads        atomic.Int32
	arrived, let chan struct{}
}

func (h *held) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := h.Reader.Get(ctx, key, object, options...)
	if h.reads.Add(1) == 1 {
		close(h.arrived)
		<-h.let
	}
	return err
}

// An edit counts for whoever asks after it, though the answer to somebody else, who asked before
// it, is still on its way.
func TestResolverSeesAnEditDuringARead(t *testing.T) {
	before, after := builder.ClusterTrainingRuntime("torch"), builder.ClusterTrainingRuntime("torch").Image("image:2")
	store := newStore(before.Obj())
	h := &held{Reader: store, arrived: make(chan struct{}), let: make(chan struct{})}
	r, ref := NewResolver(h), trainer.RuntimeRef{Name: "torch"}
	type found struct {
		revision string
		err      error
	}
	ask := func() <-chan found {
		answer := make(chan found, 1)
		go func() {
			revision, _, err := r.Revision(t.Context(), "ns", ref)
			answer <- found{revision, err}
		}()
		return answer
	}
	first := ask()
	<-h.arrived
	edited := after.Obj()
	stored := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
	if err := store.Get(t.Context(), client.ObjectKey{Name: "torch"}, stored); err != nil {
		t.Fatal(err)
	}
	edited.SetResourceVersion(stored.GetResourceVersion())
	if err := store.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	second := ask()
	want := take(t, after).Revision
	select {
	case got := <-second:
		if got.err != nil || got.revision != want {
			t.Errorf("after the edit: %+v, want revision %s", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Error("whoever asks after the edit waits for the answer from before it")
	}
	close(h.let)
	if got := <-first; got.err != nil {
		t.Errorf("before the edit: %v", got.err)
	}
}
