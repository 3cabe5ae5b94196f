package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func second(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

// hear tells the watcher of a pod of the TrainJob job-0.
func hear(w *watcher, what apiwatch.EventType, uid string, at time.Time) {
	pod := &metav1.PartialObjectMetadata{}
	pod.Namespace, pod.UID, pod.Labels = "ns", types.UID(uid), map[string]string{trainer.LabelJobSetName: "job-0"}
	w.pod(apiwatch.Event{Type: what, Object: pod}, at)
}

func TestWatcherEnds(t *testing.T) {
	w := &watcher{fates: map[client.ObjectKey]*fate{}}
	hear(w, apiwatch.Added, "a", second(-9)) // before its creation is answered
	w.expect("ns", "job-0", second(0.5))
	hear(w, apiwatch.Added, "b", second(-8))
	w.expect("ns", "job-1", second(0))
	w.of(client.ObjectKey{Namespace: "ns", Name: "job-1"}).failed = second(0.25)
	w.of(client.ObjectKey{Namespace: "ns", Name: "job-1"}).pods["c"] = second(1)
	w.expect("other", "job-0", second(-60))

	job := &trainer.TrainJob{}
	job.Namespace, job.Name = "ns", "job-0"
	w.trainJob(apiwatch.Event{Type: apiwatch.Modified, Object: job}, second(0.6))
	job.Status.Conditions = []metav1.Condition{{Type: trainer.ConditionFailed, Status: metav1.ConditionTrue, Reason: trainer.ReasonDeadlineExceeded}}
	w.trainJob(apiwatch.Event{Type: apiwatch.Modified, Object: job}, second(0.75))
	w.trainJob(apiwatch.Event{Type: apiwatch.Modified, Object: job}, second(5)) // no news
	hear(w, apiwatch.Deleted, "a", second(2))
	if at := w.of(client.ObjectKey{Namespace: "ns", Name: "job-0"}).gone(); !at.IsZero() {
		t.Errorf("gone at %s, with a pod left", at)
	}
	hear(w, apiwatch.Deleted, "b", second(1.5))

	got := w.ends("ns")
	for stage, want := range map[stage]struct{ last, whole time.Duration }{
		failed: {250 * time.Millisecond, 750 * time.Millisecond},
		gone:   {1500 * time.Millisecond, 2 * time.Second},
	} {
		if len(got.late[stage]) != 2 || got.late[stage].Quantile(1) != want.last || got.whole(stage) != want.whole {
			t.Errorf("stage %d: late %v, whole %s; want the last %s late, whole %s", stage, got.late[stage], got.whole(stage), want.last, want.whole)
		}
	}
}

func TestExpiryTargets(t *testing.T) {
	took := func(late, whole time.Duration) []ends {
		one := ends{late: map[stage]figures.Samples{}, took: map[stage]time.Duration{}}
		for _, s := range stages {
			one.late[s.stage], one.took[s.stage] = figures.Samples{late}, whole
		}
		return []ends{one}
	}
	f := &expiryFigures{ends: map[way]map[int][]ends{
		bySignalbox: {10: took(100*time.Millisecond, time.Second), 1000: took(0, 13*time.Second)},
		byStock:     {10: took(0, time.Second), 1000: took(0, 12*time.Second)},
		byClient:    {10: took(0, time.Second), 1000: took(0, 10*time.Second)},
	}}
	var got []string
	for _, target := range f.targets([]round{{10, 1, 0}, {1000, 1, 0}}) {
		got = append(got, target.Got+map[bool]string{true: " met", false: " missed"}[target.Met])
	}
	if diff := cmp.Diff([]string{"100 ms met", "1.30 met", "1.08 missed", "1.30 met", "1.08 missed"}, got); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}
