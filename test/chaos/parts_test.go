package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// outage is a time in which a part was away, or may have been.
type outage struct {
	part     string
	from, to time.Time // to is zero while it is still away
}

// killer kills parts of the cluster and starts them again.
type killer struct {
	random  *rand.Rand
	started time.Time

	mu      sync.Mutex
	outages []outage
}

// victims are the parts that may die. The API server comes first, since the others need it
// to start.
func victims() []*cluster.Process {
	return []*cluster.Process{shared.APIServer, shared.Webhook, shared.Reconciler, shared.Trainer}
}

// run kills parts, one or sometimes two at a time, until ctx ends. All parts are up when it
// returns nil.
func (k *killer) run(ctx context.Context) error {
	for pause(ctx, k.between(time.Second, 8*time.Second)) {
		parts := victims()
		k.random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		count := 1
		if k.random.IntN(4) == 0 {
			count = 2
		}
		for _, part := range parts[:count] {
			k.kill(part)
		}
		away := k.between(0, 3*time.Second)
		if k.random.IntN(4) == 0 {
			away = k.between(5*time.Second, 15*time.Second)
		}
		pause(ctx, away)
		if err := k.startAll(); err != nil {
			return err
		}
	}
	return k.startAll()
}

// startAll starts the parts that do not run: those that were killed, and those that gave up
// by themselves since the API server was away, as Trainer and the reconciler do.
func (k *killer) startAll() error {
	if !shared.APIServer.Running() {
		// Where replicas of these elect a leader, they end as well. Here they would stay and
		// look for the API server ever more rarely: half a minute later JobSet's controller
		// would still go by JobSets that are gone and make Jobs of them, and kwok would miss
		// the deletions of pods that it did not see.
		for _, part := range []*cluster.Process{shared.ControllerManager, shared.Scheduler, shared.Kwok, shared.JobSet} {
			k.kill(part)
		}
	}
	for _, part := range append(victims(), shared.JobSet, shared.ControllerManager, shared.Scheduler, shared.Kwok) {
		if part.Running() {
			continue
		}
		k.lost(part)
		if err := part.Start(context.Background()); err != nil {
			return err
		}
		k.back(part)
	}
	return nil
}

func (k *killer) between(least, most time.Duration) time.Duration {
	return least + time.Duration(k.random.Int64N(int64(most-least)))
}

func (k *killer) kill(part *cluster.Process) {
	k.lost(part)
	part.Kill()
}

// lost notes that a part is away from now on, if that is new.
func (k *killer) lost(part *cluster.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.outages {
		if o.part == part.Name && o.to.IsZero() {
			return
		}
	}
	k.outages = append(k.outages, outage{part: part.Name, from: time.Now()})
}

func (k *killer) back(part *cluster.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.outages {
		if k.outages[i].part == part.Name && k.outages[i].to.IsZero() {
			k.outages[i].to = time.Now()
		}
	}
}

// String lists the outages in seconds since the start.
func (k *killer) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var lines []string
	for _, o := range k.outages {
		line := fmt.Sprintf("%8.3f %s away", o.from.Sub(k.started).Seconds(), o.part)
		if !o.to.IsZero() {
			line += fmt.Sprintf(" until %.3f", o.to.Sub(k.started).Seconds())
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
