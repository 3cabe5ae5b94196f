package kubectl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// times compare the clock of the API server with that of this machine, by the dates of its answers. A
// date is cut to the second, so that each answer gives a range only: all of them together give a smaller
// one.
type times struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// The server's clock is ahead by least or more, and by most or less; known after the first answer.
	known       bool
	least, most time.Duration
	// said is what a note has said of it, to the second.
	said time.Duration
}

// answer takes the date of an answer to a request that was sent and answered at these instants.
func (t *times) answer(sent, received, date time.Time) {
	least, most := date.Sub(received), date.Add(time.Second).Sub(sent)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known && max(t.least, least) <= min(t.most, most) {
		t.least, t.most = max(t.least, least), min(t.most, most)
		return
	}
	// The first answer, or one of the clocks was set.
	t.known, t.least, t.most = true, least, most
}

// skew returns how far the server's clock is ahead: 0 where it may be that.
func (t *times) skew() (skew time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.known, t.least <= 0 && t.most >= 0:
		return 0, t.known
	}
	return t.least + (t.most-t.least)/2, true
}

// tell returns what a note should say of this skew: what it has said, where that is near enough.
func (t *times) tell(skew time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if (skew - t.said).Abs() >= noticed {
		t.said = skew.Round(time.Second)
	}
	return t.said
}

// dated hands the dates of all answers to times.
type dated struct {
	next  http.RoundTripper
	times *times
}

// RoundTrip implements [http.RoundTripper].
func (d *dated) RoundTrip(request *http.Request) (*http.Response, error) {
	// Not by the monotonic clock, which other clocks cannot be compared with.
	sent := d.times.clock.Now().Round(0)
	response, err := d.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	received := d.times.clock.Now().Round(0)
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil && !received.Before(sent) {
		d.times.answer(sent, received, date)
	}
	return response, nil
}

// Skew returns how far the clock of the API server is ahead of that of this machine, to the second; 0 where
// no difference can be seen. It asks the API server where that has not answered anything yet.
func (r *Reader) Skew(ctx context.Context) (time.Duration, error) {
	if skew, known := r.times.skew(); known {
		return skew, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.Discovery.RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return 0, err
	}
	skew, known := r.times.skew()
	if !known {
		return 0, errors.New("the API server's answers have no date")
	}
	return skew, nil
}

// noticed is from how much on a difference of the clocks is worth a note.
const noticed = 5 * time.Second

// Now returns the instant by the clock of the API server, which alone counts. Where that is another one than
// this machine's, or cannot be told, that is a note.
func (r *Reader) Now(ctx context.Context, notes *Notes) time.Time {
	skew, err := r.Skew(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		notes.Add("the clock of the API server could not be told, so that times are by this machine's: " + err.Error())
	case skew.Abs() >= noticed:
		by := "ahead of"
		if skew > 0 {
			by = "behind"
		}
		notes.Add(fmt.Sprintf("this machine's clock is %s %s the API server's, by which times are counted", r.times.tell(skew).Abs(), by))
	}
	return r.times.clock.Now().Add(skew)
}
