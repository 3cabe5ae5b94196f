package chaos_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// fault is what happens to a request instead of the right thing.
type fault struct {
	// method and path are those of the request, of which the first is hit.
	method, path string
	do           func(w http.ResponseWriter, r *http.Request, apiServer http.Handler)
}

// answers is the fault of an error that the API server gives.
func answers(code int, reason metav1.StatusReason) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		// Read it whole, so that the connection stays good.
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "made up by a test",
		})
	}
}

// cut ends the connection before the request is carried out.
func cut(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// lost carries the request out and ends the connection without the answer.
func lost(_ http.ResponseWriter, r *http.Request, apiServer http.Handler) {
	apiServer.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// silent gives no answer until the client gives up.
func silent(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// proxy stands between a client and the API server and lets single requests fail.
type proxy struct {
	server    *httptest.Server
	apiServer *httputil.ReverseProxy

	mu     sync.Mutex
	faults []*fault
	// asked and hit count the requests of each fault, and how often it was injected.
	asked, hit map[*fault]int
}

// newProxy starts a proxy. It passes on what its clients send to prove who they are, so that
// their rights are their own.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	target, err := url.Parse(shared.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: shared.Config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: shared.Config.CAData}})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{asked: map[*fault]int{}, hit: map[*fault]int{}}
	p.apiServer = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	// Clients send a token over TLS only. Without HTTP/2 each request has the connection to
	// itself, so that it can be cut alone.
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.StartTLS()
	t.Cleanup(func() {
		p.server.CloseClientConnections() // watches never end by themselves
		p.server.Close()
	})
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := p.next(r); f != nil {
		f.do(w, r, p.apiServer)
		return
	}
	p.apiServer.ServeHTTP(w, r)
}

// next returns the fault that hits the request, nil for none.
func (p *proxy) next(r *http.Request) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.method != r.Method || f.path != r.URL.Path {
			continue
		}
		p.asked[f]++
		if p.hit[f] == 0 {
			p.hit[f]++
			return f
		}
	}
	return nil
}

func (p *proxy) inject(f *fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
}

// counts returns how many requests came for a fault, and how many it hit.
func (p *proxy) counts(f *fault) (asked, hit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[f], p.hit[f]
}

// kubeconfig writes a kubeconfig of the user, as the cluster has it, that leads through the
// proxy, and returns its path.
func (p *proxy) kubeconfig(t *testing.T, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(filepath.Join(shared.Dir, "kubeconfig", strings.ReplaceAll(user, ":", "_")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = p.server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
