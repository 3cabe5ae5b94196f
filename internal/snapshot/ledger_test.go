package snapshot

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// asked empties the queue and returns whom it asked for.
func asked(l *ledger) []string {
	var names []string
	for l.queue.Len() > 0 {
		request, _ := l.queue.Get()
		names = append(names, request.Namespace+"/"+request.Name)
		l.queue.Done(request)
	}
	return names
}

// A TrainJob is looked at when what is known of its objects changes, and only then.
func TestLedgerAsksWhenANoteChanges(t *testing.T) {
	w := newWorld(t)
	l := newBench(t).configMaps
	for _, step := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"filled", func() error { return l.Replace([]any{w.config().Obj()}, "1") }, []string{"ns/job"}},
		{"a label of others", func() error { return l.Update(w.config().Label("a", "b").Obj()) }, nil},
		{"made mutable", func() error {
			return l.Update(w.trainers(torch()).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Obj())
		}, []string{"ns/job"}},
		{"the same again", func() error {
			return l.Update(w.trainers(torch()).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Obj())
		}, nil},
		// Unseen, it may have been put in order and broken again.
		{"the same, written again", func() error {
			again := w.trainers(torch()).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Obj()
			again.ResourceVersion = "2"
			return l.Replace([]any{again}, "2")
		}, []string{"ns/job"}},
		{"put in order", func() error { return l.Update(w.config().Obj()) }, []string{"ns/job"}},
		{"listed again", func() error { return l.Replace([]any{w.config().Obj()}, "2") }, nil},
		{"deleted", func() error { return l.Delete(w.config().Obj()) }, []string{"ns/job"}},
		{"created", func() error { return l.Add(w.config().Obj()) }, []string{"ns/job"}},
		{"gone unseen", func() error { return l.Replace(nil, "3") }, []string{"ns/job"}},
		{"one that is not named as Trainer does", func() error {
			other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}
			for _, do := range []func(any) error{l.Add, l.Update, l.Delete, func(object any) error { return l.Replace([]any{object}, "4") }} {
				if err := do(other); err != nil {
					return err
				}
			}
			return nil
		}, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, asked(l)); diff != "" {
			t.Errorf("%s: asked for (-want +got):\n%s", step.what, diff)
		}
	}
	if err := l.Add("a text"); err == nil {
		t.Error("it takes what is no object")
	}
}

// What is settled is settled for one TrainJob and one snapshot.
func TestNotes(t *testing.T) {
	w := newWorld(t)
	other := take(t, torch().Image("image:other"))
	of := func(name string) note {
		object := map[string]client.Object{
			"ConfigMap":                    w.config().Obj(),
			"ConfigMap, mutable":           builder.ConfigMap(w.job, toYAML(t, w.s)).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Obj(),
			"ConfigMap, other label":       w.config().Label(v1alpha1.LabelRuntimeRevision, other.Revision).Obj(),
			"ConfigMap, without the stamp": w.trainers(torch()).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Immutable().Obj(),
			"ConfigMap, unreadable":        builder.ConfigMap(w.job, "\t- {").Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Immutable().Obj(),
			"snapshot":                     w.filed(),
			"snapshot, being deleted": w.filed(func(filed *v1alpha1.TrainingRuntimeSnapshot) {
				filed.DeletionTimestamp = &metav1.Time{Time: sealTime}
			}),
			"snapshot, annotations gone":  w.filed(func(filed *v1alpha1.TrainingRuntimeSnapshot) { filed.Annotations = nil }),
			"snapshot, other revision":    w.filed(func(filed *v1alpha1.TrainingRuntimeSnapshot) { filed.Spec.Revision = other.Revision }),
			"snapshot, of another":        w.filed(func(filed *v1alpha1.TrainingRuntimeSnapshot) { filed.OwnerReferences[0].UID = "another" }),
			"snapshot, without its owner": w.filed(func(filed *v1alpha1.TrainingRuntimeSnapshot) { filed.OwnerReferences = nil }),
		}[name]
		take := noteFiled
		if _, ok := object.(*corev1.ConfigMap); ok {
			take = noteConfigMap
		}
		return take(object)
	}
	want := settledNote(w.job, w.s)
	for name, settled := range map[string]bool{
		"ConfigMap": true, "ConfigMap, mutable": false, "ConfigMap, other label": false, "ConfigMap, without the stamp": false,
		"ConfigMap, unreadable": false, "snapshot": true, "snapshot, being deleted": false, "snapshot, annotations gone": false,
		"snapshot, other revision": false, "snapshot, of another": false, "snapshot, without its owner": false,
	} {
		if got := of(name); (got == want) != settled {
			t.Errorf("%s: note %+v, settled is %+v", name, got, want)
		}
	}
	if settledNote(w.job, other) == want || settledNote(builder.TrainJob("ns", "job").UID("another").Obj(), w.s) == want {
		t.Error("another TrainJob, or another snapshot, has the same note")
	}
	for _, take := range []func(client.Object) note{noteConfigMap, noteFiled} {
		if is := take(w.job); is != (note{}) {
			t.Errorf("a TrainJob has a note: %+v", is)
		}
	}
}

// A ledger lists and watches, and says when it is filled.
func TestLedgerFollows(t *testing.T) {
	w := newWorld(t)
	b := newBench(t, w.job.DeepCopy(), w.filed(), w.config().Obj())
	over, end := context.WithCancel(t.Context())
	end()
	watched := make(chan struct{}, 9)
	watching := interceptor.NewClient(b.store, interceptor.Funcs{Watch: func(ctx context.Context, store client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		var asked client.ListOptions
		asked.ApplyOptions(options)
		if asked.Raw.SendInitialEvents != nil {
			return nil, errors.New("the fake API server sends no list by a watch")
		}
		defer func() { watched <- struct{}{} }()
		return store.Watch(ctx, list, options...)
	}})
	for what, l := range map[string]*ledger{createFiled: b.Reconciler.filed, createConfig: b.configMaps} {
		l.client = watching
		if l.WaitForSync(over) == nil {
			t.Errorf("%s: it is filled before it was started", what)
		}
		if err := l.Start(t.Context(), l.queue); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is, found := l.of(w.job); !found || is != settledNote(w.job, w.s) {
			t.Errorf("%s: note %+v, %v", what, is, found)
		}
		if names := asked(l); !cmp.Equal(names, []string{"ns/job"}) {
			t.Errorf("%s: asked for %v", what, names)
		}
	}
	// The fake API server forgets what happens between a list and a watch.
	<-watched
	<-watched
	if err := b.store.Delete(t.Context(), b.configMap(t)); err != nil {
		t.Fatal(err)
	}
	// Get waits until somebody is asked for.
	if request, _ := b.configMaps.queue.Get(); request.Name != "job" {
		t.Errorf("asked for %s", request)
	}
	if _, found := b.configMaps.of(w.job); found {
		t.Error("what is deleted is still known")
	}
}

// Where all is in order nothing is read of the API server, and nothing written: of a hundred thousand
// TrainJobs nearly all are like that when a reconciler starts.
func TestReconcileReadsNothingOfWhatIsSettled(t *testing.T) {
	w := newWorld(t)
	for name, job := range map[string]*trainer.TrainJob{
		"sealed":                            sealedJob(w.s).Obj(),
		"sealed, suspended":                 sealedJob(w.s).Suspended().Obj(),
		"sealed, complete":                  sealedJob(w.s).Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", sealTime).Obj(),
		"taken over":                        builder.TrainJob("ns", "job").Runtime(w.s.Source.Kind, w.s.Source.Name).Obj(),
		"waiting, with what is of it there": builder.TrainJob("ns", "job").Runtime(w.s.Source.Kind, w.s.Source.Name).Suspended().Annotation(v1alpha1.AnnotationRuntimeSource, Name(w.s.Source)).Obj(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, job, w.filed(), w.config().Obj())
			b.Live = interceptor.NewClient(b.store, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
				t.Errorf("%T %s is read", object, key)
				return errors.New("read")
			}})
			if result, err := b.reconcile(t); err != nil || result != (reconcile.Result{}) {
				t.Errorf("Reconcile = %v, %v; want nothing to do", result, err)
			}
			b.wantWrites(t)
		})
	}
}

// Nothing is done about what is not known yet: a missing note would pass for a missing object.
func TestReconcileWaitsForItsLedgers(t *testing.T) {
	w := newWorld(t)
	b := newBench(t, w.job.DeepCopy(), w.filed(), w.config().Obj())
	over, end := context.WithCancel(t.Context())
	end()
	look := func(ctx context.Context) (reconcile.Result, error) {
		return b.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.job)})
	}
	for _, l := range []*ledger{b.Reconciler.filed, b.configMaps} {
		if result, err := look(over); err != nil || result.RequeueAfter != catchUp || len(b.writes) > 0 {
			t.Errorf("before the ledger of %s is filled: %v, %v, writes %q", l.kind(), result, err, b.writes)
		}
		if err := l.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
	}
	b.catchUp(t)
	if result, err := look(t.Context()); err != nil || result.RequeueAfter == catchUp {
		t.Errorf("once both are filled: %v, %v", result, err)
	}
}

// At the start of a large cluster there is more to look at than news, which must not wait for it.
func TestLedgerPutsNewsBeforeWhatIsListed(t *testing.T) {
	w := newWorld(t)
	l := newBench(t).configMaps
	queue := priorityqueue.New[reconcile.Request]("test")
	t.Cleanup(queue.ShutDown)
	l.queue = queue
	other := builder.ConfigMap(builder.TrainJob("ns", "other").Obj(), "").Obj()
	if err := errors.Join(l.Replace([]any{w.config().Obj()}, "1"), l.Add(other)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"other", "job"} {
		request, priority, _ := queue.GetWithPriority()
		if request.Name != want || (priority < 0) != (want == "job") {
			t.Errorf("%s comes with priority %d, want %s", request.Name, priority, want)
		}
		queue.Done(request)
	}
}

// A list that is read in one go by a watch is forgotten object by object: what is kept until the end
// has the names that a Reflector keeps it by.
func TestLedgerTransforms(t *testing.T) {
	w := newWorld(t)
	l := newBench(t).configMaps
	store := toolscache.NewStore(toolscache.DeletionHandlingMetaNamespaceKeyFunc, toolscache.WithTransformer(l.Transformer()))
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}
	if err := errors.Join(store.Add(w.config().Obj()), store.Add(other), store.Add(w.config().Obj())); err != nil {
		t.Fatal(err)
	}
	if keys := store.ListKeys(); len(keys) != 2 {
		t.Errorf("the store has %q", keys)
	}
	if err := l.Replace(store.List(), "1"); err != nil {
		t.Fatal(err)
	}
	if is, found := l.of(w.job); !found || is != settledNote(w.job, w.s) || len(l.notes) != 1 {
		t.Errorf("note %+v, %v, of %d", is, found, len(l.notes))
	}
}
