package admission

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

// Sizes in bytes that bound what requests take of the memory. A request takes up to 50 times its
// size while it is worked on (an object of nothing but empty objects), an ordinary one about 4.
const (
	// maxReview is the largest request. The API server sends two objects at most, which with 3 MB
	// and 1.5 MB, its own bounds, are less.
	maxReview = 7 << 20
	// smallReview is up to what size a request does not wait for larger ones. Most are a few KiB; one
	// that carries two seals of the greatest size is less.
	smallReview = 256 << 10
	// smallAtOnce is how much of small requests is worked on at the same time, largeAtOnce how much
	// of larger ones; one that is larger still is worked on without another of these.
	smallAtOnce, largeAtOnce = 2 << 20, 4 << 20
)

// How long the API server waits for an answer: when the webhook configuration does not say, and at
// most.
const (
	ordinaryWait = 10 * time.Second
	longestWait  = 30 * time.Second
)

// Limit bounds the memory that all requests together take: a request waits until enough of those
// before it are answered. Small ones have a bound of their own, so that large ones, which a
// user can send who may write in one namespace only, hold nobody else up.
type Limit struct {
	clock        clock.PassiveClock
	small, large *semaphore.Weighted
}

// NewLimit returns a limit for all webhooks of a process.
func NewLimit(clock clock.PassiveClock) *Limit {
	return &Limit{clock: clock, small: semaphore.NewWeighted(smallAtOnce), large: semaphore.NewWeighted(largeAtOnce)}
}

// Handler lets a request through to next when it is its turn. One that waits until just before the
// API server gives up is answered by 503, one that is too large by 413, both without having been
// read. To the API server both are a webhook that fails, so the failure policy says what follows.
func (l *Limit) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.ContentLength
		if size > maxReview {
			http.Error(w, fmt.Sprintf("a request of %d bytes is more than the %d that Signalbox takes", size, maxReview), http.StatusRequestEntityTooLarge)
			return
		}
		if size < 0 {
			// It does not say. The API server always does.
			size = maxReview
		}
		turn, room := l.small, size
		if size > smallReview {
			turn, room = l.large, min(size, largeAtOnce)
		}
		wait := waits(r)
		ctx, cancel := context.WithTimeout(r.Context(), wait*9/10)
		defer cancel()
		if err := turn.Acquire(ctx, room); err != nil {
			http.Error(w, fmt.Sprintf("Signalbox has too many requests in work to take one of %d bytes", size), http.StatusServiceUnavailable)
			return
		}
		defer turn.Release(room)
		// Whoever sends slowly, or does not read the answer, must not hold others up for long. Not
		// every connection can tell.
		until, connection := l.clock.Now().Add(wait), http.NewResponseController(w)
		_, _ = connection.SetReadDeadline(until), connection.SetWriteDeadline(until)
		next.ServeHTTP(w, r)
	})
}

// waits returns how long the sender waits for the answer: the API server says it in the URL.
func waits(r *http.Request) time.Duration {
	if wait, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && wait > 0 {
		return min(wait, longestWait)
	}
	return ordinaryWait
}
