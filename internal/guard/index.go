package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

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
	r := Runtime{Kind: job.Spec.RuntimeRef.GroupVersionKind().Kind, Name: job.Spec.RuntimeRef.Name}
	if r.Kind == trainer.TrainingRuntimeKind {
		r.Namespace = job.Namespace
	}
	return r
}

// byRuntime is the index of the unfinished TrainJobs by their runtime.
const byRuntime = "runtime"

// CacheTrainJobs is what a cache must hold for an Index: the TrainJobs, of each no more than
// what names it, its runtime and its state.
func CacheTrainJobs() cache.ByObject {
	return cache.ByObject{Transform: func(object any) (any, error) {
		if job, ok := object.(*trainer.TrainJob); ok {
			job.Annotations, job.Labels, job.ManagedFields, job.OwnerReferences = nil, nil, nil, nil
		}
		return object, nil
	}}
}

// Index finds the unfinished TrainJobs that refer to a runtime.
type Index struct {
	// Cache holds the TrainJobs as CacheTrainJobs says.
	Cache cache.Cache
	// Live reads from the API server.
	Live client.Reader

	ready atomic.Bool
}

// betweenTries is how often the index looks whether TrainJobs are installed.
const betweenTries = 5 * time.Second

// Start builds the index, as soon as TrainJobs are installed.
func (x *Index) Start(ctx context.Context) error {
	for said := false; ; said = true {
		err := x.Cache.IndexField(ctx, &trainer.TrainJob{}, byRuntime, func(object client.Object) []string {
			job := object.(*trainer.TrainJob)
			if job.Terminal() || !job.Spec.RuntimeRef.Known() {
				return nil
			}
			return []string{runtimeOf(job).String()}
		})
		if err == nil {
			x.ready.Store(true)
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

// Users returns the unfinished TrainJobs that refer to the runtime, as the index has them,
// sorted by name. There are none before TrainJobs are installed.
func (x *Index) Users(ctx context.Context, runtime Runtime) ([]trainer.TrainJob, error) {
	if !x.ready.Load() {
		return nil, nil
	}
	var jobs trainer.TrainJobList
	err := x.Cache.List(ctx, &jobs, client.MatchingFields{byRuntime: runtime.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list TrainJobs of %s: %w", runtime, err)
	}
	slices.SortFunc(jobs.Items, func(a, b trainer.TrainJob) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return jobs.Items, nil
}

// Confirm reads live, one after the other, until most of the TrainJobs are found to be there
// and unfinished still. It returns these, and how many it has not looked at.
func (x *Index) Confirm(ctx context.Context, jobs []trainer.TrainJob, most int) (confirmed []trainer.TrainJob, rest int, err error) {
	for i := range jobs {
		if len(confirmed) == most {
			return confirmed, len(jobs) - i, nil
		}
		job := &trainer.TrainJob{}
		key := types.NamespacedName{Namespace: jobs[i].Namespace, Name: jobs[i].Name}
		if err := x.Live.Get(ctx, key, job); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, 0, fmt.Errorf("read TrainJob: %w", err)
		}
		if !job.Terminal() && runtimeOf(job) == runtimeOf(&jobs[i]) {
			confirmed = append(confirmed, *job)
		}
	}
	return confirmed, 0, nil
}

// NeedsOf gathers what the TrainJobs need of their runtime.
func NeedsOf(jobs []trainer.TrainJob) Needs {
	var needs Needs
	for i := range jobs {
		if initializer := jobs[i].Spec.Initializer; initializer != nil {
			needs.Dataset = needs.Dataset || initializer.Dataset != nil
			needs.Model = needs.Model || initializer.Model != nil
		}
	}
	return needs
}
