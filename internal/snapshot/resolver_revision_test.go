package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/builder"
)

// written are reads of runtimes that carry when they were written, and by whom, as the API
// server keeps it.
type written struct {
	*reads
	fields []metav1.ManagedFieldsEntry
}

func (w *written) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := w.reads.Get(ctx, key, object, options...)
	object.SetManagedFields(w.fields)
	return err
}

// by is one of those who write an object; without a time where it is zero.
func by(manager string, at time.Time) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}
	if !at.IsZero() {
		entry.Time = &metav1.Time{Time: at}
	}
	return entry
}

func TestRevision(t *testing.T) {
	created := sealTime.Truncate(time.Second)
	at := func(seconds int) time.Time { return created.Add(time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		kind    string
		fields  []metav1.ManagedFieldsEntry
		want    time.Time
		runtime *builder.RuntimeBuilder
	}{
		"never written since":                   {want: created},
		"written once since":                    {fields: []metav1.ManagedFieldsEntry{by("kubectl", at(5))}, want: at(5)},
		"the newest comes first":                {fields: []metav1.ManagedFieldsEntry{by("a", at(9)), by("b", at(5)), by("c", at(7))}, want: at(9)},
		"the newest comes last":                 {fields: []metav1.ManagedFieldsEntry{by("a", at(5)), by("b", at(7)), by("c", at(9))}, want: at(9)},
		"some have no time":                     {fields: []metav1.ManagedFieldsEntry{by("a", time.Time{}), by("b", at(7)), by("c", time.Time{})}, want: at(7)},
		"none has a time":                       {fields: []metav1.ManagedFieldsEntry{by("a", time.Time{})}, want: created},
		"restored, with times of what was":      {fields: []metav1.ManagedFieldsEntry{by("a", at(-3600))}, want: created},
		"a runtime of the namespace":            {kind: "TrainingRuntime", fields: []metav1.ManagedFieldsEntry{by("a", at(5))}, want: at(5), runtime: builder.TrainingRuntime("ns", "torch")},
		"a creation time that is not there yet": {runtime: torch(), want: time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime, kind := tc.runtime, tc.kind
			if runtime == nil {
				runtime = torch().Created(created)
			}
			if kind == "" {
				kind = "ClusterTrainingRuntime"
			}
			resolver := NewResolver(&written{reads: newReads(runtime.Obj()), fields: tc.fields})
			// The second answer is from what is known by then.
			for range 2 {
				revision, at, err := resolver.Revision(t.Context(), "ns", refTo(kind, "torch"))
				if err != nil {
					t.Fatal(err)
				}
				if want := take(t, runtime).Revision; revision != want || !at.Equal(tc.want) {
					t.Errorf("Revision = %s, %s; want %s, %s", revision, at, want, tc.want)
				}
			}
		})
	}
}

// The time is of the state that the revision is of.
func TestRevisionFollowsTheRuntime(t *testing.T) {
	created := sealTime.Truncate(time.Second)
	live := &written{reads: newReads(torch().Created(created).Obj())}
	resolver, ref := NewResolver(live), refTo("ClusterTrainingRuntime", "torch")
	check := func(want *builder.RuntimeBuilder, wantWritten time.Time, wantReads ...string) {
		t.Helper()
		revision, at, err := resolver.Revision(t.Context(), "ns", ref)
		if err != nil || revision != take(t, want).Revision || !at.Equal(wantWritten) {
			t.Errorf("Revision = %s, %s, %v; want %s, %s", revision, at, err, take(t, want).Revision, wantWritten)
		}
		if diff := cmp.Diff(wantReads, live.since()); diff != "" {
			t.Errorf("live reads (-want +got):\n%s", diff)
		}
	}
	check(torch(), created, metadataOfTorch, torchItself)
	check(torch(), created, metadataOfTorch)
	live.fields = []metav1.ManagedFieldsEntry{by("kubectl", created.Add(time.Hour))}
	store := live.Reader.(client.Client)
	stored := torch().Obj()
	if err := store.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	edited := torch().Image("image:2").Created(created)
	if err := store.Update(t.Context(), edited.ResourceVersion(stored.GetResourceVersion()).Obj()); err != nil {
		t.Fatal(err)
	}
	check(torch().Image("image:2"), created.Add(time.Hour), metadataOfTorch, torchItself)
	// What is to be sealed is known from then on too, and the other way round.
	if packed, err := resolver.Runtime(t.Context(), "ns", ref); err != nil || packed.revision != take(t, torch().Image("image:2")).Revision {
		t.Errorf("Runtime = %+v, %v", packed, err)
	}
	if diff := cmp.Diff([]string{metadataOfTorch}, live.since()); diff != "" {
		t.Errorf("live reads (-want +got):\n%s", diff)
	}
}

func TestRevisionErrors(t *testing.T) {
	broken := errors.New("etcd is away")
	for name, tc := range map[string]struct {
		runtime *builder.RuntimeBuilder
		fail    map[string]error
		want    string
		missing bool
	}{
		"no runtime":                 {want: `read runtime: clustertrainingruntimes.trainer.kubeflow.org "torch" not found`, missing: true},
		"of another namespace":       {runtime: builder.TrainingRuntime("elsewhere", "torch"), want: `read runtime: clustertrainingruntimes.trainer.kubeflow.org "torch" not found`, missing: true},
		"metadata cannot be read":    {runtime: torch(), fail: map[string]error{"metadata of ClusterTrainingRuntime": broken}, want: "read runtime: etcd is away"},
		"the content cannot be read": {runtime: torch(), fail: map[string]error{"ClusterTrainingRuntime": broken}, want: "read runtime: etcd is away"},
		"without a spec":             {runtime: torch().Without("spec"), want: "runtime ClusterTrainingRuntime/torch: apiVersion, kind, metadata.name and spec must be set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := newReads()
			if tc.runtime != nil {
				live = newReads(tc.runtime.Obj())
			}
			live.fail = tc.fail
			revision, at, err := NewResolver(live).Revision(t.Context(), "ns", refTo("ClusterTrainingRuntime", "torch"))
			if revision != "" || !at.IsZero() || err == nil || err.Error() != tc.want || apierrors.IsNotFound(err) != tc.missing {
				t.Errorf("Revision = %q, %s, %v; want error %q", revision, at, err, tc.want)
			}
		})
	}
}

// What is given out is the template that was taken, whatever becomes of the runtime.
func TestJobSetSpec(t *testing.T) {
	runtime := torch().Obj()
	taken, err := Take(runtime.Object)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"replicatedJobs": []any{map[string]any{
		"name": "node",
		"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "node", "image": "image:1"}},
		}}}},
	}}}
	sealed, err := unpack(taken.Pack().Seal(sealTime)["lifecycle.trainer.kubeflow.org/runtime-snapshot"])
	if err != nil {
		t.Fatal(err)
	}
	filed, err := FromObject(taken.Object(builder.TrainJob("ns", "job").Obj()))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Snapshot{"taken": taken, "sealed": sealed, "filed": filed} {
		if diff := cmp.Diff(want, s.JobSetSpec()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, runtime := range map[string]*builder.RuntimeBuilder{
		"no template":        torch().Without("spec", "template"),
		"no spec":            torch().Without("spec", "template", "spec"),
		"a template of text": torch().Set("text", "spec", "template"),
		"a spec of text":     torch().Set("text", "spec", "template", "spec"),
	} {
		if got := take(t, runtime).JobSetSpec(); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
