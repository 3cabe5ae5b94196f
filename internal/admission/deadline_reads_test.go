package admission

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// One look at the runtime serves the deadline and the seal.
func TestDeadlineReadsTheRuntimeOnce(t *testing.T) {
	b := newPolicyBench(torch(), builder.LifecyclePolicy("def").Default(time.Minute).Runtimes("gpu", "yes"))
	const metadata, all = "metadata of ClusterTrainingRuntime/torch", "all of ClusterTrainingRuntime/torch"
	for i, tc := range []struct {
		after string
		want  []string
	}{
		{document(nil, ""), []string{metadata, all}},
		{document(nil, ""), []string{metadata}},
		{document(nil, suspended), []string{metadata}},
		{document(nil, `"activeDeadlineSeconds":5`), []string{metadata}},
		{`{"metadata":{"name":"job"},"spec":{}}`, nil},
		{strings.Replace(document(nil, ""), "ClusterTrainingRuntime", "Deployment", 1), nil},
		{document(nil, `"managedBy":"kueue.x-k8s.io/multikueue"`), nil},
	} {
		b.reads = nil
		if got := b.asks("", tc.after); !got.Allowed {
			t.Fatal(got.Result)
		}
		if diff := cmp.Diff(tc.want, b.reads); diff != "" {
			t.Errorf("%d: reads (-want +got):\n%s", i, diff)
		}
	}
}

// A runtime that changes its labels or its default counts as it is now, for what is given.
func TestDeadlineFollowsTheRuntime(t *testing.T) {
	store := stored(torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "70").Obj())
	mutator := sealer(store)
	for _, seconds := range []int64{70, 71, 72} {
		runtime := torch().Obj()
		if err := store.Get(t.Context(), client.ObjectKeyFromObject(runtime), runtime); err != nil {
			t.Fatal(err)
		}
		edited := torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, strconv.FormatInt(seconds, 10)).ResourceVersion(runtime.GetResourceVersion())
		if err := store.Update(t.Context(), edited.Obj()); err != nil {
			t.Fatal(err)
		}
		after := document(nil, "")
		got := givenIn(t, apply(t, after, mutator.Handle(t.Context(), sealRequest("", after)).Patches))
		if want := (given{Spec: seconds, By: torchID}); got != want {
			t.Errorf("given %+v, want %+v", got, want)
		}
	}
}

// What cannot be read fails closed.
func TestDeadlineFailures(t *testing.T) {
	b := newPolicyBench(torch(), builder.LifecyclePolicy("a").Max(time.Minute))
	b.unlisted = errors.New("etcd is away")
	for _, after := range []string{document(nil, ""), document(nil, suspended), document(nil, `"activeDeadlineSeconds":5`)} {
		got := b.asks("", after)
		if got.Allowed || got.Result.Code != http.StatusInternalServerError || got.Result.Message != "list LifecyclePolicies: etcd is away" {
			t.Errorf("answer %+v, want 500", got.Result)
		}
	}
	broken := sealer(interceptor.NewClient(stored(), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("etcd is away")
	}}))
	got := broken.Handle(t.Context(), sealRequest("", document(nil, suspended)))
	if got.Allowed || got.Result.Code != http.StatusInternalServerError || got.Result.Message != "read runtime: etcd is away" {
		t.Errorf("answer %+v, want 500", got.Result)
	}
}
