package list

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// source reads the objects of one kind.
type source interface {
	// each calls f for each object, in pages, and returns the version from which to watch. After an error
	// of the API server in the middle it may begin anew: restart is called then.
	each(ctx context.Context, restart func(), f func(*unstructured.Unstructured) error) (resourceVersion string, err error)
	watch(ctx context.Context, resourceVersion string) (watch.Interface, error)
	// why tells what has become of an object that is not listed any more.
	why(ctx context.Context, object *unstructured.Unstructured) kubectl.State
}

// happening is what one follower has seen.
type happening struct {
	what   what
	object *unstructured.Unstructured
	// state of an object that is not listed any more.
	state kubectl.State
	err   error
}

type what int

const (
	// began: a list begins, and replaces what is there once it has ended.
	began what = iota
	listed
	ended
	// put: an object has come or has changed. taken: it is not listed any more.
	put
	taken
	// failed: what is there may be old, since err. well: it is not.
	failed
	well
)

// pace is how long a follower waits after an error: first, then twice the time each time, up to most.
type pace struct{ first, most time.Duration }

var ordinaryPace = pace{first: time.Second, most: 30 * time.Second}

// follower reads the objects of one kind, and all that becomes of them, as long as its context lasts. What
// was seen stays when the API server does not answer, or does not let it read any more.
type follower struct {
	source source
	pace   pace
	// tell is told what happens, in order; false ends the follower.
	tell func(happening) bool

	wait time.Duration
	// troubled: the last that was told is an error.
	troubled bool
	// listed: nothing was seen since a list.
	listed bool
}

// run follows from this version on; from "" it lists first.
func (f *follower) run(ctx context.Context, version string) {
	for ctx.Err() == nil {
		var on bool
		if version == "" {
			version, on = f.list(ctx)
		} else {
			version, on = f.watch(ctx, version)
		}
		if !on {
			return
		}
	}
}

// list lists all, and returns the version to watch from; "" to list again.
func (f *follower) list(ctx context.Context) (version string, on bool) {
	on = f.tell(happening{what: began})
	version, err := f.source.each(ctx, func() { f.tell(happening{what: began}) }, func(object *unstructured.Unstructured) error {
		if !f.tell(happening{what: listed, object: object}) {
			return context.Canceled
		}
		return nil
	})
	if err != nil {
		return "", on && f.pause(ctx, err)
	}
	f.listed = true
	return version, f.tell(happening{what: ended})
}

// watch watches until it ends, and returns the version to watch from then; "" to list again: where the API
// server does not remember that version, and where it does not allow to watch, which then is reading
// all again and again.
func (f *follower) watch(ctx context.Context, version string) (next string, on bool) {
	watcher, err := f.source.watch(ctx, version)
	if err == nil {
		if !f.recovered() {
			watcher.Stop()
			return "", false
		}
		var seen bool
		version, seen, err = f.see(ctx, watcher, version)
		watcher.Stop()
		if seen {
			f.wait, f.listed = 0, false
		}
		if err == nil && seen {
			return version, ctx.Err() == nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return "", false
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// The version of a list that is forgotten at once would have all listed again without an end.
		return "", !f.listed || f.sleep(ctx)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
		version = ""
	}
	if err == nil {
		// It ended without a word. That is no trouble, but nothing to be done again at once.
		return version, f.sleep(ctx)
	}
	return version, f.pause(ctx, err)
}

// see tells what a watch says until it ends. seen is false when it said nothing.
func (f *follower) see(ctx context.Context, watcher watch.Interface, version string) (next string, seen bool, err error) {
	for {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return version, seen, nil
		case event, open = <-watcher.ResultChan():
		}
		if !open {
			return version, seen, nil
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !ok {
			return version, seen, apierrors.FromObject(event.Object)
		}
		seen = true
		on := true
		switch event.Type {
		case watch.Added, watch.Modified:
			on = f.tell(happening{what: put, object: object})
		case watch.Deleted:
			on = f.tell(happening{what: taken, object: object, state: f.source.why(ctx, object)})
		}
		if !on {
			return version, seen, context.Canceled
		}
		if is := object.GetResourceVersion(); is != "" {
			version = is
		}
	}
}

// recovered tells that what is there is not old, once after each error.
func (f *follower) recovered() bool {
	if !f.troubled {
		return true
	}
	f.troubled = false
	return f.tell(happening{what: well})
}

// pause tells of an error, and waits.
func (f *follower) pause(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	f.troubled = true
	return f.tell(happening{what: failed, err: err}) && f.sleep(ctx)
}

// sleep waits, the longer the more often it is called without anything happening.
func (f *follower) sleep(ctx context.Context) bool {
	f.wait = min(max(2*f.wait, f.pace.first), f.pace.most)
	timer := time.NewTimer(f.wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
