package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// history is every version of a TrainJob that was ever stored, in order.
type history struct {
	s    *scene
	name string

	mu       sync.Mutex
	versions []*unstructured.Unstructured
}

// follow starts the history of a TrainJob that is to be created. It ends with the test.
func (s *scene) follow(name string) *history {
	s.Helper()
	h := &history{s: s, name: name}
	s.each(name, func(job *unstructured.Unstructured, _ watch.EventType) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.versions = append(h.versions, job)
	})
	return h
}

// each calls seen for each change of a TrainJob that is to be created, in order, until the test
// ends.
func (s *scene) each(name string, seen func(*unstructured.Unstructured, watch.EventType)) {
	s.Helper()
	c, err := client.NewWithWatch(s.cluster.Config, client.Options{})
	s.must(err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(trainer.GroupVersion.WithKind("TrainJobList"))
	s.must(c.List(s.ctx, list, client.InNamespace(s.namespace)))
	ctx, stop := context.WithCancel(s.ctx)
	events, err := c.Watch(ctx, list, client.InNamespace(s.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		stop()
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if job, ok := event.Object.(*unstructured.Unstructured); ok && job.GetName() == name {
				seen(job, event.Type)
			}
		}
	}()
	s.Cleanup(func() {
		stop()
		<-done
	})
}

// all returns the versions up to the one that is stored now.
func (h *history) all() []*unstructured.Unstructured {
	h.s.Helper()
	last := h.s.get(h.name).ResourceVersion
	var versions []*unstructured.Unstructured
	h.s.eventually("the history of TrainJob "+h.name, func() (bool, string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, version := range h.versions {
			if version.GetResourceVersion() == last {
				versions = h.versions[:i+1]
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d versions without %s", len(h.versions), last)
	})
	return versions
}

// stamps checks what holds for every version of a TrainJob that Kueue resumes and suspends,
// and returns the start of each of its active periods. Suspended, it has no stamp; while it is
// active the stamp does not change, and a later period has a later one. There is no seal
// before the first period, and from then on it is the same to the byte.
func (h *history) stamps() []time.Time {
	h.s.Helper()
	var stamps []time.Time
	var stamp, snapshot, revision string
	var before *trainer.TrainJob
	for i, version := range h.all() {
		job := h.s.view(version)
		fail := func(what string) {
			h.s.Helper()
			h.s.Fatalf("version %d of TrainJob %s: %s\nbefore: %s\nnow: %s", i, h.name, what, h.s.text(before), h.s.text(version))
		}
		if before != nil && job.UID != before.UID {
			fail("another one of the same name")
		}
		at := job.Annotations[v1alpha1.AnnotationResumedAt]
		sealed := [2]string{job.Annotations[v1alpha1.AnnotationRuntimeSnapshot], job.Annotations[v1alpha1.AnnotationRuntimeRevision]}
		switch {
		case !job.Active():
			if at != "" {
				fail("stamped while suspended")
			}
		case before == nil || !before.Active():
			start := h.s.stamp(job)
			if len(stamps) > 0 && !start.After(stamps[len(stamps)-1]) {
				fail("stamped not later than the period before")
			}
			if len(stamps) == 0 {
				snapshot, revision = sealed[0], sealed[1]
				h.s.sealed(job)
			}
			stamp, stamps = at, append(stamps, start)
		case at != stamp:
			fail("stamped again in the same period")
		}
		if sealed != [2]string{snapshot, revision} {
			fail("the seal is another")
		}
		before = job
	}
	return stamps
}

// periods checks the whole history of a TrainJob as stamps does, and that its active periods
// began at these instants.
func (h *history) periods(want ...time.Time) {
	h.s.Helper()
	got := h.stamps()
	same := len(got) == len(want)
	for i := range got {
		same = same && got[i].Equal(want[i])
	}
	if !same {
		h.s.Errorf("TrainJob %s was stamped at %v, want %v", h.name, got, want)
	}
}
