package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// admissionSize says how much is measured.
type admissionSize struct {
	// pairs of phases, Signalbox off and then on; in each phase each write is made warm times
	// without being measured and then each times.
	pairs, warm, each int
}

// phase is what was measured while Signalbox was off, or on.
type phase struct {
	times   map[string]figures.Samples
	counted map[string]reading
}

// pair is a phase with Signalbox off and the one after it with Signalbox on.
type pair struct{ off, on phase }

// admission measures the same writes with Signalbox off and on, in turn.
func admission(ctx context.Context, o options) (report *figures.Report, err error) {
	size := admissionSize{pairs: 8, warm: 5, each: 50}
	if o.short {
		size = admissionSize{pairs: 4, warm: 2, each: 5}
	}
	c, err := cluster.Start(ctx, cluster.Options{Signalbox: true, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	// What it does after a write takes the processors from the next one, with Signalbox and without.
	if err := c.PauseTrainer(ctx); err != nil {
		return nil, err
	}
	pairs, err := measureAdmission(ctx, c, size)
	if err != nil {
		return nil, err
	}
	return admissionReport(pairs, size), nil
}

func measureAdmission(ctx context.Context, c *cluster.Cluster, size admissionSize) ([]pair, error) {
	signalbox, err := newSwitch(ctx, c)
	if err != nil {
		return nil, err
	}
	counters, err := newCounters(c)
	if err != nil {
		return nil, err
	}
	w := &writes{cluster: c, namespace: "admission", runtime: "admission"}
	if err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}); err != nil {
		return nil, err
	}
	pairs := make([]pair, size.pairs)
	for i := range pairs {
		began := time.Now()
		if err := signalbox.off(ctx); err != nil {
			return nil, err
		}
		if pairs[i].off, err = w.phase(ctx, counters, size, false); err != nil {
			return nil, err
		}
		if err := signalbox.on(ctx); err != nil {
			return nil, err
		}
		if pairs[i].on, err = w.phase(ctx, counters, size, true); err != nil {
			return nil, err
		}
		off, on := pairs[i].off.times[writeCreate].Quantile(0.5), pairs[i].on.times[writeCreate].Quantile(0.5)
		fmt.Fprintf(os.Stderr, "admission: pair %d of %d took %s; p50 of CREATE %s off, %s on\n",
			i+1, len(pairs), time.Since(began).Round(time.Millisecond), off.Round(time.Microsecond), on.Round(time.Microsecond))
	}
	return pairs, nil
}

// phase makes all writes, one kind after the other.
func (w *writes) phase(ctx context.Context, counters *counters, size admissionSize, on bool) (phase, error) {
	p := phase{map[string]figures.Samples{}, map[string]reading{}}
	if err := w.begin(ctx); err != nil {
		return p, err
	}
	sealed := 0
	for _, kind := range w.all() {
		if _, err := kind.measure(ctx, 0, size.warm); err != nil {
			return p, err
		}
		before, err := counters.read(ctx)
		if err != nil {
			return p, err
		}
		if p.times[kind.name], err = kind.measure(ctx, size.warm, size.each); err != nil {
			return p, err
		}
		after, err := counters.read(ctx)
		if err != nil {
			return p, err
		}
		p.counted[kind.name] = after.since(before)
		if kind.seals && on {
			sealed += size.warm + size.each
			if err := w.filed(ctx, sealed); err != nil {
				return p, err
			}
		}
	}
	return p, w.end(ctx)
}

// measure makes a kind of write for so many objects from number from on.
func (w write) measure(ctx context.Context, from, count int) (figures.Samples, error) {
	var samples figures.Samples
	for i := from; i < from+count; i++ {
		send, after := w.prepare(i)
		start := time.Now()
		err := send(ctx)
		samples = append(samples, time.Since(start))
		if err == nil && after != nil {
			err = after(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		time.Sleep(w.pause)
	}
	return samples, nil
}

// filed waits until the reconciler has done its part for so many sealed TrainJobs, so that it does
// not do so while other writes are measured.
func (w *writes) filed(ctx context.Context, count int) error {
	if err := w.counts(ctx, snapshotObject(), count); err != nil {
		return err
	}
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	return w.counts(ctx, config, count, client.HasLabels{v1alpha1.LabelRuntimeRevision})
}

// snapshotObject is a TrainingRuntimeSnapshot by its kind alone.
func snapshotObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind))
	return object
}
