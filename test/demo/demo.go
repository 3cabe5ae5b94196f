package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

const (
	namespace = "demo"
	jobName   = "demo"
	workers   = 2
)

// demo plays the story. All of it runs in one goroutine: the watches only hand over what
// they see.
type demo struct {
	cluster *cluster.Cluster
	client  client.WithWatch
	screen  *screen
	options options
	// limit is the TrainJob's deadline.
	limit time.Duration

	seen  <-chan observation
	world world
	// firstStamp is the stamp of the first resume.
	firstStamp string
	// exceededAt is when the TrainJob was first seen to have failed by its deadline,
	// exceededBy who had made it so.
	exceededAt time.Time
	exceededBy string
	// jobSets is how many JobSets were seen to be created.
	jobSets int
}

// newDemo makes the namespace and watches it.
func newDemo(ctx context.Context, c *cluster.Cluster, o options, screen *screen) (*demo, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, trainer.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	d := &demo{
		cluster: c, screen: screen, options: o, world: world{},
		limit: time.Duration(o.seconds) * time.Second,
	}
	var err error
	if d.client, err = client.NewWithWatch(c.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if err := d.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	d.seen, err = watchAll(ctx, d.client)
	return d, err
}

// create makes the TrainJob, suspended.
func (d *demo) create(ctx context.Context) error {
	spec := map[string]any{
		"suspend":    true,
		"runtimeRef": map[string]any{"name": "torch-distributed"},
		"trainer":    map[string]any{"numNodes": int64(workers)},
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(namespace)
	job.SetName(jobName)
	source := deadline.SourceSpec
	if d.options.annotation {
		source = deadline.SourceAnnotation
		job.SetAnnotations(map[string]string{v1alpha1.AnnotationActiveDeadlineSeconds: strconv.FormatInt(d.options.seconds, 10)})
	} else {
		spec["activeDeadlineSeconds"] = d.options.seconds
	}
	d.say("create the TrainJob suspended, with %d workers and %s: %d", workers, source, d.options.seconds)
	if err := d.client.Create(ctx, job); err != nil {
		return d.failed(fmt.Errorf("create TrainJob: %w", err), d.cluster.Webhook, d.cluster.Trainer)
	}
	return nil
}

// suspend sets spec.suspend, and nothing else, as a user or a queue would.
func (d *demo) suspend(ctx context.Context, suspend bool) error {
	d.say("set suspend: %t", suspend)
	job := &trainer.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: jobName}}
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
	if err := d.client.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return d.failed(fmt.Errorf("set suspend: %w", err), d.cluster.Webhook, d.cluster.Trainer)
	}
	return nil
}

// say prints what the demo does itself, as opposed to what it sees.
func (d *demo) say(format string, args ...any) {
	d.screen.print(time.Now(), line{kind: ">", text: fmt.Sprintf(format, args...), style: dim})
}

// checked prints what a step has shown.
func (d *demo) checked(format string, args ...any) {
	d.screen.print(time.Now(), line{kind: "ok", text: fmt.Sprintf(format, args...), style: green})
}

// failed ties an error to the parts whose logs explain it.
func (d *demo) failed(err error, parts ...*cluster.Process) error {
	return &failure{err: err, parts: parts}
}

// expectation is something that must come, or must not.
type expectation struct {
	// missing says what is not yet as expected, "" when all is.
	missing func(world) string
	// wrong says what must not be but is, "" when all is well.
	wrong func(world) string
	// parts are those that bring it about.
	parts []*cluster.Process
}

// patience is how long a change may take that needs a moment on an idle machine.
const patience = time.Minute

// until shows what happens until the expectation is met, for at most the given time.
func (d *demo) until(ctx context.Context, within time.Duration, e expectation) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		missing := e.missing(d.world)
		if missing == "" {
			return nil
		}
		over, err := d.next(ctx, timer.C, e)
		if err != nil {
			return err
		}
		if over {
			return d.failed(fmt.Errorf("after %s: %s", within, missing), e.parts...)
		}
	}
}

// pass shows what happens while time passes.
func (d *demo) pass(ctx context.Context, duration time.Duration, e expectation) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	for {
		if over, err := d.next(ctx, timer.C, e); over || err != nil {
			return err
		}
	}
}

// next takes in one observation. It returns true when the time is over first.
func (d *demo) next(ctx context.Context, timeOver <-chan time.Time, e expectation) (bool, error) {
	select {
	case o := <-d.seen:
		if o.err != nil {
			return false, d.failed(o.err, d.cluster.APIServer)
		}
		before := d.world.take(o)
		d.record(before, o)
		d.show(before, o)
		if wrong := e.wrong(d.world); wrong != "" {
			return false, d.failed(fmt.Errorf("unexpected: %s", wrong), e.parts...)
		}
		return false, nil
	case <-timeOver:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// record keeps what the end of the story is told from.
func (d *demo) record(before client.Object, o observation) {
	if before == nil && !o.deleted && kindOf(o.object) == kindJobSet {
		d.jobSets++
	}
	if job := d.world.trainJob(); d.exceededAt.IsZero() && job.DeadlineExceeded() {
		d.exceededAt, d.exceededBy = o.at, writerOf(job, trainer.ConditionFailed)
	}
}

// show prints what an observation changes, if it is of interest.
func (d *demo) show(before client.Object, o observation) {
	changes := describe(before, o)
	if len(changes) == 0 {
		return
	}
	kind, name := heading(o.object)
	d.screen.print(o.at, line{
		kind: kind, name: name,
		text:  strings.Join(changes, ", "),
		rest:  remaining(d.world.trainJob(), o.at),
		style: styleOf(o),
	})
}
