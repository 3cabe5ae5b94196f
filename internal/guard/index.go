package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/internal/shared"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Runtime names a runtime; the namespace of one that belongs to the cluster is empty.
type Runtime struct {
	Kind, Namespace, Name string
}

// String names the runtime as people do.
func (r Runtime) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// runtimeOf names the runtime that the TrainJob refers to.
func runtimeOf(job *trainer.TrainJob) Runtime {
	key := job.Spec.RuntimeRef.Key(job.Namespace)
	return Runtime{Kind: job.Spec.RuntimeRef.GroupVersionKind().Kind, Namespace: key.Namespace, Name: key.Name}
}

// byRuntime is the index of the TrainJobs by their runtime.
const byRuntime = "runtime"

// labelQueue is on the TrainJobs that Kueue looks after.
const labelQueue = "kueue.x-k8s.io/queue-name"

// kueuesTurn is how long a finished TrainJob still needs its runtime for Kueue to see that it
// is finished, and give its quota back.
const kueuesTurn = 30 * time.Second

// CacheTrainJobs is what a cache must hold for an Index: the TrainJobs, of each no more than
// what names it, its runtime and its state.
func CacheTrainJobs() cache.ByObject {
	pool := shared.NewPool()
	return cache.ByObject{Transform: func(object any) (any, error) {
		job, ok := object.(*trainer.TrainJob)
		if !ok {
			return object, nil
		}
		queue, queued := job.Labels[labelQueue]
		initializer := job.Spec.Initializer
		trainer.Trim(job, pool)
		job.Annotations, job.Labels, job.Spec.Initializer = nil, nil, initializer
		if queued {
			job.Labels = pool.Map(map[string]string{labelQueue: queue})
		}
		return object, nil
	}}
}

// uses tells whether the TrainJob needs its runtime now. Trainer checks every update of it, so
// that also one that is finished does while it is being deleted, until its finalizers are gone.
func uses(job *trainer.TrainJob, now time.Time) bool {
	if !job.Terminal() || !job.DeletionTimestamp.IsZero() {
		return true
	}
	if _, queued := job.Labels[labelQueue]; !queued {
		return false
	}
	return now.Sub(job.FinishedAt().LastTransitionTime.Time) < kueuesTurn
}

// Index finds the TrainJobs that need a runtime: the unfinished ones that refer to it, those
// that are being deleted, and of Kueue's those that have just finished.
type Index struct {
	// Cache holds the TrainJobs as CacheTrainJobs says.
	Cache cache.Cache
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock

	// state is what became of building the index; nil before the first try.
	state atomic.Pointer[result]
}

// result is the error of a try to build the index, nil when it is there.
type result struct{ err error }

// cacheTurn is how long a cache that is still being filled may take for an answer: less than
// the API server waits for a webhook's.
const cacheTurn = 4 * time.Second

// betweenLooks is how often is looked whether the first try to build the index has ended.
const betweenLooks = 10 * time.Millisecond

// betweenTries is how often the index looks whether TrainJobs are installed.
const betweenTries = 5 * time.Second

// Start builds the index, as soon as TrainJobs are installed.
func (x *Index) Start(ctx context.Context) error {
	for said := false; ; said = true {
		err := x.Cache.IndexField(ctx, &trainer.TrainJob{}, byRuntime, func(object client.Object) []string {
			job := object.(*trainer.TrainJob)
			if !job.Spec.RuntimeRef.Known() {
				return nil
			}
			return []string{runtimeOf(job).String()}
		})
		x.state.Store(&result{err})
		if err == nil {
			return nil
		}
		if !said {
			log.FromContext(ctx).Info("TrainJobs cannot be indexed yet", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(betweenTries):
		}
	}
}

// NeedLeaderElection is false: every replica has its index.
func (x *Index) NeedLeaderElection() bool { return false }

// tried returns what became of building the index, and waits for the first try: the webhook
// serves a little before its cache starts. Nil when that takes longer than the request may.
func (x *Index) tried(ctx context.Context) *result {
	_ = wait.PollUntilContextCancel(ctx, betweenLooks, true, func(context.Context) (bool, error) {
		return x.state.Load() != nil, nil
	})
	return x.state.Load()
}

// Users returns the TrainJobs that need the runtime, as the index has them and not to be changed,
// sorted by namespace and name. There are none while TrainJobs are not installed; an error when
// the index is not there within cacheTurn.
func (x *Index) Users(ctx context.Context, runtime Runtime) ([]*trainer.TrainJob, error) {
	ctx, cancel := context.WithTimeout(ctx, cacheTurn)
	defer cancel()
	switch state := x.tried(ctx); {
	case state == nil:
		return nil, errors.New("the TrainJobs are not indexed yet")
	case meta.IsNoMatchError(state.err):
		return nil, nil
	case state.err != nil:
		return nil, fmt.Errorf("the TrainJobs are not indexed: %w", state.err)
	}
	var jobs trainer.TrainJobList
	err := x.Cache.List(ctx, &jobs, client.MatchingFields{byRuntime: runtime.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list TrainJobs of %s: %w", runtime, err)
	}
	now := x.Clock.Now()
	var users []*trainer.TrainJob
	for i := range jobs.Items {
		if job := &jobs.Items[i]; uses(job, now) {
			users = append(users, job)
		}
	}
	slices.SortFunc(users, func(a, b *trainer.TrainJob) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return users, nil
}

// readsFor is how many TrainJobs are read at most for each that is to be confirmed.
const readsFor = 3

// Confirm reads live, one after the other, until most of the TrainJobs are found to need their
// runtime still. It returns these, and how many it has not looked at. An error counts only
// while none is confirmed.
func (x *Index) Confirm(ctx context.Context, jobs []*trainer.TrainJob, most int) (confirmed []*trainer.TrainJob, rest int, err error) {
	for i := range jobs {
		if len(confirmed) == most || i == readsFor*most && len(confirmed) > 0 {
			return confirmed, len(jobs) - i, nil
		}
		job := &trainer.TrainJob{}
		key := types.NamespacedName{Namespace: jobs[i].Namespace, Name: jobs[i].Name}
		if err := x.Live.Get(ctx, key, job); apierrors.IsNotFound(err) {
			continue
		} else if err != nil && len(confirmed) > 0 {
			return confirmed, len(jobs) - i, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("read TrainJob: %w", err)
		}
		if uses(job, x.Clock.Now()) && runtimeOf(job) == runtimeOf(jobs[i]) {
			confirmed = append(confirmed, job)
		}
	}
	return confirmed, 0, nil
}

// NeedsOf gathers what the TrainJobs need of their runtime.
func NeedsOf(jobs []*trainer.TrainJob) Needs {
	var needs Needs
	for i := range jobs {
		if initializer := jobs[i].Spec.Initializer; initializer != nil {
			needs.Dataset = needs.Dataset || initializer.Dataset != nil
			needs.Model = needs.Model || initializer.Model != nil
		}
	}
	return needs
}
