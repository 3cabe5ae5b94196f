package kubectl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

var jobKind = trainer.GroupVersion.WithKind(trainer.TrainJobKind)

func TestEachReadsInChunks(t *testing.T) {
	s := newAPIServer(t)
	var names []string
	version, err := s.reader(t).Each(t.Context(), jobKind, "team-a", Selectors{Label: "team=a", Field: "metadata.name!=x"}, func(object *unstructured.Unstructured) error {
		if object.GroupVersionKind() != jobKind {
			t.Errorf("kind %s", object.GroupVersionKind())
		}
		names = append(names, object.GetName())
		return nil
	})
	if err != nil || version != "100" {
		t.Errorf("version %q, error %v", version, err)
	}
	if diff := cmp.Diff([]string{"job-0", "job-1", "job-2", "job-3", "job-4"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const list = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs?"
	const selected = "fieldSelector=metadata.name%21%3Dx&labelSelector=team%3Da&limit=2"
	if diff := cmp.Diff([]string{list + selected, list + "continue=2&" + selected, list + "continue=4&" + selected}, s.asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEachBeginsAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		expire func(int) bool
		// want are the names of the last list, and again how often it began.
		again   int
		version string
	}{
		"never":                         {func(int) bool { return false }, 0, "100"},
		"once":                          {func(list int) bool { return list == 1 }, 1, "200"},
		"always, until in one piece":    {func(int) bool { return true }, 3, "400"},
		"twice, and then it remembered": {func(list int) bool { return list <= 2 }, 2, "300"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.expire = tc.expire
			var names []string
			again := 0
			version, err := s.reader(t).EachOf(t.Context(), jobKind, "", Selectors{}, func() { names, again = nil, again+1 }, func(object *unstructured.Unstructured) error {
				names = append(names, object.GetName())
				return nil
			})
			if err != nil || version != tc.version || again != tc.again {
				t.Errorf("version %q, %d times anew, error %v; want version %q, %d times", version, again, err, tc.version, tc.again)
			}
			if diff := cmp.Diff([]string{"job-0", "job-1", "job-2", "job-3", "job-4"}, names); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestEachTellsWhatFails(t *testing.T) {
	s := newAPIServer(t)
	reader := s.reader(t)
	broken := errors.New("broken")
	nothing := func(*unstructured.Unstructured) error { return nil }
	if _, err := reader.Each(t.Context(), jobKind, "", Selectors{}, func(*unstructured.Unstructured) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the function", err)
	}
	s.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		fail(w, 403, metav1.StatusReasonForbidden)
		return true
	}
	if _, err := reader.Each(t.Context(), jobKind, "", Selectors{}, nothing); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want a forbidden one", err)
	}
	if _, err := reader.Each(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Odd"}, "", Selectors{}, nothing); !meta.IsNoMatchError(err) {
		t.Errorf("error %v, want no match", err)
	}
	if _, err := reader.Watch(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Odd"}, "", Selectors{}, "1"); !meta.IsNoMatchError(err) {
		t.Errorf("error %v, want no match", err)
	}
}

// What was known of the kinds that are served may be old: TrainJobs were, and are not any more.
func TestEachLearnsThatAKindIsGone(t *testing.T) {
	s := newAPIServer(t)
	options := s.options(t)
	read := func() error {
		reader, err := options.Reader()
		if err != nil {
			t.Fatal(err)
		}
		_, err = reader.Each(t.Context(), jobKind, "", Selectors{}, func(*unstructured.Unstructured) error { return nil })
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.without = true
	s.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		fail(w, 404, metav1.StatusReasonNotFound)
		return true
	}
	s.mu.Unlock()
	if err := read(); !NotInstalled(err) || !meta.IsNoMatchError(err) {
		t.Errorf("error %v, want no match", err)
	}
}

// A runtime of the cluster is in no namespace, whichever is asked for.
func TestEachOfTheCluster(t *testing.T) {
	s := newAPIServer(t)
	_, err := s.reader(t).Each(t.Context(), trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind), "team-a", Selectors{}, func(*unstructured.Unstructured) error { return nil })
	if !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
	for _, path := range s.asked {
		if path != "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes?limit=2" {
			t.Errorf("asked for %s", path)
		}
	}
}

func TestWatch(t *testing.T) {
	s := newAPIServer(t)
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		query := r.URL.Query()
		if query.Get("watch") != "true" || query.Get("resourceVersion") != "100" || query.Get("allowWatchBookmarks") != "true" || query.Get("labelSelector") != "team=a" {
			t.Errorf("asked for %s", r.URL)
		}
		write(w, map[string]any{"type": "DELETED", "object": map[string]any{"apiVersion": trainer.GroupVersion.String(), "kind": "TrainJob", "metadata": map[string]any{"name": "job-1"}}})
		return true
	}
	watcher, err := s.reader(t).Watch(t.Context(), jobKind, "team-a", Selectors{Label: "team=a"}, "100")
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	event := <-watcher.ResultChan()
	if object, ok := event.Object.(*unstructured.Unstructured); !ok || event.Type != "DELETED" || object.GetName() != "job-1" {
		t.Errorf("event %+v", event)
	}
}

func TestSideIsANoteAndNoFailure(t *testing.T) {
	resource := schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}
	for name, tc := range map[string]struct {
		err   error
		notes []string
	}{
		"read":          {nil, nil},
		"forbidden":     {apierrors.NewForbidden(resource, "", errors.New("no")), []string{"no right to read JobSets"}},
		"not found":     {apierrors.NewNotFound(resource, "x"), []string{"JobSets: not found"}},
		"not installed": {&meta.NoKindMatchError{}, []string{"JobSets: not installed"}},
		"too slow":      {fmt.Errorf("get: %w", context.DeadlineExceeded), []string{"it takes too long to read JobSets"}},
		"timed out":     {apierrors.NewServerTimeout(resource, "list", 1), []string{"it takes too long to read JobSets"}},
		"broken":        {apierrors.NewInternalError(errors.New("a\x1b[2J\nb")), []string{"cannot read JobSets: Internal error occurred: a[2J b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &Notes{}
			found := (&Reader{}).Side(t.Context(), "JobSets", func() error { return tc.err }, notes)
			if found != (tc.err == nil) {
				t.Errorf("found %v", found)
			}
			if diff := cmp.Diff(tc.notes, notes.All()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	notes := &Notes{}
	if found := (&Reader{}).Side(ended, "JobSets", ended.Err, notes); found || len(notes.All()) > 0 {
		t.Errorf("after an interrupt: found %v, notes %q", found, notes.All())
	}
}

func TestNowIsByTheServersClock(t *testing.T) {
	for name, tc := range map[string]struct {
		ahead time.Duration
		notes []string
	}{
		"the same":        {0, nil},
		"a little behind": {-3 * time.Second, nil},
		"ahead":           {time.Hour, []string{"this machine's clock is 1h0m0s behind the API server's, by which times are counted"}},
		"behind":          {-2 * time.Minute, []string{"this machine's clock is 2m0s ahead of the API server's, by which times are counted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.ahead = tc.ahead
			reader, notes := s.reader(t), &Notes{}
			for range 2 {
				now := reader.Now(t.Context(), notes)
				if off := now.Sub(time.Now().Add(tc.ahead)); off.Abs() > 2*time.Second {
					t.Errorf("off by %s", off)
				}
			}
			if diff := cmp.Diff(tc.notes, notes.All()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]string{"/version?timeout=32s"}, s.asked); diff != "" {
				t.Errorf("requests: -want +got:\n%s", diff)
			}
		})
	}
	s := newAPIServer(t)
	s.answer = func(w http.ResponseWriter, _ *http.Request) bool { w.Header()["Date"] = nil; return false }
	notes := &Notes{}
	if now := s.reader(t).Now(t.Context(), notes); time.Since(now).Abs() > time.Minute {
		t.Errorf("now %s", now)
	}
	if diff := cmp.Diff([]string{"the clock of the API server could not be told, so that times are by this machine's: the API server's answers have no date"}, notes.All()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
