package admission

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// work is a webhook that is at work until it is told to end, and counts the bytes that it has.
type work struct {
	mu          sync.Mutex
	bytes, most int64
	end         chan struct{}
}

func (w *work) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	w.add(r.ContentLength)
	defer w.add(-r.ContentLength)
	<-w.end
	answer.WriteHeader(http.StatusOK)
}

func (w *work) add(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += bytes
	w.most = max(w.most, w.bytes)
}

// at returns how many bytes are worked on once nothing moves any more.
func (w *work) at() int64 {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

// sent is a request that was sent to a limited webhook.
type sent struct {
	*httptest.ResponseRecorder
	cancel context.CancelFunc
	done   chan struct{}
	took   time.Duration
}

// open tells whether the request is not answered, once nothing moves any more.
func (s *sent) open() bool {
	synctest.Wait()
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// limited makes a webhook at work behind the limit, and what sends it requests of a size.
func limited() (*work, func(size int64, query string) *sent) {
	w := &work{end: make(chan struct{})}
	handler := NewLimit(clock.RealClock{}).Handler(w)
	return w, func(size int64, query string) *sent {
		ctx, cancel := context.WithCancel(context.Background())
		s := &sent{ResponseRecorder: httptest.NewRecorder(), cancel: cancel, done: make(chan struct{})}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, TrainJobMutatePath+query, http.NoBody)
		r.ContentLength = size
		start := time.Now()
		go func() {
			defer close(s.done)
			handler.ServeHTTP(s, r)
			s.took = time.Since(start)
		}()
		return s
	}
}

// However many large requests come, no more is worked on than is allowed, small ones are answered,
// and the rest when it is their turn.
func TestLimitOfLargeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, send := limited()
		var large, small []*sent
		for range 40 {
			large = append(large, send(2_000_000, "?timeout=30s"))
		}
		if at := w.at(); at != 4_000_000 {
			t.Errorf("of 40 requests of 2 MB, %d bytes are worked on, want two", at)
		}
		for range 20 {
			small = append(small, send(100_000, "?timeout=5s"))
		}
		if at := w.at(); at != 6_000_000 {
			t.Errorf("with 20 requests of 100 KB beside them, %d bytes are worked on", at)
		}
		close(w.end)
		for _, s := range append(large, small...) {
			if <-s.done; s.Code != http.StatusOK {
				t.Errorf("a request is answered by %d %s", s.Code, s.Body)
			}
		}
		if at := w.at(); at != 0 || w.most > largeAtOnce+smallAtOnce {
			t.Errorf("%d bytes are left in work, %d were the most", at, w.most)
		}
	})
}

func TestLimitOfSmallRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, send := limited()
		var all []*sent
		for range 100 {
			all = append(all, send(smallReview, ""))
		}
		if at := w.at(); at != smallAtOnce {
			t.Errorf("%d bytes are worked on, want %d", at, smallAtOnce)
		}
		large := send(smallReview+1, "")
		if at := w.at(); at != smallAtOnce+smallReview+1 {
			t.Errorf("%d bytes are worked on with a large one beside them", at)
		}
		close(w.end)
		for _, s := range append(all, large) {
			if <-s.done; s.Code != http.StatusOK {
				t.Errorf("a request is answered by %d %s", s.Code, s.Body)
			}
		}
	})
}

// Who waits in vain gets an answer before the API server gives up, and takes nobody's place.
func TestLimitWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		size  int64
		query string
		want  time.Duration
	}{
		"as long as the API server says":               {size: 3_000_000, query: "?timeout=5s", want: 4500 * time.Millisecond},
		"as long as it does when it does not say":      {size: 3_000_000, want: 9 * time.Second},
		"as long as it does when it says nonsense":     {size: 3_000_000, query: "?timeout=x", want: 9 * time.Second},
		"as long as it does when it says less than 0":  {size: 3_000_000, query: "?timeout=-5s", want: 9 * time.Second},
		"no longer than the API server can be told to": {size: 3_000_000, query: "?timeout=24h", want: 27 * time.Second},
		"without a length, as the largest":             {size: -1, query: "?timeout=5s", want: 4500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, send := limited()
				first := send(maxReview, "")
				if !first.open() {
					t.Fatalf("the first is answered by %d", first.Code)
				}
				second := send(tc.size, tc.query)
				<-second.done
				if second.Code != http.StatusServiceUnavailable || second.took != tc.want || !strings.Contains(second.Body.String(), "too many requests in work") {
					t.Errorf("answered after %s by %d %s, want 503 after %s", second.took, second.Code, second.Body, tc.want)
				}
				close(w.end)
				<-first.done
				third := send(maxReview, "?timeout=1s")
				if <-third.done; first.Code != http.StatusOK || third.Code != http.StatusOK {
					t.Errorf("the first is answered by %d, one after it by %d", first.Code, third.Code)
				}
			})
		})
	}
}

// Who goes away while waiting waits no longer.
func TestLimitOfWhoGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, send := limited()
		first := send(maxReview, "")
		if first.open() {
			second := send(maxReview, "")
			if !second.open() {
				t.Error("the second does not wait")
			}
			second.cancel()
			if <-second.done; second.took != 0 {
				t.Errorf("it waits %s more", second.took)
			}
		}
		close(w.end)
		<-first.done
	})
}

func TestLimitOfTheSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, send := limited()
		close(w.end)
		for size, want := range map[int64]int{0: 200, maxReview: 200, maxReview + 1: 413} {
			if s := send(size, ""); s.open() || s.Code != want {
				t.Errorf("%d bytes are answered by %d %s, want %d", size, s.Code, s.Body, want)
			}
		}
	})
}

// slow sends one byte, and no more until it is closed.
type slow struct {
	first bytes.Reader
	end   chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); err == nil {
		return n, nil
	}
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// Who does not send what was announced loses its place when its time is over, over HTTP/2 and 1.1.
func TestLimitOfSlowSenders(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan error, 1)
			server := httptest.NewUnstartedServer(NewLimit(clock.RealClock{}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				read <- err
			})))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			body := &slow{end: make(chan struct{})}
			body.first.Reset([]byte("{"))
			defer close(body.end)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"?timeout=100ms", body)
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = maxReview
			go func() {
				if answer, err := server.Client().Do(r); err == nil {
					_ = answer.Body.Close()
				}
			}()
			select {
			case err := <-read:
				if err == nil {
					t.Error("all of it was read")
				}
			case <-time.After(time.Minute):
				t.Error("it is still read")
			}
		})
	}
}

// Whoever does not read the answer holds a place no longer than the API server waits.
func TestLimitOfSlowReaders(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := make(chan error, 1)
			server := httptest.NewUnstartedServer(NewLimit(clock.RealClock{}).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, err := w.Write(make([]byte, 64<<20))
				written <- err
			})))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"?timeout=100ms", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			end := make(chan struct{})
			defer close(end)
			go func() {
				// What comes of it is no answer, or half of one.
				if answer, err := server.Client().Do(r); err == nil {
					<-end
					_ = answer.Body.Close()
				}
			}()
			select {
			case err := <-written:
				if err == nil {
					t.Error("all of it was written")
				}
			case <-time.After(time.Minute):
				t.Error("it is still written")
			}
		})
	}
}
