package chaos_test

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// requestTimeout is how long a user waits for an answer: more than the webhooks may take.
const requestTimeout = 15 * time.Second

// user creates one TrainJob and does at random what users do with it.
type user struct {
	*record
	random    *rand.Rand
	namespace string
	// before is how long after the start of the test the TrainJob is created at most.
	before time.Duration
}

// run works until ctx ends or the TrainJob is finished. What fails is tried again later,
// from what is stored then.
func (u *user) run(ctx context.Context) {
	u.wait(ctx, u.upTo(u.before))
	suspend := u.random.IntN(3) == 0
	for ctx.Err() == nil {
		job := u.read(ctx)
		switch {
		case ctx.Err() != nil:
		case job == nil:
			u.create(ctx, suspend)
		case job.Terminal():
			u.touch(ctx)
			return
		case !job.Active():
			u.wait(ctx, u.short())
			u.suspend(ctx, false)
		default:
			u.use(ctx)
		}
		u.wait(ctx, u.upTo(300*time.Millisecond))
	}
}

// use does one of the things that a user may do with an active TrainJob.
func (u *user) use(ctx context.Context) {
	limit := min(u.limit, 40*time.Second)
	switch u.random.IntN(10) {
	case 0, 1, 2, 3:
		u.wait(ctx, u.upTo(limit))
		u.suspend(ctx, true)
	case 4:
		// In one pass of Trainer, which may not see it.
		u.wait(ctx, u.upTo(limit))
		u.suspend(ctx, true)
		u.suspend(ctx, false)
	case 5, 6:
		u.wait(ctx, u.upTo(limit))
		u.complete(ctx)
		u.wait(ctx, 10*time.Second)
	default:
		u.wait(ctx, 2*limit)
	}
}

// touch suspends and resumes a finished TrainJob, sometimes: it must stay finished.
func (u *user) touch(ctx context.Context) {
	if u.random.IntN(2) == 0 {
		return
	}
	for _, suspend := range []bool{true, false} {
		u.wait(ctx, u.upTo(3*time.Second))
		u.suspend(ctx, suspend)
	}
}

// read returns the TrainJob as stored, nil if there is none, once the API server is there.
func (u *user) read(ctx context.Context) *trainer.TrainJob {
	for {
		request, cancel := context.WithTimeout(ctx, requestTimeout)
		job, err := read(request, u.namespace, u.name)
		cancel()
		switch {
		case err == nil:
			return job
		case apierrors.IsNotFound(err), ctx.Err() != nil:
			return nil
		}
		pause(ctx, 200*time.Millisecond)
	}
}

func (u *user) create(ctx context.Context, suspend bool) {
	object := manifest(u.namespace, u.name, int(u.limit/time.Second), u.bySpec, suspend)
	u.attempt(ctx, "create", !suspend, func(ctx context.Context) (*trainer.TrainJob, error) {
		if err := shared.Client.Create(ctx, object); err != nil {
			return nil, err
		}
		return view(object)
	})
}

func (u *user) suspend(ctx context.Context, suspend bool) {
	what := "resume"
	if suspend {
		what = "suspend"
	}
	before := u.read(ctx)
	begins := before != nil && !before.Active() && !suspend
	u.attempt(ctx, what, begins, func(ctx context.Context) (*trainer.TrainJob, error) {
		return setSuspend(ctx, u.namespace, u.name, suspend)
	})
}

// attempt sends one write. If it begins an active period, its stamp must be of now.
func (u *user) attempt(ctx context.Context, what string, begins bool, send func(context.Context) (*trainer.TrainJob, error)) {
	if ctx.Err() != nil {
		return
	}
	// It is not broken off at the end of the test: the answer counts.
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	u.note("%s: sent", what)
	sent := time.Now()
	job, err := send(request)
	if err != nil {
		u.note("%s: %v", what, err)
		return
	}
	u.note("%s: answered %s", what, summary(job))
	if !begins {
		return
	}
	if stamp, err := stampOf(job); err != nil || stamp.Before(sent) || stamp.After(time.Now()) {
		u.problem("%s was sent at %s and gave the stamp %s (%v)", what, sent.UTC(), stamp, err)
	}
}

// complete ends the running pods of the TrainJob well.
func (u *user) complete(ctx context.Context) {
	var pods corev1.PodList
	err := shared.Client.List(ctx, &pods, client.InNamespace(u.namespace), client.MatchingLabels{trainer.LabelJobSetName: u.name})
	if err != nil {
		u.note("complete: %v", err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			u.note("complete: pod %s is %s", pod.Name, pod.Status.Phase)
			continue
		}
		err := shared.Client.Status().Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))
		u.note("complete: pod %s: %v", pod.Name, err)
	}
}

// wait waits, but not longer than until the TrainJob is finished.
func (u *user) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-u.finished:
		// What comes next is done at once, though not in a tight loop.
		pause(ctx, min(d, 100*time.Millisecond))
	case <-timer.C:
	}
}

func (u *user) upTo(d time.Duration) time.Duration { return time.Duration(u.random.Int64N(int64(d))) }

// short is how long a TrainJob stays suspended: mostly not long.
func (u *user) short() time.Duration {
	if u.random.IntN(3) == 0 {
		return u.upTo(30 * time.Second)
	}
	return u.upTo(3 * time.Second)
}
