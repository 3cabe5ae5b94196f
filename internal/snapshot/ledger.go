package snapshot

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/internal/shared"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// note is what a ledger keeps of an object.
type note struct {
	// owner, source and content are hashes of the UID of the controller, of the name of the runtime,
	// and of the summary of the content.
	owner, source, content uint64
	// settled tells that nothing of the object is to be corrected as long as the others are right.
	settled bool
	// version is a hash of the UID and the resource version of what is not settled: each write of that
	// has the TrainJob looked at.
	version uint64
}

// seed makes the hashes of this process, so that nobody can find two contents of one hash.
var seed = maphash.MakeSeed()

func hash(text string) uint64 { return maphash.String(seed, text) }

// settledNote is the note of what holds the snapshot for the TrainJob, and is in order.
func settledNote(job *trainer.TrainJob, s *Snapshot) note {
	return note{owner: hash(string(job.UID)), source: hash(Name(s.Source)), content: hash(s.summary()), settled: true}
}

// noteOf is the note of an object that holds a snapshot; nil for none.
func noteOf(object client.Object, s *Snapshot, settled bool) note {
	is := note{settled: settled && s != nil && object.GetDeletionTimestamp().IsZero()}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		is.owner = hash(string(controller.UID))
	}
	if s != nil {
		is.source, is.content = hash(Name(s.Source)), hash(s.summary())
	}
	if !is.settled {
		is.version = hash(string(object.GetUID()) + " " + object.GetResourceVersion())
	}
	return is
}

// ledger knows of each object of a kind, by the TrainJob that it is named after, what the reconciler
// asks of it: a hundred bytes where a cache would hold a thousand. It is a source of the
// controller, which has the TrainJob looked at when the note of an object changes. What is not as
// it should be is read live.
type ledger struct {
	// client lists and watches the objects, which are those of the list that these options select.
	client  client.WithWatch
	list    func() client.ObjectList
	options []client.ListOption
	// trainJob tells by the name of an object that of its TrainJob; false where it has none.
	trainJob func(name string) (string, bool)
	// take makes the note of an object.
	take func(client.Object) note

	pool   *shared.Pool
	mu     sync.RWMutex
	notes  map[types.NamespacedName]note
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	filled chan struct{}
	once   sync.Once
}

// newLedger returns an empty ledger.
func newLedger(c client.WithWatch, list func() client.ObjectList, trainJob func(string) (string, bool), take func(client.Object) note, options ...client.ListOption) *ledger {
	return &ledger{client: c, list: list, options: options, trainJob: trainJob, take: take, pool: shared.NewPool(), notes: map[types.NamespacedName]note{}, filled: make(chan struct{})}
}

// of returns the note of the object that is named after the TrainJob.
func (l *ledger) of(job *trainer.TrainJob) (is note, found bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	is, found = l.notes[client.ObjectKeyFromObject(job)]
	return is, found
}

// Start lists and watches the objects until the context ends.
func (l *ledger) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.queue = queue
	raw := func(options metav1.ListOptions) *client.ListOptions {
		asked := &client.ListOptions{Raw: &options}
		return asked.ApplyOptions(l.options)
	}
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := l.list()
			return list, l.client.List(ctx, list, raw(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return l.client.Watch(ctx, l.list(), raw(options))
		},
	}
	reflector := toolscache.NewReflectorWithOptions(source, nil, l, toolscache.ReflectorOptions{Name: "ledger", TypeDescription: l.kind()})
	go reflector.RunWithContext(ctx)
	return nil
}

// WaitForSync waits until the ledger has all objects.
func (l *ledger) WaitForSync(ctx context.Context) error {
	select {
	case <-l.filled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("not all objects for %s were read in time", l.kind())
	}
}

// kind tells which objects these are.
func (l *ledger) kind() string { return fmt.Sprintf("%T", l.list()) }

// noted is an object on its way into the ledger: what a Reflector asks of it, and its note.
type noted struct {
	metav1.ObjectMeta
	note
}

// Transformer has the objects of a list forgotten while the list is still being read.
func (l *ledger) Transformer() toolscache.TransformFunc {
	return func(object any) (any, error) { return l.read(object) }
}

// read takes the note of an object, if that has not been done.
func (l *ledger) read(object any) (*noted, error) {
	switch object := object.(type) {
	case *noted:
		return object, nil
	case client.Object:
		read := &noted{ObjectMeta: metav1.ObjectMeta{
			Namespace: l.pool.String(object.GetNamespace()), Name: object.GetName(), ResourceVersion: object.GetResourceVersion(),
		}}
		if _, found := l.trainJob(read.Name); found {
			read.note = l.take(object)
		}
		return read, nil
	}
	return nil, fmt.Errorf("a ledger got a %T", object)
}

// trainJobOf returns which TrainJob an object is for; false where it is for none.
func (l *ledger) trainJobOf(object metav1.Object) (types.NamespacedName, bool) {
	name, found := l.trainJob(object.GetName())
	return types.NamespacedName{Namespace: l.pool.String(object.GetNamespace()), Name: name}, found
}

// Add implements cache.ReflectorStore.
func (l *ledger) Add(object any) error { return l.Update(object) }

// Update implements cache.ReflectorStore.
func (l *ledger) Update(object any) error {
	read, err := l.read(object)
	if err != nil {
		return err
	}
	key, found := l.trainJobOf(read)
	if !found {
		return nil
	}
	l.mu.Lock()
	before, found := l.notes[key]
	l.notes[key] = read.note
	l.mu.Unlock()
	if !found || before != read.note {
		l.queue.Add(reconcile.Request{NamespacedName: key})
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (l *ledger) Delete(object any) error {
	gone, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("a ledger got a %T", object)
	}
	key, found := l.trainJobOf(gone)
	if !found {
		return nil
	}
	l.mu.Lock()
	delete(l.notes, key)
	l.mu.Unlock()
	l.queue.Add(reconcile.Request{NamespacedName: key})
	return nil
}

// Replace implements cache.ReflectorStore.
func (l *ledger) Replace(objects []any, _ string) error {
	notes := make(map[types.NamespacedName]note, len(objects))
	for _, object := range objects {
		read, err := l.read(object)
		if err != nil {
			return err
		}
		if key, found := l.trainJobOf(read); found {
			notes[key] = read.note
		}
	}
	l.mu.Lock()
	before := l.notes
	l.notes = notes
	l.mu.Unlock()
	l.once.Do(func() { close(l.filled) })
	for key, is := range notes {
		if was, found := before[key]; !found || was != is {
			l.askLater(key)
		}
	}
	for key := range before {
		if _, found := notes[key]; !found {
			l.askLater(key)
		}
	}
	return nil
}

// askLater has the TrainJob looked at after those of which there is news, as controller-runtime does
// with what informers list.
func (l *ledger) askLater(key types.NamespacedName) {
	request := reconcile.Request{NamespacedName: key}
	if queue, ok := l.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, request)
		return
	}
	l.queue.Add(request)
}

// Resync implements cache.ReflectorStore.
func (l *ledger) Resync() error { return nil }
