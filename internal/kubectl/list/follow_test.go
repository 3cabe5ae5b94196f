package list

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// script is an API server that answers as written, one answer a request; then the test ends.
type script struct {
	t       *testing.T
	answers []any
	asked   []string
	end     context.CancelFunc
}

// page is the answer to a list: names, and the version of the list. restart has it begin anew after the
// first name.
type page struct {
	version string
	names   []string
	restart bool
}

// events is the answer to a watch, which ends after them: "+a", "~a" and "-a" for an object that comes,
// changes or goes, "*" for a bookmark, "!" for an error that the version is too old.
type events []string

func (s *script) answer(asked string) any {
	s.asked = append(s.asked, asked)
	if len(s.answers) == 0 {
		s.end()
		return context.Canceled
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next
}

func named(name, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetResourceVersion(version)
	return o
}

func (s *script) each(_ context.Context, restart func(), f func(*unstructured.Unstructured) error) (string, error) {
	switch answer := s.answer("list").(type) {
	case page:
		for i, name := range answer.names {
			if err := f(named(name, "1")); err != nil {
				return "", err
			}
			if i == 0 && answer.restart {
				restart()
			}
		}
		return answer.version, nil
	case error:
		return "", answer
	default:
		s.t.Fatalf("a list is answered by %T", answer)
		return "", nil
	}
}

func (s *script) watch(_ context.Context, version string) (watch.Interface, error) {
	switch answer := s.answer("watch from " + version).(type) {
	case events:
		fake := watch.NewFakeWithChanSize(len(answer), false)
		for i, event := range answer {
			object := named(event[1:], fmt.Sprintf("%s.%d", version, i+1))
			switch event[0] {
			case '+':
				fake.Add(object)
			case '~':
				fake.Modify(object)
			case '-':
				fake.Delete(object)
			case '*':
				fake.Action(watch.Bookmark, object)
			case '!':
				status := apierrors.NewResourceExpired("too old").Status()
				fake.Error(&status)
			}
		}
		fake.Stop()
		return fake, nil
	case error:
		return nil, answer
	default:
		s.t.Fatalf("a watch is answered by %T", answer)
		return nil, nil
	}
}

func (s *script) why(_ context.Context, object *unstructured.Unstructured) kubectl.State {
	if object.GetName() == "relabelled" {
		return Unselected
	}
	return Deleted
}

func TestFollow(t *testing.T) {
	resource := schema.GroupResource{Group: "trainer.kubeflow.org", Resource: "trainjobs"}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("revoked"))
	unavailable := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "list", resource, "", "", 0, false)
	for name, tc := range map[string]struct {
		from        string
		answers     []any
		asked, told []string
		after       time.Duration
	}{
		"a list, then what happens": {
			answers: []any{page{version: "7", names: []string{"a", "b"}}, events{"~a", "+c", "-b", "-relabelled"}},
			asked:   []string{"list", "watch from 7", "watch from 7.4"},
			told:    []string{"began", "listed a", "listed b", "ended", "put a", "put c", "taken b Deleted", "taken relabelled Unselected"},
		},
		"from a version": {from: "5", answers: []any{events{"+a"}}, asked: []string{"watch from 5", "watch from 5.1"}, told: []string{"put a"}},
		"a bookmark":     {from: "5", answers: []any{events{"*"}}, asked: []string{"watch from 5", "watch from 5.1"}},
		"the version is forgotten while watching": {
			from: "5", answers: []any{events{"+a", "!"}, page{version: "9", names: []string{"b"}}},
			asked: []string{"watch from 5", "list", "watch from 9"}, told: []string{"put a", "began", "listed b", "ended"},
		},
		"the version is forgotten before": {
			from: "5", answers: []any{apierrors.NewResourceExpired("too old"), page{version: "9"}},
			asked: []string{"watch from 5", "list", "watch from 9"}, told: []string{"began", "ended"},
		},
		"the versions of lists are forgotten": {
			answers: []any{page{version: "7"}, events{"!"}, page{version: "8"}, apierrors.NewResourceExpired("too old"), page{version: "9"}, events{"+a", "!"}, page{version: "10"}},
			asked:   []string{"list", "watch from 7", "list", "watch from 8", "list", "watch from 9", "list", "watch from 10"},
			told:    []string{"began", "ended", "began", "ended", "began", "ended", "put a", "began", "ended"},
			after:   time.Second + 2*time.Second,
		},
		"the list begins anew": {
			answers: []any{page{version: "7", names: []string{"a", "b"}, restart: true}},
			asked:   []string{"list", "watch from 7"}, told: []string{"began", "listed a", "began", "listed b", "ended"},
		},
		"the rights are taken, and given again": {
			from: "5", answers: []any{forbidden, forbidden, page{version: "9", names: []string{"a"}}, events{"~a"}},
			asked: []string{"watch from 5", "list", "list", "watch from 9", "watch from 9.1"},
			told:  []string{"failed", "began", "failed", "began", "listed a", "ended", "well", "put a"},
			after: time.Second + 2*time.Second,
		},
		"it may list, and not watch": {
			answers: []any{page{version: "7"}, forbidden, page{version: "8"}, forbidden},
			asked:   []string{"list", "watch from 7", "list", "watch from 8", "list"},
			told:    []string{"began", "ended", "failed", "began", "ended", "failed", "began"},
			after:   time.Second + 2*time.Second,
		},
		"the API server is away for a while": {
			from: "5", answers: []any{unavailable, unavailable, events{"+a"}, unavailable},
			asked: []string{"watch from 5", "watch from 5", "watch from 5", "watch from 5.1", "watch from 5.1"},
			told:  []string{"failed", "failed", "well", "put a", "failed"},
			after: time.Second + 2*time.Second + time.Second,
		},
		"watches end at once": {
			from: "5", answers: []any{events{}, events{}, events{"+a"}},
			asked: []string{"watch from 5", "watch from 5", "watch from 5", "watch from 5.1"}, told: []string{"put a"},
			after: time.Second + 2*time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := &script{t: t, answers: tc.answers, end: cancel}
				var told []string
				f := &follower{source: s, pace: ordinaryPace, tell: func(h happening) bool {
					text := map[what]string{began: "began", listed: "listed", ended: "ended", put: "put", taken: "taken", failed: "failed", well: "well"}[h.what]
					if h.object != nil {
						text += " " + h.object.GetName()
					}
					if h.state != "" {
						text += " " + string(h.state)
					}
					told = append(told, text)
					return true
				}}
				start := time.Now()
				f.run(ctx, tc.from)
				if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.told, told); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				if after := time.Since(start); after != tc.after {
					t.Errorf("it waited %v, want %v", after, tc.after)
				}
			})
		})
	}
}

// The wait grows up to a bound.
func TestFollowerSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &follower{pace: pace{first: time.Second, most: 5 * time.Second}}
		var waits []time.Duration
		for range 5 {
			start := time.Now()
			if !f.sleep(t.Context()) {
				t.Fatal("it was woken")
			}
			waits = append(waits, time.Since(start))
		}
		want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
		if diff := cmp.Diff(want, waits); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
