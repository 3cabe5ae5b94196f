package kubectl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// apiServer plays an API server that has TrainJobs, runtimes, and what else a test answers itself.
type apiServer struct {
	*httptest.Server
	// jobs is how many TrainJobs there are, job-0 and on, in the namespace team-a.
	jobs int
	// expire tells whether to forget the list of this number, counted from 1, on its second page.
	expire func(list int) bool
	// answer answers a request in the place of what follows; false is not at all.
	answer func(http.ResponseWriter, *http.Request) bool
	// ahead is how far the clock is.
	ahead time.Duration
	// without leaves TrainJobs out of the kinds that are served.
	without bool

	mu    sync.Mutex
	lists int
	// asked are the requests, without those for the kinds.
	asked []string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{jobs: 5}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api":
		write(w, metav1.APIVersions{Versions: []string{"v1"}})
		return
	case "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: trainer.GroupVersion.String(), Version: trainer.GroupVersion.Version}
		write(w, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: trainer.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}})
		return
	case "/api/v1":
		write(w, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace"}}})
		return
	case "/apis/trainer.kubeflow.org/v1alpha1":
		list := metav1.APIResourceList{GroupVersion: trainer.GroupVersion.String(), APIResources: []metav1.APIResource{
			{Name: "clustertrainingruntimes", Kind: trainer.ClusterTrainingRuntimeKind},
			{Name: "trainingruntimes", Kind: trainer.TrainingRuntimeKind, Namespaced: true},
		}}
		if !s.without {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: "trainjobs", Kind: trainer.TrainJobKind, Namespaced: true})
		}
		write(w, list)
		return
	}
	s.asked = append(s.asked, r.URL.RequestURI())
	if s.answer != nil && s.answer(w, r) {
		return
	}
	switch r.URL.Path {
	case "/version":
		write(w, map[string]string{"gitVersion": "v1.36.3"})
	case "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs", "/apis/trainer.kubeflow.org/v1alpha1/trainjobs":
		s.page(w, r)
	default:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// page answers with a page of the TrainJobs. A token to continue is LIST/OFFSET.
func (s *apiServer) page(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	offset := 0
	if token := r.URL.Query().Get("continue"); token != "" {
		_, _ = fmt.Sscanf(token, "%d", &offset)
		if s.expire != nil && s.expire(s.lists) {
			fail(w, http.StatusGone, metav1.StatusReasonExpired)
			return
		}
	} else {
		s.lists++
	}
	end := s.jobs
	metadata := map[string]any{"resourceVersion": strconv.Itoa(100 * s.lists)}
	if limit > 0 && offset+limit < s.jobs {
		end = offset + limit
		metadata["continue"] = strconv.Itoa(end)
		metadata["remainingItemCount"] = s.jobs - end
	}
	items := []any{}
	for i := offset; i < end; i++ {
		items = append(items, map[string]any{"metadata": map[string]any{"namespace": "team-a", "name": fmt.Sprint("job-", i), "uid": fmt.Sprint("uid-", i)}})
	}
	write(w, map[string]any{"apiVersion": trainer.GroupVersion.String(), "kind": "TrainJobList", "metadata": metadata, "items": items})
}

func write(w http.ResponseWriter, answer any) { _ = json.NewEncoder(w).Encode(answer) }

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	write(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "the test says \x1b[1m" + string(reason),
	})
}

// options are those of somebody who works with this API server, in the namespace team-a.
func (s *apiServer) options(t *testing.T) *Options {
	t.Helper()
	config := genericclioptions.NewConfigFlags(true)
	config.APIServer, config.CacheDir, config.Namespace = ptr.To(s.URL), ptr.To(t.TempDir()), ptr.To("team-a")
	config.KubeConfig = ptr.To("/dev/null")
	return &Options{Config: config, ChunkSize: 2, Clock: clock.RealClock{}}
}

func (s *apiServer) reader(t *testing.T) *Reader {
	t.Helper()
	reader, err := s.options(t).Reader()
	if err != nil {
		t.Fatal(err)
	}
	return reader
}
