package e2e_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

var finishedJobs = flag.Int("ttl.finished", 1000, "how many finished TrainJobs a reconciler finds that starts")

// requestsEach is how many requests the reconciler may make for each TrainJob in all.
const requestsEach = 6

// Thousands of finished TrainJobs whose time is over, such as when a first policy says so, are
// removed steadily: a few at a time, with no more looks and requests than it takes, and with
// deadlines kept meanwhile.
func TestTTLOfThousandsAtOnce(t *testing.T) {
	s, other := newScene(t), newScene(t)
	s.trainerAway()
	back := s.away(shared.Reconciler)
	began := time.Now()
	s.manyFinished(*finishedJobs)
	t.Logf("%d TrainJobs are there after %s", *finishedJobs, time.Since(began).Round(time.Second))

	const limit, short, busy = 10 * time.Second, 3 * time.Second, 5 * time.Second
	first := other.stamp(other.create("first", deadlineAnnotation(10)))
	began = time.Now()
	back()
	due := first.Add(limit)
	if now := time.Now(); now.After(due) {
		due = now
	}
	if late := other.fails("first", due); late > busy {
		t.Errorf("a deadline is enforced %s late", late)
	}
	s.fewerThan(*finishedJobs * 3 / 4)
	// Short, or they might all be gone before.
	second := other.stamp(other.create("second", deadlineAnnotation(3)))
	if late := other.fails("second", second.Add(short)); late > busy {
		t.Errorf("a deadline is enforced %s late", late)
	}
	t.Logf("%d are left then", s.left())
	s.fewerThan(1)
	t.Logf("they are gone after %s", time.Since(began).Round(time.Second))

	s.eventually("the last one to be counted", func() (bool, string) {
		removals := s.removals("annotation")
		return removals == float64(*finishedJobs), fmt.Sprint(removals)
	})
	byMethod := map[string]float64{}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		byMethod[method] = s.figure(shared.Reconciler, "rest_client_requests_total", "method", method)
	}
	t.Logf("requests: %s", s.text(byMethod))
	// A read, a deletion and an event for each; what is kept of the runtimes is filed beside that.
	if total := s.figure(shared.Reconciler, "rest_client_requests_total"); total > requestsEach*float64(*finishedJobs) {
		t.Errorf("%v requests for %d TrainJobs", total, *finishedJobs)
	}
	if looks := s.cleanUps(); looks > 3*float64(*finishedJobs) {
		t.Errorf("the clean-up looked %v times at %d TrainJobs", looks, *finishedJobs)
	}
	if looks := s.reconciles(); looks > 3*float64(*finishedJobs) {
		t.Errorf("the enforcement of deadlines looked %v times at %d TrainJobs", looks, *finishedJobs)
	}
}

// manyFinished makes so many TrainJobs that have finished and are to go at once. Nothing of them
// runs: Trainer and the reconciler must be away.
func (s *scene) manyFinished(count int) {
	s.Helper()
	var group errgroup.Group
	group.SetLimit(24)
	end := client.RawPatch(types.MergePatchType, endPatch(trainer.ConditionComplete, time.Now().Add(-time.Hour)))
	for i := range count {
		group.Go(func() error {
			job := s.trainJob(fmt.Sprint("job-", i), stayAnnotation(0))
			if err := s.cluster.Client.Create(s.ctx, job); err != nil {
				return err
			}
			return s.cluster.Client.Status().Patch(s.ctx, job, end)
		})
	}
	s.must(group.Wait())
	if left := s.left(); left != count {
		s.Fatalf("%d TrainJobs are there, want %d", left, count)
	}
}

// left is how many TrainJobs are in the scene's namespace.
func (s *scene) left() int {
	s.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(trainer.GroupVersion.WithKind("TrainJobList"))
	s.must(s.cluster.Client.List(s.ctx, list, client.InNamespace(s.namespace), client.Limit(1)))
	left := len(list.Items)
	if more := list.RemainingItemCount; more != nil {
		left += int(*more)
	}
	return left
}

// fewerThan waits until fewer TrainJobs are left, as long as they get fewer. It asks seldom: to
// count them costs the API server about as much as to remove some.
func (s *scene) fewerThan(count int) {
	s.Helper()
	for last, since := s.left(), time.Now(); last >= count; time.Sleep(time.Second / 2) {
		left := s.left()
		if left < last {
			last, since = left, time.Now()
		} else if time.Since(since) > patience {
			s.Fatalf("%d TrainJobs are left, as many as %s ago", left, patience)
		}
	}
}
