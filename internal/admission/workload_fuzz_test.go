package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// shelf is an API server that has one object of each kind, whatever that looks like, and takes
// no time.
type shelf map[string]map[string]any

func (s shelf) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	gvk := object.GetObjectKind().GroupVersionKind()
	content, found := s[gvk.Kind]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	stored := &unstructured.Unstructured{Object: content}
	switch object := object.(type) {
	case *unstructured.Unstructured:
		stored.DeepCopyInto(object)
	case *metav1.PartialObjectMetadata:
		object.SetUID(stored.GetUID())
		object.SetResourceVersion(stored.GetResourceVersion())
	default:
		return fmt.Errorf("no %T", object)
	}
	return nil
}

func (s shelf) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if content, found := s["Workload"]; found {
		stored := unstructured.Unstructured{Object: content}
		list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{*stored.DeepCopy()}
	}
	return nil
}

// newShelfView is the webhook on a shelf.
func newShelfView(s shelf) *WorkloadMutator {
	return &WorkloadMutator{
		Live: s, Runtimes: snapshot.NewResolver(s), Clock: clocktesting.NewFakePassiveClock(now),
		KeepsSnapshots: func(context.Context) bool { return true }, KueueUser: kueueUser,
	}
}

// shelved is a sealed TrainJob on a runtime as it is live, with its JobSet and Workload.
func shelved(t testing.TB, live *builder.RuntimeBuilder) shelf {
	t.Helper()
	job := sealedJob(t).Obj()
	return shelf{
		"TrainJob":               unstructuredOf(job, nil).Object,
		"ClusterTrainingRuntime": live.Obj().Object,
		"JobSet":                 jobSetWith(builder.JobSet(job), "image:1").Object,
		"Workload":               builder.Workload(job).PodSets(podSet("image:1")).Obj().Object,
	}
}

// Whatever is asked and stored: no panic, a patch that applies and touches the pod sets alone,
// and the same answer when asked again with it.
func FuzzWorkloadMutator(f *testing.F) {
	encode := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			f.Fatal(err)
		}
		return string(text)
	}
	asked := string(viewRequest(f, "v1beta2").Object.Raw)
	podSets := encode([]any{podSet("image:1")})
	jobSet := encode(shelved(f, torch())["JobSet"]["spec"])
	patch := `[{"manager":"example.com/user","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"node","template":{"spec":{"template":{"spec":{"tolerations":[{"key":"spot"}]}}}}}]}}}}]`
	f.Add(asked, patch, jobSet, podSets, false)
	f.Add(asked, `[]`, jobSet, podSets, true)
	f.Add(asked, patch, jobSet, `null`, true)
	f.Add(asked, `null`, `null`, podSets, false)
	f.Add(asked, `[{"manager":"kueue.x-k8s.io/manager","trainingRuntimeSpec":5},null,5]`, `{"suspend":true,"replicatedJobs":[{"name":"node"}]}`, `[{"name":"node","count":5,"topologyRequest":{"required":"rack"}}]`, true)
	f.Add(`{"metadata":{"name":"job"},"spec":{"podSets":[],"future":1e30}}`, patch, jobSet, `[null,5,{"name":"node","minCount":1}]`, true)
	f.Add(`{"metadata":{"name":"job"},"spec":{"podSets":null}}`, patch, `{"replicatedJobs":[{"name":"node","template":{"spec":{"parallelism":2,"completions":1,"template":{"spec":{"containers":[{"name":"node","env":[{"name":"a"},{}],"ports":[{}],"resources":{"limits":{"cpu":1}}}]}}}}}]}`, `[]`, false)
	f.Fuzz(func(t *testing.T, asked, patches, jobSet, podSets string, quota bool) {
		var workload map[string]any
		if err := json.Unmarshal([]byte(asked), &workload); err != nil {
			t.Skip()
		}
		// The API server sends a Workload with pod sets; nothing else gets here.
		spec, _ := workload["spec"].(map[string]any)
		if _, found := spec["podSets"]; !found {
			t.Skip()
		}
		stored := shelved(t, liveTorch())
		for text, into := range map[*string]func(any){
			&patches: func(value any) { stored["TrainJob"]["spec"].(map[string]any)["runtimePatches"] = value },
			&jobSet:  func(value any) { stored["JobSet"]["spec"] = value },
			&podSets: func(value any) { stored["Workload"]["spec"].(map[string]any)["podSets"] = value },
		} {
			var value any
			if err := kjson.Unmarshal([]byte(*text), &value); err != nil {
				t.Skip()
			}
			into(value)
		}
		if quota {
			stored["Workload"]["status"] = map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "True"}}}
		}
		before, err := json.Marshal(stored)
		if err != nil {
			t.Skip()
		}
		view, req := newShelfView(stored), viewRequest(t, "v1beta2")
		req.Object.Raw = []byte(asked)
		first := view.Handle(t.Context(), req)
		if !first.Allowed {
			if first.Result.Code != 403 && first.Result.Code != 500 {
				t.Errorf("answer %+v", first.Result)
			}
			return
		}
		once := apply(t, asked, first.Patches)
		if diff := cmp.Diff(withoutPodSets(t, asked), withoutPodSets(t, once)); diff != "" {
			t.Errorf("touched more than the pod sets (-want +got):\n%s", diff)
		}
		if after, err := json.Marshal(stored); err != nil || string(after) != string(before) {
			t.Errorf("what is stored is now %s, was %s", after, before)
		}
		if uniqueNames(t, once) {
			req.Object.Raw = []byte(once)
			second := view.Handle(t.Context(), req)
			if diff := cmp.Diff(decode(t, once), decode(t, apply(t, once, second.Patches))); !second.Allowed || diff != "" {
				t.Errorf("asked again it answers %+v (-first +second):\n%s", second.Result, diff)
			}
		}
	})
}

// withoutPodSets decodes a Workload without what the webhook may touch.
func withoutPodSets(t *testing.T, document string) any {
	t.Helper()
	object := decode(t, document).(map[string]any)
	delete(object["spec"].(map[string]any), "podSets")
	return object
}

// uniqueNames tells whether no two pod sets have one name, as the API server demands.
func uniqueNames(t *testing.T, document string) bool {
	t.Helper()
	podSets, _ := decode(t, document).(map[string]any)["spec"].(map[string]any)["podSets"].([]any)
	names := map[any]bool{}
	for _, podSet := range podSets {
		object, _ := podSet.(map[string]any)
		name, _ := object["name"].(string)
		names[name] = true
	}
	return len(names) == len(podSets)
}

// What one question of Kueue costs, without the reads.
func BenchmarkWorkloadMutator(b *testing.B) {
	for name, live := range map[string]*builder.RuntimeBuilder{"as it was": torch(), "drifted": liveTorch()} {
		b.Run(name, func(b *testing.B) {
			view, req := newShelfView(shelved(b, live)), viewRequest(b, "v1beta2")
			b.ReportAllocs()
			for b.Loop() {
				if got := view.Handle(b.Context(), req); !got.Allowed || (len(got.Patches) == 1) != (name == "drifted") {
					b.Fatalf("answer %+v", got)
				}
			}
		})
	}
}
