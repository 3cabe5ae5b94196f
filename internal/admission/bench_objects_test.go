package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// Sizes of objects as JSON, in bytes, and what the benchmarks call them.
const (
	kilobyte = 1000
	megabyte = 1000 * kilobyte
)

func sized(size int) string {
	if size >= megabyte {
		return fmt.Sprintf("%dMB", size/megabyte)
	}
	return fmt.Sprintf("%dKB", size/kilobyte)
}

// desk is an API server whose answers are ready: to read costs next to nothing, so that what is
// measured is ours. What comes from it must not be changed.
type desk struct {
	shelf
	job    *trainer.TrainJob
	config *corev1.ConfigMap
}

func (d desk) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch object := object.(type) {
	case *trainer.TrainJob:
		*object = *d.job
	case *corev1.ConfigMap:
		*object = *d.config
	default:
		return d.shelf.Get(ctx, key, object, options...)
	}
	return nil
}

// drawer is a cache that has the TrainJobs of a runtime ready, and keeps no index.
type drawer struct {
	cache.Cache
	jobs []trainer.TrainJob
}

func (drawer) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func (d drawer) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*trainer.TrainJobList).Items = append([]trainer.TrainJob(nil), d.jobs...)
	return nil
}

// variables are environment variables, no two alike, of about this many bytes of JSON.
func variables(size int) []any {
	const each = 100
	list := []any{}
	for i := range max(0, size) / each {
		text := strings.Repeat(fmt.Sprintf("%x.", i*7919), each)
		list = append(list, map[string]any{"name": fmt.Sprintf("SETTING_%05d", i), "value": text[:each-40]})
	}
	return list
}

// runtimeSized is the runtime torch, of about this many bytes.
func runtimeSized(size int) *builder.RuntimeBuilder {
	return torch().ResourceVersion("1").Container("env", variables(size-450))
}

// sentBy is who has written what of an object, as the API server notes it.
var sentBy = []any{map[string]any{
	"manager": "kubectl-create", "operation": "Update", "apiVersion": "trainer.kubeflow.org/v1alpha1", "time": "2026-03-01T12:00:00Z", "fieldsType": "FieldsV1",
	"fieldsV1": map[string]any{"f:spec": map[string]any{
		".": map[string]any{}, "f:runtimeRef": map[string]any{}, "f:trainer": map[string]any{"f:numNodes": map[string]any{}, "f:env": map[string]any{}},
	}},
}}

// trainJobSized is a TrainJob of torch as the API server sends it, of about this many bytes.
func trainJobSized(t testing.TB, size int, suspend bool, annotations map[string]string) string {
	t.Helper()
	object := map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{
			"name": "job", "namespace": "ns", "uid": "uid-of-job", "generation": 1, "creationTimestamp": "2026-03-01T12:00:00Z",
			"annotations": annotations, "managedFields": sentBy,
		},
		"spec": map[string]any{
			"runtimeRef": map[string]any{"apiGroup": "trainer.kubeflow.org", "kind": clusterKind, "name": "torch"},
			"managedBy":  trainer.ControllerName, "suspend": suspend, "activeDeadlineSeconds": 3600,
			"trainer": map[string]any{"numNodes": 1, "env": variables(size - 900)},
		},
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// quick is the webhook on a desk, where there are no policies; its resolver has seen the runtime.
func quick(t testing.TB, d desk) *TrainJobMutator {
	t.Helper()
	m := &TrainJobMutator{
		Clock:             clocktesting.NewFakePassiveClock(now),
		Runtimes:          snapshot.NewResolver(d),
		Policies:          &policy.Reader{Cache: d, Live: d},
		HasActiveDeadline: func(context.Context) bool { return true },
	}
	if _, _, err := m.Runtimes.Revision(t.Context(), "ns", trainer.RuntimeRef{Name: "torch"}); err != nil {
		t.Fatal(err)
	}
	return m
}

// onDesk has the runtime, and a TrainJob that is sealed on it, with what Trainer keeps for that.
func onDesk(t testing.TB, runtime *builder.RuntimeBuilder) desk {
	t.Helper()
	s := take(t, runtime)
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	job := builder.TrainJob("ns", "job").Created(now).Runtime(clusterKind, "torch").Annotations(s.Pack().Seal(now)).Stamp(now).Deadline(3600).Obj()
	return desk{shelf: shelf{clusterKind: runtime.Obj().Object}, job: job, config: builder.ConfigMap(job, text).Obj()}
}

// guarded is the webhook of runtimes where these TrainJobs use the runtime.
func guarded(t testing.TB, jobs ...trainer.TrainJob) *RuntimeValidator {
	t.Helper()
	d := desk{}
	if len(jobs) > 0 {
		d.job = &jobs[0]
	}
	index := &guard.Index{Cache: drawer{jobs: jobs}, Live: d, Clock: clocktesting.NewFakePassiveClock(now)}
	if err := index.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &RuntimeValidator{Index: index, Live: d, InUse: guard.Deny}
}

// measured is one benchmark: a request, and what the answer to it must be.
type measured struct {
	name    string
	handler admission.Handler
	request admission.Request
	// allowed and patches say how it is answered, and by how many operations.
	allowed bool
	patches int
}

// ask asks once and fails if the answer is another.
func (m measured) ask(t testing.TB, ctx context.Context) {
	got := m.handler.Handle(ctx, m.request)
	if got.Allowed != m.allowed || len(got.Patches) != m.patches {
		t.Fatalf("allowed = %v with %d operations, want %v with %d: %v", got.Allowed, len(got.Patches), m.allowed, m.patches, got.Result)
	}
}

// ran are the benchmarks, each by its name.
func ran(b *testing.B, all ...measured) {
	for _, m := range all {
		b.Run(m.name, func(b *testing.B) {
			ctx := b.Context()
			m.ask(b, ctx)
			b.SetBytes(int64(len(m.request.Object.Raw) + len(m.request.OldObject.Raw)))
			b.ReportAllocs()
			for b.Loop() {
				m.ask(b, ctx)
			}
		})
	}
}
