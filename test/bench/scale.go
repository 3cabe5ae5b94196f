package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/bench/figures"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// scaleFigures is what was measured with so many TrainJobs.
type scaleFigures struct {
	jobs int
	// filled is from the start of the reconciler until its caches are filled, scheduled from then
	// until it has looked at every TrainJob and so set its timer.
	filled, scheduled time.Duration
	// denied is how long the API server takes to refuse the deletion of the runtime of all TrainJobs,
	// and edited an edit of it; unused is the deletion of one that no TrainJob uses.
	denied, edited, unused time.Duration
	reconciler, webhook    costs
}

// costs is what one process takes. Memory is resident, in bytes, CPU in seconds; at rest both
// CPU and requests are for a minute.
type costs struct {
	memoryAtStart, memoryAtRest float64
	cpuAtStart, cpuAtRest       float64
	// Requests to the API server by method.
	requestsAtStart, requestsAtRest map[string]float64
}

// unusedRuntime is the runtime that no TrainJob uses.
const unusedRuntime = "unused"

// scale measures what thousands of TrainJobs with deadlines cost at the start and at rest.
func scale(ctx context.Context, o options) (report *figures.Report, err error) {
	sizes, rest := []int{10_000, 50_000, 100_000}, time.Minute
	if o.short {
		sizes, rest = []int{500, 1000}, 5*time.Second
	}
	c, err := cluster.Start(ctx, cluster.Options{KindsOnly: true, Signalbox: true, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	etcd, err := openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	f, err := newFiller(ctx, c, etcd)
	if err != nil {
		return nil, err
	}
	// It would follow every object, for the garbage that it collects, on the processors that all
	// share here.
	if err := c.ControllerManager.Stop(ctx); err != nil {
		return nil, err
	}
	var found []scaleFigures
	for _, size := range sizes {
		if err := errors.Join(c.Reconciler.Stop(ctx), c.Webhook.Stop(ctx)); err != nil {
			return nil, err
		}
		if err := f.fill(ctx, size); err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, size, "TrainJobs are there")
		one, err := measureScale(ctx, c, size, rest)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return scaleReport(found, rest), nil
}

// measureScale starts the webhook, then the reconciler, and looks at each when it rests.
func measureScale(ctx context.Context, c *cluster.Cluster, jobs int, rest time.Duration) (scaleFigures, error) {
	found := scaleFigures{jobs: jobs}
	err := c.Webhook.Start(ctx)
	if err == nil {
		err = found.measureWebhook(ctx, c)
	}
	if err == nil {
		found.webhook, err = startCosts(ctx, c.Webhook)
	}
	if err == nil {
		err = found.startReconciler(ctx, c)
	}
	if err == nil {
		found.reconciler, err = startCosts(ctx, c.Reconciler)
	}
	if err != nil {
		return found, err
	}
	return found, atRest(ctx, rest, map[*cluster.Process]*costs{c.Webhook: &found.webhook, c.Reconciler: &found.reconciler})
}

// measureWebhook measures what is asked about a runtime that all TrainJobs use, once the webhook
// knows of them all.
func (f *scaleFigures) measureWebhook(ctx context.Context, c *cluster.Cluster) (err error) {
	used := runtimeOf(builtIn, 0)
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Client.Delete(ctx, used, client.DryRunAll)
		// While it reads them, it lets pass what it cannot judge.
		return apierrors.IsForbidden(err) || apierrors.IsInvalid(err), nil
	})
	if err != nil {
		return fmt.Errorf("the webhook to know the TrainJobs: %w", err)
	}
	if f.denied, err = median(func() error {
		if err := c.Client.Delete(ctx, used, client.DryRunAll); err == nil {
			return errors.New("the deletion of a runtime that is in use was let through")
		}
		return nil
	}); err != nil {
		return err
	}
	edit := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"mlPolicy":{"numNodes":2}}}`))
	if f.edited, err = median(func() error { return c.Client.Patch(ctx, used, edit, client.DryRunAll) }); err != nil {
		return fmt.Errorf("edit a runtime that is in use: %w", err)
	}
	unused := runtimeOf(unusedRuntime, 0)
	if err := client.IgnoreAlreadyExists(c.Client.Create(ctx, unused)); err != nil {
		return err
	}
	f.unused, err = median(func() error { return c.Client.Delete(ctx, unused, client.DryRunAll) })
	return err
}

// median is the time that it takes to do this, of nine times.
func median(do func() error) (time.Duration, error) {
	var samples figures.Samples
	for range 9 {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		samples = append(samples, time.Since(began))
	}
	return samples.Quantile(0.5), nil
}

// startReconciler starts the reconciler and waits until it has looked at every TrainJob.
func (f *scaleFigures) startReconciler(ctx context.Context, c *cluster.Cluster) error {
	before, err := os.ReadFile(c.Reconciler.LogPath)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.Reconciler.Start(ctx); err != nil {
		return err
	}
	var scheduled time.Time
	err = wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		looks, err := figure(ctx, c.Reconciler.MetricsURL, "controller_runtime_reconcile_total", "controller", "deadline")
		scheduled = time.Now()
		return looks >= float64(f.jobs), err
	})
	if err != nil {
		return fmt.Errorf("the reconciler to look at %d TrainJobs: %w", f.jobs, err)
	}
	log, err := os.ReadFile(c.Reconciler.LogPath)
	if err != nil {
		return err
	}
	filled, err := workersStarted(log[len(before):])
	if err != nil {
		return err
	}
	f.filled, f.scheduled = filled.Sub(began), scheduled.Sub(filled)
	// The other controllers look at them, too.
	return wait.PollUntilContextTimeout(ctx, time.Second, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		waiting, err := figure(ctx, c.Reconciler.MetricsURL, "workqueue_depth")
		return waiting == 0, err
	})
}

// workersStarted finds in the log of the reconciler when its caches were filled: when the workers
// of the deadlines started.
func workersStarted(log []byte) (time.Time, error) {
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Time            time.Time
			Msg, Controller string
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "Starting workers" && line.Controller == "deadline" {
			return line.Time, nil
		}
	}
	return time.Time{}, errors.New("the log does not say that the workers started")
}

// startCosts reads what the start of a process took.
func startCosts(ctx context.Context, p *cluster.Process) (found costs, err error) {
	if found.memoryAtStart, err = figure(ctx, p.MetricsURL, "process_resident_memory_bytes"); err != nil {
		return found, err
	}
	if found.cpuAtStart, err = figure(ctx, p.MetricsURL, "process_cpu_seconds_total"); err != nil {
		return found, err
	}
	found.requestsAtStart, err = requests(ctx, p)
	return found, err
}

// requests reads how many requests a process has made of the API server, by method.
func requests(ctx context.Context, p *cluster.Process) (map[string]float64, error) {
	found := map[string]float64{}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		count, err := figure(ctx, p.MetricsURL, "rest_client_requests_total", "method", method)
		if err != nil {
			return nil, err
		}
		found[method] = count
	}
	return found, nil
}

// settle is how long a process is left alone before it counts as at rest: Go gives memory back
// within that.
const settle = 30 * time.Second

// atRest measures processes that have nothing to do, for this long.
func atRest(ctx context.Context, rest time.Duration, processes map[*cluster.Process]*costs) error {
	if err := pass(ctx, min(settle, rest)); err != nil {
		return err
	}
	before := map[*cluster.Process]costs{}
	for p := range processes {
		var err error
		if before[p], err = startCosts(ctx, p); err != nil {
			return err
		}
	}
	if err := pass(ctx, rest); err != nil {
		return err
	}
	for p, found := range processes {
		now, err := startCosts(ctx, p)
		if err != nil {
			return err
		}
		found.memoryAtRest = now.memoryAtStart
		found.cpuAtRest = (now.cpuAtStart - before[p].cpuAtStart) / rest.Minutes()
		found.requestsAtRest = map[string]float64{}
		for method, count := range now.requestsAtStart {
			found.requestsAtRest[method] = (count - before[p].requestsAtStart[method]) / rest.Minutes()
		}
	}
	return nil
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// thousands writes a number as people read it.
func thousands(n int) string {
	if n >= 1000 && n%1000 == 0 {
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}
