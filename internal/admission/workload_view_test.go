package admission

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const kueueUser = "system:serviceaccount:kueue-system:kueue-controller-manager"

// viewScheme knows what the webhook of Workloads reads. What others define is JSON here too: a
// type would drop the fields that it does not have.
var viewScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	for _, gvk := range []schema.GroupVersionKind{
		trainer.GroupVersion.WithKind(trainer.TrainJobKind),
		trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind),
		trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind),
		trainer.JobSetGroupVersionKind,
		{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "Workload"},
		{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"},
	} {
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return scheme
})

// view is the webhook on an API server, with what it has read there.
type view struct {
	*WorkloadMutator
	// asked are the reads as VERSION KIND, or "metadata of KIND".
	asked    []string
	fail     map[string]error
	registry *prometheus.Registry
}

func newView(t testing.TB, objects ...client.Object) *view {
	t.Helper()
	store := fake.NewClientBuilder().WithScheme(viewScheme()).WithObjects(builder.Copies(objects)...).Build()
	v := &view{registry: prometheus.NewRegistry()}
	metrics, err := kueue.NewMetrics(v.registry)
	if err != nil {
		t.Fatal(err)
	}
	read := func(object runtime.Object) error {
		gvk, err := store.GroupVersionKindFor(object)
		if err != nil {
			return err
		}
		what := gvk.Kind
		if _, metadata := object.(*metav1.PartialObjectMetadata); metadata {
			what = "metadata of " + what
		}
		if gvk.Group == "kueue.x-k8s.io" {
			what = gvk.Version + " " + what
		}
		v.asked = append(v.asked, what)
		return v.fail[what]
	}
	live := interceptor.NewClient(store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := read(object); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := read(list); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	})
	v.WorkloadMutator = &WorkloadMutator{
		Live:           live,
		Runtimes:       snapshot.NewResolver(live),
		Clock:          clocktesting.NewFakePassiveClock(now),
		KeepsSnapshots: func(context.Context) bool { return true },
		KueueUser:      kueueUser,
		Metrics:        metrics,
	}
	return v
}

// unstructuredOf is an object as it is stored, with more of it set.
func unstructuredOf(object any, value any, path ...string) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err)
	}
	if len(path) > 0 {
		if err := unstructured.SetNestedField(content, value, path...); err != nil {
			panic(err)
		}
	}
	return &unstructured.Unstructured{Object: content}
}

// podSet is what Kueue computes of the runtime torch with this image.
func podSet(image string) map[string]any {
	return map[string]any{"name": "node", "count": int64(1), "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "node", "image": image}},
	}}}
}

// jobSetWith is a JobSet as Trainer builds it of the runtime torch with this image.
func jobSetWith(jobSet *builder.JobSetBuilder, image string) *unstructured.Unstructured {
	return unstructuredOf(jobSet.Obj(), []any{map[string]any{"name": "node", "replicas": int64(1), "template": map[string]any{"spec": map[string]any{
		"parallelism": int64(1), "completions": int64(1), "template": podSet(image)["template"],
	}}}}, "spec", "replicatedJobs")
}

// viewRequest is the request by which Kueue asks for a TrainJob on the runtime torch, while it
// has the image live.
func viewRequest(t testing.TB, version string) admission.Request {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "kueue.x-k8s.io/" + version, "kind": "Workload",
		"metadata": map[string]any{"name": "job", "namespace": "ns", "finalizers": []any{"kueue.x-k8s.io/resource-in-use"}},
		"spec":     map[string]any{"queueName": "queue", "podSets": []any{podSet("live")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, DryRun: ptr.To(true), Namespace: "ns",
		Kind:   metav1.GroupVersionKind{Group: "kueue.x-k8s.io", Version: version, Kind: "Workload"},
		Object: runtime.RawExtension{Raw: raw},
	}}
	req.UserInfo.Username = kueueUser
	return req
}

// judgedView is the answer: the code and text of a refusal, or the image that Kueue gets to see;
// and whence it was counted to come.
type judgedView struct {
	Code          int32
	Text          string
	Image, Source string
	Patched       bool
}

// ask asks, and reads the answer.
func (v *view) ask(t *testing.T, req admission.Request) judgedView {
	t.Helper()
	got := v.Handle(t.Context(), req)
	var judged judgedView
	for source, count := range results(t, v.registry) {
		if judged.Source = source; count != 1 {
			t.Errorf("counted %v times from %s", count, source)
		}
	}
	if !got.Allowed {
		judged.Code, judged.Text = got.Result.Code, got.Result.Message
		return judged
	}
	var workload struct {
		Spec struct {
			QueueName string `json:"queueName"`
			PodSets   []struct {
				Template struct {
					Spec struct {
						Containers []struct{ Image string } `json:"containers"`
					} `json:"spec"`
				} `json:"template"`
			} `json:"podSets"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(apply(t, string(req.Object.Raw), got.Patches)), &workload); err != nil {
		t.Fatal(err)
	}
	if workload.Spec.QueueName != "queue" || len(workload.Spec.PodSets) != 1 || len(workload.Spec.PodSets[0].Template.Spec.Containers) != 1 {
		t.Fatalf("Kueue gets %+v", workload)
	}
	judged.Image, judged.Patched = workload.Spec.PodSets[0].Template.Spec.Containers[0].Image, len(got.Patches) > 0
	return judged
}
