package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// No TrainJob ends early, none is missed and none comes back, whatever dies: users create,
// suspend, resume and complete TrainJobs at random while webhook, reconciler, Trainer and API
// server are killed and started again.
func TestDeadlineChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos.seed=%d -chaos.jobs=%d -chaos.duration=%s", seed, *chaosJobs, *chaosDuration)
	namespace := newNamespace(t)
	parts := &killer{random: rand.New(rand.NewPCG(seed, 0)), started: time.Now()}
	records, users := cast(seed, namespace, parts)

	watch, err := newWatcher(namespace, records)
	if err != nil {
		t.Fatal(err)
	}
	watching, stopWatching := context.WithCancel(t.Context())
	var watched sync.WaitGroup
	watched.Go(func() { watch.run(watching) })
	t.Cleanup(func() {
		stopWatching()
		watched.Wait()
		judge(t, seed, parts, records)
	})

	if err := unrest(t.Context(), namespace, parts, records, users); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a webhook that works", func() (bool, string) {
		err := shared.Client.Create(t.Context(), manifest(namespace, "probe", 60, true, false), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	// The longest limit from now, the time in which controllers that met errors try again,
	// and some for a busy machine.
	if err := settle(t.Context(), namespace, records, mostLimit()+patience); err != nil {
		t.Error(err)
	}
	if err := hold(t.Context(), namespace, records, 6*time.Second); err != nil {
		t.Error(err)
	}
	readBack(t, namespace, records)
}

// mostLimit is the longest limit of the TrainJobs that reach it.
func mostLimit() time.Duration {
	return min(max(*chaosDuration/3, 10*time.Second), 90*time.Second)
}

// cast makes the users and what is recorded of their TrainJobs.
func cast(seed uint64, namespace string, parts *killer) (map[string]*record, []*user) {
	records := map[string]*record{}
	var users []*user
	for i := range *chaosJobs {
		random := rand.New(rand.NewPCG(seed, uint64(i+1)))
		limit := time.Duration(4+random.IntN(int(mostLimit()/time.Second)-3)) * time.Second
		if random.IntN(10) == 0 {
			limit = longLimit
		}
		r := &record{
			name:     fmt.Sprintf("job-%d", i),
			limit:    limit,
			bySpec:   random.IntN(2) == 0,
			started:  parts.started,
			finished: make(chan struct{}),
		}
		records[r.name] = r
		users = append(users, &user{record: r, random: random, namespace: namespace, before: *chaosDuration * 7 / 10})
	}
	return records, users
}

// unrest lets the users work and kills parts for the time of the flag. All parts are up when
// it returns.
func unrest(ctx context.Context, namespace string, parts *killer, records map[string]*record, users []*user) error {
	limited, stop := context.WithTimeout(ctx, *chaosDuration)
	defer stop()
	var busy sync.WaitGroup
	for _, u := range users {
		busy.Go(func() { u.run(limited) })
	}
	busy.Go(func() {
		for pause(limited, 2*time.Second) {
			_, _ = look(limited, namespace, records) // the API server may be away
		}
	})
	err := parts.run(limited)
	stop()
	busy.Wait()
	return err
}

// readBack compares what is stored at the end with what was seen of it.
func readBack(t *testing.T, namespace string, records map[string]*record) {
	t.Helper()
	for name, r := range records {
		if r.end() == "never created" {
			continue
		}
		job, err := read(t.Context(), namespace, name)
		if err != nil {
			r.problem("read at the end: %v", err)
			continue
		}
		r.stored(job, false, time.Now())
	}
}

// judge fails the test for each problem, with all that may explain it.
func judge(t *testing.T, seed uint64, parts *killer, records map[string]*record) {
	t.Helper()
	t.Logf("%s\n%s", outcome(records), parts)
	for _, r := range records {
		for _, text := range r.problems {
			t.Errorf("TrainJob %s: %s", r.name, text)
		}
		if len(r.problems) > 0 {
			t.Log(r.report())
		}
	}
	if t.Failed() {
		t.Logf("again with: go test ./test/chaos -run TestDeadlineChaos -args -chaos.seed=%d -chaos.jobs=%d -chaos.duration=%s",
			seed, *chaosJobs, *chaosDuration)
	}
}
