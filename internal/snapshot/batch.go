package snapshot

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// joinFor is how long whoever asks waits at most for the look that is under way to end, before
	// the next one begins: one that hangs must not hold up the others.
	joinFor = 100 * time.Millisecond
	// sharedLook is how long a look may take that serves several.
	sharedLook = 10 * time.Second
)

// batches has those who ask for the same at the same time served by one look. Nobody is served by a
// look that began before they asked, so that all see what was stored until then: who asks while a
// look is under way is served by the next one, with all others who ask meanwhile. The zero value is
// ready for use.
type batches[K comparable, V any] struct {
	mu     sync.Mutex
	queues map[K]*queue[V]
}

// queue is what is under way for one key.
type queue[V any] struct {
	// running counts the looks under way.
	running int
	// next is the batch whose look has not begun; nil when nobody waits.
	next *batch[V]
}

// batch is served by one look, made by whoever came first.
type batch[V any] struct {
	// turn is closed when it may begin, done when value and err are there.
	turn, done chan struct{}
	called     bool
	value      V
	err        error
}

// errBroken is what is left of a look that panicked to those who did not make it.
var errBroken = errors.New("the look that was shared broke off")

// do returns what look finds. Where look serves others too, the end of ctx does not end it.
func (b *batches[K, V]) do(ctx context.Context, key K, look func(context.Context) (V, error)) (V, error) {
	b.mu.Lock()
	q := b.queues[key]
	if q == nil {
		if b.queues == nil {
			b.queues = map[K]*queue[V]{}
		}
		q = &queue[V]{running: 1}
		b.queues[key] = q
		b.mu.Unlock()
		defer b.end(key, q)
		return look(ctx)
	}
	if own := q.next; own != nil {
		b.mu.Unlock()
		select {
		case <-own.done:
			return own.value, own.err
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
	own := &batch[V]{turn: make(chan struct{}), done: make(chan struct{}), err: errBroken}
	q.next = own
	b.mu.Unlock()
	patience := time.NewTimer(joinFor)
	defer patience.Stop()
	select {
	case <-own.turn:
	case <-patience.C:
	}
	b.mu.Lock()
	q.next = nil
	q.running++
	b.mu.Unlock()
	defer b.end(key, q)
	defer close(own.done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedLook)
	defer cancel()
	own.value, own.err = look(ctx)
	return own.value, own.err
}

// end notes that a look has ended, and lets the next one begin.
func (b *batches[K, V]) end(key K, q *queue[V]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.running--
	switch {
	case q.next != nil && !q.next.called:
		q.next.called = true
		close(q.next.turn)
	case q.next == nil && q.running == 0:
		delete(b.queues, key)
	}
}
