package snapshot

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// hold hands an object to the cache, twice, as an informer may.
func hold[T client.Object](t *testing.T, object T) T {
	t.Helper()
	holds, found := heldOf(object)
	if !found {
		t.Fatalf("%T is held whole", object)
	}
	return holdBy(t, holds.Transform, object)
}

func holdBy[T client.Object](t *testing.T, transform func(any) (any, error), object T) T {
	t.Helper()
	for range 2 {
		got, err := transform(object)
		if err != nil || got != any(object) {
			t.Fatalf("the transform returns %v, %v", got, err)
		}
	}
	return object
}

func TestCachedTrainJob(t *testing.T) {
	w := newWorld(t)
	job := sealedJob(w.s).Label("a", "b").CopyOfMultiKueue().Annotation("team", "x").DeadlineAnnotation("60").Deleting(sealTime).
		Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", sealTime).
		Condition(trainer.ConditionFailed, metav1.ConditionTrue, trainer.ReasonDeadlineExceeded, sealTime).Obj()
	job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	job.OwnerReferences = []metav1.OwnerReference{ownerRef("v1", "Experiment", "1")}
	job.Spec.Initializer = &trainer.Initializer{Model: &trainer.Fetched{}}
	seal := job.Annotations[v1alpha1.AnnotationRuntimeSnapshot]

	want := job.DeepCopy()
	want.Finalizers, want.ManagedFields, want.OwnerReferences, want.Spec.Initializer = nil, nil, nil, nil
	want.Labels = map[string]string{trainer.LabelMultiKueueOrigin: "manager"}
	delete(want.Annotations, "team")
	want.Annotations[v1alpha1.AnnotationRuntimeSnapshot], want.Annotations[restKey] = seal[:headSize], seal[headSize:]
	want.Status.Conditions[0].Message = ""
	got := hold(t, job)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the cache (-want +got):\n%s", diff)
	}
	sealed, err := Of(got)
	if err != nil || text(sealed) != text(w.s) || !sealed.SealedAt.Equal(w.s.SealedAt) || sealed.Source != w.s.Source {
		t.Errorf("its seal holds %+v, %v; want %+v", sealed, err, w.s)
	}
}

func TestCachedTrainJobWithoutSeal(t *testing.T) {
	for _, seal := range []string{"", "x", "twelve chars"} {
		job := sealedJob(newWorld(t).s).Annotation(v1alpha1.AnnotationRuntimeSnapshot, seal).Obj()
		want := job.DeepCopy()
		if diff := cmp.Diff(want, hold(t, job)); diff != "" {
			t.Errorf("sealed with %q (-want +got):\n%s", seal, diff)
		}
	}
	bare := newWorld(t).job
	if got := hold(t, bare.DeepCopy()); !cmp.Equal(got, bare) {
		t.Errorf("in the cache: %+v", got)
	}
}

// Two TrainJobs on one runtime have all in common that is large, whenever they were sealed.
func TestCachedShares(t *testing.T) {
	w := newWorld(t)
	later := *w.s
	later.SealedAt = w.s.SealedAt.Add(time.Hour)
	same := func(what, a, b string) {
		t.Helper()
		if a != b || a == "" {
			t.Fatalf("%s: %q and %q", what, a, b)
		}
		if unsafe.StringData(a) != unsafe.StringData(b) {
			t.Errorf("%s is kept twice", what)
		}
	}
	cached := Cached()
	transform := func(like client.Object) func(any) (any, error) {
		for kind, holds := range cached {
			if cmp.Equal(kind, like) {
				return holds.Transform
			}
		}
		t.Fatalf("%T is held whole", like)
		return nil
	}
	// As decoded, each has strings of its own.
	kind := func() string { return strings.Clone(trainer.ClusterTrainingRuntimeKind) }
	first := holdBy(t, transform(&trainer.TrainJob{}), sealedJob(w.s).Runtime(kind(), "torch").Obj())
	second := holdBy(t, transform(&trainer.TrainJob{}), sealedJob(&later).Annotations(later.Pack().Seal(later.SealedAt)).Runtime(kind(), "torch").Obj())
	same("the seal", first.Annotations[restKey], second.Annotations[restKey])
	same("the kind of runtime", *first.Spec.RuntimeRef.Kind, *second.Spec.RuntimeRef.Kind)
	if first.Annotations[v1alpha1.AnnotationRuntimeSnapshot] == second.Annotations[v1alpha1.AnnotationRuntimeSnapshot] {
		t.Error("the time of the seal is the same")
	}
}

func TestCachedJobSet(t *testing.T) {
	w := newWorld(t)
	jobSet := w.jobSet(w.s.Revision).Annotation("team", "x").Obj()
	jobSet.Labels = map[string]string{"a": "b"}
	jobSet.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	jobSet.OwnerReferences = append([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "o", UID: "o"}}, jobSet.OwnerReferences...)
	jobSet.Status.Conditions = []metav1.Condition{{Type: "Completed", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}}
	want := jobSet.DeepCopy()
	want.Labels, want.ManagedFields, want.OwnerReferences = nil, nil, want.OwnerReferences[1:]
	want.OwnerReferences[0].BlockOwnerDeletion = nil
	delete(want.Annotations, "team")
	want.Status.Conditions[0].Message = ""
	if diff := cmp.Diff(want, hold(t, jobSet)); diff != "" {
		t.Errorf("in the cache (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(jobSet, w.job) {
		t.Error("it lost its owner")
	}
}

// What is kept of seals that were read before changes nothing about what is read.
func TestOfTwice(t *testing.T) {
	w := newWorld(t)
	other := take(t, torch().Image("image:other"))
	other.SealedAt = w.s.SealedAt
	late := *w.s
	late.SealedAt = w.s.SealedAt.Add(time.Minute)
	readSeals.Clear()
	for round := range 2 {
		if kept := readSeals.Len(); kept != 2*round {
			t.Errorf("%d seals are kept, want one for each content that was read", kept)
		}
		for _, s := range []*Snapshot{w.s, &late, other} {
			got, err := Of(sealedJob(s).Annotations(s.Pack().Seal(s.SealedAt)).Obj())
			if err != nil || text(got) != text(s) || !got.SealedAt.Equal(s.SealedAt) || got.Revision != s.Revision {
				t.Fatalf("Of = %+v, %v; want %+v", got, err, s)
			}
		}
	}
	seal := sealedJob(w.s).Obj().Annotations[v1alpha1.AnnotationRuntimeSnapshot]
	compressed, err := base64.StdEncoding.DecodeString(seal)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func([]byte){
		"another magic number": func(head []byte) { head[0]++ },
		"another method":       func(head []byte) { head[2]++ },
		"flags":                func(head []byte) { head[3] = 4 },
	} {
		broken := append([]byte(nil), compressed...)
		change(broken)
		job := sealedJob(w.s).Annotation(v1alpha1.AnnotationRuntimeSnapshot, base64.StdEncoding.EncodeToString(broken)).Obj()
		if got, err := Of(job); err == nil {
			t.Errorf("%s: Of = %+v, want an error", what, got)
		}
	}
	for what, value := range map[string]string{"cut": seal[:len(seal)-8], "no rest": seal[:headSize], "not base64": seal[:headSize] + "!"} {
		if got, err := Of(sealedJob(w.s).Annotation(v1alpha1.AnnotationRuntimeSnapshot, value).Obj()); err == nil {
			t.Errorf("%s: Of = %+v, want an error", what, got)
		}
	}
}

// The same for TrainingRuntimeSnapshots.
func TestFromObjectTwice(t *testing.T) {
	w := newWorld(t)
	change := func(edit func(*v1alpha1.TrainingRuntimeSnapshot)) *v1alpha1.TrainingRuntimeSnapshot {
		return w.filed(edit)
	}
	later := metav1.NewTime(w.s.SealedAt.Add(time.Minute))
	readObjects.Clear()
	for round := range 2 {
		if kept := readObjects.Len(); kept != 2*round {
			t.Errorf("%d are kept, want one for each content and source that was read", kept)
		}
		got, err := FromObject(w.filed())
		if err != nil || text(got) == "" || got.Source != w.s.Source || !got.SealedAt.Equal(w.s.SealedAt) {
			t.Fatalf("FromObject = %+v, %v", got, err)
		}
		got, err = FromObject(change(func(filed *v1alpha1.TrainingRuntimeSnapshot) { filed.Spec.SealedAt = later }))
		if err != nil || !got.SealedAt.Equal(later.Time) {
			t.Fatalf("sealed later: %+v, %v", got, err)
		}
		got, err = FromObject(change(func(filed *v1alpha1.TrainingRuntimeSnapshot) { filed.Spec.Source.Name = "other" }))
		if err != nil || got.Source.Name != "other" {
			t.Fatalf("of another runtime: %+v, %v", got, err)
		}
		if got, err := FromObject(change(func(filed *v1alpha1.TrainingRuntimeSnapshot) { filed.Spec.Revision = strings.Repeat("0", 16) })); err == nil {
			t.Fatalf("of another revision: %+v", got)
		}
	}
}

// What is large is read anew each time: who can write seals, TrainingRuntimeSnapshots or ConfigMaps
// must not be able to fill memory.
func TestLargeIsNotRecalled(t *testing.T) {
	padding := strings.Repeat("x", recalledSize)
	for what, s := range map[string]*Snapshot{
		"many bytes":         take(t, torch().Container("extra", padding)),
		"many values":        take(t, torch().Container("extra", make([]any, recalledValues))),
		"little":             take(t, torch().Container("extra", "little")),
		"a long name, filed": take(t, torch()),
	} {
		s.SealedAt = sealTime.Truncate(time.Second)
		job := sealedJob(s).Obj()
		filed, content := s.Object(job), toYAML(t, s)
		if what == "a long name, filed" {
			filed.Spec.Source.Name = padding
		}
		for _, cache := range []*lru.Cache{readSeals, readObjects, readTexts} {
			cache.Clear()
		}
		_, err := Of(job)
		if _, filedErr := FromObject(filed); errors.Join(err, filedErr) != nil {
			t.Fatal(err, filedErr)
		}
		readText(content)
		got := []int{readSeals.Len(), readObjects.Len(), readTexts.Len()}
		want := map[string][]int{"many bytes": {0, 0, 0}, "many values": {0, 0, 1}, "little": {1, 1, 1}, "a long name, filed": {1, 0, 1}}[what]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: kept are seals, TrainingRuntimeSnapshots and texts (-want +got):\n%s", what, diff)
		}
	}
}

// Of a ConfigMap no content is kept, and none is read in which little stands for much.
func TestTextsAreKeptSmall(t *testing.T) {
	s := take(t, torch())
	read, carried := readText(toYAML(t, s))
	if read == nil || read.object != nil || read.summaryWith(carried) != s.summary() {
		t.Errorf("of what Trainer keeps was read %+v, %q", read, carried)
	}
	much := "a: &a x\nb: [" + strings.Repeat("*a, ", 3) + "*a]\n"
	for _, text := range []string{much, "metadata: &m {name: x}\nlabels: *m\n", "a: {<<: *a}"} {
		if object, err := yamlObject(text); err == nil {
			t.Errorf("%q is read as %v", text, object)
		}
	}
	if object, err := yamlObject("args: ['*.py', 'a && b', '*a']\nmore: '&x'"); err != nil || len(object) != 2 {
		t.Errorf("YAML without aliases is read as %v, %v", object, err)
	}
}
