package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pages are the requests for pages of TrainJobs, and forget tells of which of them, counted from 1, the API
// server does not remember the list.
type pages struct {
	mu     sync.Mutex
	asked  []url.Values
	forget func(page int) bool
}

// take returns the requests since the last call.
func (p *pages) take() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	return asked
}

// note notes a request, and tells whether the list is to be forgotten.
func (p *pages) note(r *http.Request) bool {
	query := r.URL.Query()
	if !strings.HasSuffix(r.URL.Path, "/trainjobs") || query.Has("watch") {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, query)
	return p.forget != nil && query.Has("continue") && p.forget(len(p.asked))
}

// paged returns the scene with a user who has all rights and whose lists of TrainJobs are noted.
func (s *scene) paged(p *pages) *scene {
	s.Helper()
	target, err := url.Parse(s.cluster.Config.Host)
	s.must(err)
	transport, err := rest.TransportFor(s.cluster.Config)
	s.must(err)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.note(r) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410,"message":"The provided continue parameter is too old to display a consistent list result."}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster"}
	config.CurrentContext = "cluster"
	user, _ := s.user()
	s.must(clientcmd.WriteToFile(*config, user.kubeconfig))
	return user
}

// many makes this many suspended TrainJobs.
func (s *scene) many(jobs int) {
	s.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range jobs {
		group.Go(func() error {
			return s.cluster.Client.Create(s.ctx, s.trainJob(fmt.Sprintf("job-%04d", i), suspended(), deadline(3600)))
		})
	}
	s.must(group.Wait())
}

// Thousands of TrainJobs are read in chunks, each once, also where the API server forgets the list in its
// middle.
func TestCLIThousandsInChunks(t *testing.T) {
	t.Parallel()
	const jobs, chunk = 2300, 500
	s := withoutSignalbox(t)
	s.many(jobs)
	requests := &pages{}
	user := s.paged(requests)
	for name, tc := range map[string]struct {
		forget func(page int) bool
		args   []string
		// pages is how many are asked for, of so many TrainJobs; the last is whole where the list was forgotten
		// again and again.
		pages, of int
		whole     bool
	}{
		"by default":         {pages: 5, of: chunk},
		"small ones":         {args: []string{"--chunk-size", "100"}, pages: 23, of: 100},
		"in one piece":       {args: []string{"--chunk-size", "0"}, pages: 1},
		"forgotten once":     {forget: func(page int) bool { return page == 4 }, pages: 4 + 5, of: chunk},
		"forgotten for good": {forget: func(int) bool { return true }, pages: 3*2 + 1, of: chunk, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			requests.mu.Lock()
			requests.forget = tc.forget
			requests.mu.Unlock()
			out, _, code := user.run(append([]string{"list", "-o", "json"}, tc.args...)...)
			var list struct {
				Items []struct{ Name string }
			}
			if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
				t.Fatal(code, err)
			}
			if len(list.Items) != jobs {
				t.Errorf("%d TrainJobs, want %d", len(list.Items), jobs)
			}
			names := map[string]bool{}
			for _, item := range list.Items {
				names[item.Name] = true
			}
			if len(names) != jobs {
				t.Errorf("%d names, want %d", len(names), jobs)
			}
			asked := requests.take()
			if len(asked) != tc.pages {
				t.Errorf("%d pages, want %d", len(asked), tc.pages)
			}
			for i, page := range asked {
				want := fmt.Sprint(tc.of)
				if tc.of == 0 || tc.whole && i == len(asked)-1 {
					want = ""
				}
				if got := page.Get("limit"); got != want {
					t.Errorf("page %d of %q TrainJobs, want %q", i+1, got, want)
				}
			}
		})
	}
	requests.mu.Lock()
	requests.forget = nil
	requests.mu.Unlock()
	// The names of TrainJobs, for a shell.
	requests.take()
	out, _, _ := user.run("__complete", "explain", "job-")
	if got := strings.Count(out, "job-"); got != jobs {
		t.Errorf("completed %d names, want %d", got, jobs)
	}
	if pages := len(requests.take()); pages != 5 {
		t.Errorf("completion: %d pages, want 5", pages)
	}
	// And those of a runtime.
	out, _, code := user.run("diff", "clustertrainingruntime/torch-distributed", "--jobs", "-o", "name")
	if got := strings.Count(out, "job-"); got != jobs {
		t.Errorf("diff --jobs: exit code %d, %d TrainJobs, want %d", code, got, jobs)
	}
	if pages := len(requests.take()); pages != 5 {
		t.Errorf("diff --jobs: %d pages, want 5", pages)
	}
	// What comes after the list is watched from its version on.
	p := user.start("list", "--watch", "-o", "name")
	p.prints(fmt.Sprintf("job-%04d\n", jobs-1))
	s.create("late", suspended())
	p.prints("/late\n")
	p.stop()
	if got := strings.Count(p.out.String(), "job-"); got != jobs {
		t.Errorf("list --watch: %d TrainJobs, want %d", got, jobs)
	}
	if pages := len(requests.take()); pages != 5 {
		t.Errorf("list --watch: %d pages, want 5", pages)
	}
}
