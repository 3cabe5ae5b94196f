package list

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

const (
	// frame is how long news are gathered before they are shown: what comes with a TrainJob comes at once.
	frame = 250 * time.Millisecond
	// second is how often it is looked at what time has changed.
	second = time.Second
	// again is how often it is found out anew what is installed, and what was filed of runtimes.
	again = time.Minute
	// enough is for how long what was filed of a runtime and was not found is not looked for again.
	enough = 5 * time.Minute
	// aside is how long it may take to find out why a TrainJob is not listed any more.
	aside = 3 * time.Second
)

// kindSource reads a kind from the API server.
type kindSource struct {
	l *lister
	*kind
}

func (s kindSource) each(ctx context.Context, restart func(), f func(*unstructured.Unstructured) error) (string, error) {
	return s.l.reader.EachOf(ctx, s.gvk, s.namespace, s.selectors, restart, f)
}

func (s kindSource) watch(ctx context.Context, version string) (watch.Interface, error) {
	return s.l.reader.Watch(ctx, s.gvk, s.namespace, s.selectors, version)
}

func (s kindSource) why(ctx context.Context, object *unstructured.Unstructured) kubectl.State {
	if s.kind != s.l.jobs {
		return ""
	}
	return s.l.why(ctx, object.GetNamespace(), object.GetName(), string(object.GetUID()))
}

// why tells why a TrainJob is not listed any more: the API server says the same of one that is gone as of
// one that does not match the selectors any more.
func (l *lister) why(ctx context.Context, namespace, name, uid string) kubectl.State {
	if l.jobs.selectors == (kubectl.Selectors{}) {
		return Deleted
	}
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	job := &trainer.TrainJob{}
	err := l.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(job.UID) != uid:
		return Deleted
	case err == nil:
		return Unselected
	}
	return Left
}

// viewer shows what it is told of.
type viewer interface {
	// gone is told of a TrainJob that is not listed any more.
	gone(Row, kubectl.State)
	// show shows how it is now. troubles say what may be old.
	show(now time.Time, l *lister, troubles []string) error
}

// watching follows a cluster, and shows it.
type watching struct {
	*lister
	viewer viewer
	pace   pace
	// do are the changes of the picture, to be made one after the other.
	do chan func(ctx context.Context)
	// troubles say by kind what is not read any more, and why.
	troubles map[string]string
}

// watch follows and shows what was read, until the context ends, which is no error, or nothing can be
// shown any more.
func (l *lister) watch(ctx context.Context, viewer viewer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &watching{lister: l, viewer: viewer, pace: ordinaryPace, do: make(chan func(context.Context), 256), troubles: map[string]string{}}
	for _, k := range append([]*kind{l.jobs}, l.sides...) {
		go w.follow(ctx, k)
	}
	return w.run(ctx)
}

// follow follows one kind.
func (w *watching) follow(ctx context.Context, k *kind) {
	f := &follower{source: kindSource{w.lister, k}, pace: w.pace, tell: func(h happening) bool {
		return w.post(ctx, func(ctx context.Context) { w.apply(ctx, k, h) })
	}}
	f.run(ctx, k.version)
}

// post has a change made; false when nobody makes changes any more.
func (w *watching) post(ctx context.Context, change func(context.Context)) bool {
	select {
	case w.do <- change:
		return true
	case <-ctx.Done():
		return false
	}
}

// run makes changes and shows them.
func (w *watching) run(ctx context.Context) error {
	show := func() error { return w.viewer.show(w.now(ctx), w.lister, w.worries()) }
	if err := show(); err != nil {
		return err
	}
	ticks, surveys := time.NewTicker(second), time.NewTicker(again)
	defer ticks.Stop()
	defer surveys.Stop()
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case change := <-w.do:
			change(ctx)
			if due == nil {
				due = time.After(frame)
			}
			continue
		case <-surveys.C:
			w.surveyAgain(ctx)
			continue
		case <-ticks.C:
			if due != nil {
				continue
			}
		case <-due:
			due = nil
		}
		if err := show(); err != nil {
			return err
		}
	}
}

// surveyAgain finds out anew, aside, what does not tell of itself.
func (w *watching) surveyAgain(ctx context.Context) {
	e := w.picture.evidence(w.now(ctx))
	go func() {
		found := w.survey(ctx)
		proof := w.prove(ctx, e)
		w.post(ctx, func(ctx context.Context) {
			if news := w.take(found); news != nil {
				go w.follow(ctx, news)
			}
			w.accept(proof)
		})
	}()
}

// apply takes over what has happened to objects of a kind.
func (w *watching) apply(ctx context.Context, k *kind, h happening) {
	var err error
	switch h.what {
	case began:
		k.shelf.begin()
		return
	case listed:
		err = k.shelf.list(h.object)
	case ended:
		w.picture.forget()
		if k == w.jobs {
			w.gone(ctx, w.picture.jobs.end())
		} else {
			k.shelf.replace()
		}
	case put:
		err = k.shelf.put(h.object)
	case taken:
		if k != w.jobs {
			k.shelf.drop(h.object)
		} else if job, found := w.picture.jobs.take(h.object); found {
			w.viewer.gone(w.picture.row(job, w.now(ctx)), h.state)
		}
	case failed:
		w.trouble(ctx, k, h.err)
	case well:
		delete(w.troubles, k.what)
	}
	if err != nil {
		w.notes.Add(err.Error())
	}
	w.picture.stale()
}

// gone tells of TrainJobs that were not in a list that was read anew.
func (w *watching) gone(ctx context.Context, jobs map[types.UID]*trainer.TrainJob) {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	rows := make([]Row, 0, len(jobs))
	for _, job := range jobs {
		rows = append(rows, w.picture.row(job, w.now(ctx)))
	}
	Sort(rows)
	for _, row := range rows {
		w.viewer.gone(row, w.why(ctx, row.Namespace, row.Name, string(row.UID)))
	}
}

// trouble keeps in mind that a kind cannot be read, and since when. One that never could is a note.
func (w *watching) trouble(ctx context.Context, k *kind, err error) {
	if !k.shelf.known() {
		w.notes.Add(kubectl.Why(k.what, err))
		return
	}
	if _, found := w.troubles[k.what]; !found {
		w.troubles[k.what] = fmt.Sprintf("%s cannot be followed since %s, what is shown of them may be old: %v",
			k.what, w.now(ctx).In(w.zone).Format(time.TimeOnly), err)
	}
}

// worries are the troubles, sorted.
func (w *watching) worries() []string {
	var texts []string
	for _, text := range w.troubles {
		texts = append(texts, kubectl.Clean(text))
	}
	slices.Sort(texts)
	return texts
}
