package list

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// stored is an object as the API server gives it.
func stored(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	if is, ok := object.(*unstructured.Unstructured); ok {
		return is
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func fill(t *testing.T, shelf holder, objects ...any) {
	t.Helper()
	shelf.begin()
	for _, object := range objects {
		if err := shelf.list(stored(t, object)); err != nil {
			t.Fatal(err)
		}
	}
}

// torch is a runtime of this image.
func torch(image string) *unstructured.Unstructured {
	runtime := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
	runtime.SetName("torch")
	runtime.SetUID("uid-of-torch")
	runtime.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"image": image}}}
	return runtime
}

func revisionOf(runtime *unstructured.Unstructured) string {
	return snapshot.Revision(runtime.Object["spec"].(map[string]any))
}

// sealOf are the annotations that seal a runtime into a TrainJob.
func sealOf(t *testing.T, runtime *unstructured.Unstructured) map[string]string {
	t.Helper()
	taken, err := snapshot.Take(runtime.Object)
	if err != nil {
		t.Fatal(err)
	}
	return taken.Pack().Seal(created)
}

func queuedIn(workload *unstructured.Unstructured, queue string) *unstructured.Unstructured {
	if err := unstructured.SetNestedField(workload.Object, queue, "spec", "queueName"); err != nil {
		panic(err)
	}
	return workload
}

func TestPicture(t *testing.T) {
	now := created.Add(15 * time.Minute)
	of := func(name string) *builder.TrainJobBuilder {
		return builder.TrainJob("ns", name).Created(created).Runtime(trainer.ClusterTrainingRuntimeKind, "torch")
	}
	was, is := torch("one"), torch("two")
	runs := of("runs").Stamp(created).Annotations(sealOf(t, was)).Deadline(3600).Obj()
	ends := of("ends").Obj()
	ended := builder.JobSet(ends).Obj()
	ended.Status.Conditions = append(ended.Status.Conditions, builder.TrainJob("", "").Condition("Completed", "True", "x", now).Obj().Status.Conditions...)
	first, second := of("first").Suspended().Obj(), of("second").Suspended().Obj()
	waits := of("waits").Suspended().Label(kueue.LabelQueue, "team").Obj()
	lost := builder.TrainJob("ns", "lost").Created(created).Runtime(trainer.TrainingRuntimeKind, "torch").Obj()

	p := newPicture()
	p.signalbox, p.kueue, p.keeps = true, true, ptr.To(true)
	p.kept[ends.UID] = revisionOf(is)
	fill(t, &p.jobs, runs, ends, first, second, waits, lost)
	p.jobs.end()
	fill(t, &p.jobSets, ended)
	p.jobSets.end()
	fill(t, &p.workloads,
		queuedIn(builder.Workload(second).Created(created.Add(time.Minute)).Obj(), "team"),
		queuedIn(builder.Workload(first).Created(created).Obj(), "team"))
	p.workloads.end()
	fill(t, &p.runtimes[0], is)
	p.runtimes[0].end()

	type seen struct {
		Name     string
		State    kubectl.State
		Changed  Changed
		Queue    string
		Position int
	}
	look := func() []seen {
		p.stale()
		var out []seen
		for _, row := range p.rows(now) {
			out = append(out, seen{row.Name, row.State, row.Changed, row.Queue, row.Position})
		}
		return out
	}
	want := []seen{
		{"runs", kubectl.Running, HasChanged, "", 0},
		{"ends", kubectl.Finishing, Unchanged, "", 0},
		{"lost", kubectl.Running, Unknown, "", 0},
		{"first", kubectl.Queued, Unknown, "team", 1},
		{"second", kubectl.Queued, Unknown, "team", 2},
		{"waits", kubectl.Queued, Unknown, "team", 0},
	}
	for i := range want[3:] {
		want[3+i].Changed = Follows
	}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// The runtimes of namespaces have been read, and there is none; another is gone; the first in the queue
	// has left it.
	fill(t, &p.runtimes[1])
	p.runtimes[1].end()
	fill(t, &p.runtimes[0])
	p.runtimes[0].end()
	p.workloads.take(builder.Workload(first).Obj())
	want[0].Changed, want[1].Changed, want[2].Changed = Gone, Gone, Gone
	want = append(want[:3:3], seen{"second", kubectl.Queued, Gone, "team", 1}, seen{"waits", kubectl.Queued, Gone, "team", 0}, seen{"first", kubectl.Suspended, Gone, "", 0})
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
}

// A list that is read again says what has gone meanwhile, and one that breaks off changes nothing.
func TestShelf(t *testing.T) {
	a, b, c := builder.TrainJob("ns", "a").Obj(), builder.TrainJob("ns", "b").Obj(), builder.TrainJob("ns", "c").Obj()
	shelf := shelf[*trainer.TrainJob]{reduce: jobOf}
	fill(t, &shelf, a, b)
	if len(shelf.items) != 0 || shelf.read {
		t.Errorf("a list that has not ended counts: %v", shelf.items)
	}
	if gone := shelf.end(); len(gone) != 0 || !shelf.read {
		t.Errorf("gone after the first list: %v", gone)
	}
	fill(t, &shelf, b)
	fill(t, &shelf, b, c)
	if len(shelf.items) != 2 || shelf.items[a.UID] == nil {
		t.Errorf("a list that has not ended counts: %v", shelf.items)
	}
	if gone := shelf.end(); len(gone) != 1 || gone[a.UID].Name != "a" || len(shelf.items) != 2 {
		t.Errorf("gone is %v, there is %v", gone, shelf.items)
	}
	if item, found := shelf.take(stored(t, b)); !found || item.Name != "b" || len(shelf.items) != 1 {
		t.Errorf("taken is %v, there is %v", item, shelf.items)
	}
	if err := shelf.put(stored(t, a)); err != nil || len(shelf.items) != 2 {
		t.Errorf("put: %v, there is %v", err, shelf.items)
	}
}

// What is sealed counts where it holds together, and is not kept.
func TestJobOf(t *testing.T) {
	was := torch("one")
	job := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Created(created).Runtime(trainer.ClusterTrainingRuntimeKind, "torch").Annotations(sealOf(t, was))
	}
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want string
	}{
		"sealed":                          {job(), revisionOf(was)},
		"not sealed":                      {builder.TrainJob("ns", "job"), ""},
		"the revision of other content":   {job().Annotation(v1alpha1.AnnotationRuntimeRevision, "0123456789abcdef"), ""},
		"the seal of another runtime":     {job().Runtime(trainer.ClusterTrainingRuntimeKind, "jax"), ""},
		"what is no seal":                 {job().Annotation(v1alpha1.AnnotationRuntimeSnapshot, "H4sI"), ""},
		"the seal of an earlier TrainJob": {job().Created(created.Add(time.Hour)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := jobOf(stored(t, tc.job.Obj()))
			if err != nil {
				t.Fatal(err)
			}
			if got := kubectl.SealedRevision(kept); got != tc.want {
				t.Errorf("sealed is %q, want %q", got, tc.want)
			}
			if seal := kept.Annotations[v1alpha1.AnnotationRuntimeSnapshot]; len(seal) > len(sealedMark) {
				t.Errorf("%d bytes of seal are kept", len(seal))
			}
		})
	}
}

// Of what others put into a Workload, only what orders it is kept.
func TestWorkloadOf(t *testing.T) {
	full := queuedIn(builder.Workload(builder.TrainJob("ns", "a").Obj()).Created(created).Condition(kueue.QuotaReserved, "True", created).PodSets(map[string]any{"name": "node"}).Obj(), "team")
	full.SetAnnotations(map[string]string{"large": "text"})
	kept, err := workloadOf(full)
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(full.Object, "spec", "podSets")
	unstructured.RemoveNestedField(full.Object, "metadata", "annotations")
	unstructured.RemoveNestedField(full.Object, "metadata", "labels")
	delete(full.Object, "apiVersion")
	delete(full.Object, "kind")
	if diff := cmp.Diff(full.Object, kept.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
