package admission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatchop "gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const (
	deadlineKey = v1alpha1.AnnotationActiveDeadlineSeconds
	givenBy     = v1alpha1.AnnotationActiveDeadlineSource

	suspended = `"suspend":true`

	byDef, byMax = "LifecyclePolicy/def", "LifecyclePolicy/max"
)

type policies []*builder.LifecyclePolicyBuilder

// policyBench is the mutating webhook, and the validating one, on an API server with the runtime
// torch, the namespace ns of the team x, and these policies.
type policyBench struct {
	*TrainJobMutator
	validator *TrainJobValidator
	// reads are what was read live of runtimes, whole or the metadata alone.
	reads []string
	// unlisted is the answer to a list of policies, unread that to a read of a runtime, if they are
	// set.
	unlisted, unread error
}

func newPolicyBench(runtime *builder.RuntimeBuilder, policies ...*builder.LifecyclePolicyBuilder) *policyBench {
	b := &policyBench{}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "x"}}}}
	if runtime != nil {
		objects = append(objects, runtime.Obj())
	}
	for _, policy := range policies {
		objects = append(objects, policy.Obj())
	}
	store := stored(objects...)
	live := interceptor.NewClient(store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			what := "all of "
			if _, metadata := object.(*metav1.PartialObjectMetadata); metadata {
				what = "metadata of "
			}
			b.reads = append(b.reads, what+object.GetObjectKind().GroupVersionKind().Kind+"/"+key.Name)
			if b.unread != nil {
				return b.unread
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	b.TrainJobMutator = sealer(live)
	b.Policies.Cache = interceptor.NewClient(store, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if b.unlisted != nil {
				return b.unlisted
			}
			return c.List(ctx, list, options...)
		},
	})
	b.validator = &TrainJobValidator{Policies: b.Policies, Runtimes: snapshot.NewResolver(live)}
	return b
}

// old makes TrainJobs that have no spec.activeDeadlineSeconds.
func (b *policyBench) old() *policyBench {
	b.HasActiveDeadline = func(context.Context) bool { return false }
	return b
}

func (b *policyBench) asks(before, after string) admission.Response {
	return b.Handle(context.Background(), sealRequest(before, after))
}

// judges asks the validating webhook.
func (b *policyBench) judges(before, after string) admission.Response {
	return b.validator.Handle(context.Background(), sealRequest(before, after))
}

// given is the deadline of a TrainJob: in its spec, 0 for none, in the annotation, and who gave it.
type given struct {
	Spec       int64
	Annotation string
	By         string
}

func givenIn(t testing.TB, document string) given {
	t.Helper()
	job := &trainer.TrainJob{}
	if err := json.Unmarshal([]byte(document), job); err != nil {
		t.Fatal(err)
	}
	return given{
		Spec:       ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0),
		Annotation: job.Annotations[deadlineKey],
		By:         job.Annotations[givenBy],
	}
}

// A new TrainJob gets its deadline in the field, or where there is none in the annotation, and
// says who gave it; being asked once more about the same creation changes nothing.
func TestDeadlineGiven(t *testing.T) {
	def, most := builder.LifecyclePolicy("def").Default(50*time.Second), builder.LifecyclePolicy("max").Max(100*time.Second)
	withDefault := func(value string) *builder.RuntimeBuilder {
		return torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, value)
	}
	spec := func(seconds int64, by string) given { return given{Spec: seconds, By: by} }
	for name, tc := range map[string]struct {
		runtime  *builder.RuntimeBuilder
		policies policies
		after    string
		want     given
		// wantOld is what a TrainJob without the field gets.
		wantOld given
		// garbage is what is refused whatever policies there are.
		garbage bool
	}{
		"nothing is said": {runtime: torch(), after: document(nil, "")},
		"a policy's default": {
			runtime: torch(), policies: policies{def, most}, after: document(nil, ""),
			want: spec(50, byDef), wantOld: given{Annotation: "50", By: byDef},
		},
		"a policy's default, suspended": {
			runtime: torch(), policies: policies{def}, after: document(nil, suspended),
			want: spec(50, byDef), wantOld: given{Annotation: "50", By: byDef},
		},
		"no annotations at all": {
			runtime: torch(), policies: policies{def}, after: `{"metadata":{"name":"job"},"spec":{"runtimeRef":{"name":"torch"}}}`,
			want: spec(50, byDef), wantOld: given{Annotation: "50", By: byDef},
		},
		"the runtime's default": {
			runtime: withDefault("70"), policies: policies{def, most}, after: document(nil, ""),
			want: spec(70, torchID), wantOld: given{Annotation: "70", By: torchID},
		},
		"the runtime's over a max": {
			runtime: withDefault("700"), policies: policies{def, most}, after: document(nil, ""),
			want: spec(100, byMax), wantOld: given{Annotation: "100", By: byMax},
		},
		"a max alone": {
			runtime: torch(), policies: policies{most}, after: document(nil, ""),
			want: spec(100, byMax), wantOld: given{Annotation: "100", By: byMax},
		},
		"labels of the namespace": {
			runtime: torch(), policies: policies{def, builder.LifecyclePolicy("x").Default(40*time.Second).Namespaces("team", "x"), builder.LifecyclePolicy("y").Max(time.Second).Namespaces("team", "y")},
			after: document(nil, ""),
			want:  spec(40, "LifecyclePolicy/x"), wantOld: given{Annotation: "40", By: "LifecyclePolicy/x"},
		},
		"labels of the runtime": {
			runtime: torch().Label("gpu", "yes"), policies: policies{def, builder.LifecyclePolicy("gpu").Default(30*time.Second).Runtimes("gpu", "yes")},
			after: document(nil, ""),
			want:  spec(30, "LifecyclePolicy/gpu"), wantOld: given{Annotation: "30", By: "LifecyclePolicy/gpu"},
		},
		"a runtime that is not there": {
			policies: policies{
				def, builder.LifecyclePolicy("gpu").Default(30*time.Second).Runtimes("gpu", "yes"),
				builder.LifecyclePolicy("not-gpu").Max(time.Second).RuntimeSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gpu", Operator: metav1.LabelSelectorOpDoesNotExist}}}),
			},
			after: document(nil, suspended),
			want:  spec(50, byDef), wantOld: given{Annotation: "50", By: byDef},
		},
		"its own": {
			runtime: withDefault("70"), policies: policies{def, most}, after: document(nil, `"activeDeadlineSeconds":99`),
			want: given{Spec: 99}, wantOld: given{Spec: 99},
		},
		"its own by annotation": {
			runtime: withDefault("70"), policies: policies{def, most}, after: document(map[string]string{deadlineKey: "99"}, ""),
			want: given{Annotation: "99"}, wantOld: given{Annotation: "99"},
		},
		"its own, garbage": {
			runtime: withDefault("70"), policies: policies{def, most}, after: document(map[string]string{deadlineKey: "8h"}, ""),
			want: given{Annotation: "8h"}, wantOld: given{Annotation: "8h"}, garbage: true,
		},
		"opted out": {
			runtime: withDefault("70"), policies: policies{def}, after: document(map[string]string{deadlineKey: "none"}, ""),
			want: given{Annotation: "none"}, wantOld: given{Annotation: "none"},
		},
		"Trainer's own": {
			runtime: withDefault("70"), policies: policies{def, builder.LifecyclePolicy("req").Required()},
			after: document(nil, `"runPolicy":{"ttlSecondsAfterFinished":1,"activeDeadlineSeconds":{}}`),
		},
		"Trainer's own, a max": {
			runtime: withDefault("70"), policies: policies{def, most}, after: document(nil, `"runPolicy":{"activeDeadlineSeconds":5}`),
			want: given{Annotation: "100", By: byMax}, wantOld: given{Annotation: "100", By: byMax},
		},
		"Trainer's own that cannot be read, a max": {
			runtime: withDefault("70"), policies: policies{def, most}, after: document(nil, `"suspend":true,"runPolicy":{"activeDeadlineSeconds":"5m"}`),
			want: given{Annotation: "100", By: byMax}, wantOld: given{Annotation: "100", By: byMax},
		},
		"Trainer's own of something else, a max": {
			runtime: torch(), policies: policies{most}, after: document(nil, `"runPolicy":{"ttlSecondsAfterFinished":1}`),
			want: spec(100, byMax), wantOld: given{Annotation: "100", By: byMax},
		},
		"Trainer's own beside the field, a max": {
			runtime: torch(), policies: policies{most}, after: document(nil, `"activeDeadlineSeconds":7,"runPolicy":{"activeDeadlineSeconds":5}`),
			want: given{Spec: 7}, wantOld: given{Spec: 7},
		},
		"Trainer's own by its runtime": {
			runtime: withDefault("70").Set(int64(5), "spec", "runPolicy", "activeDeadlineSeconds"), policies: policies{def}, after: document(nil, ""),
		},
		"Trainer's own by its runtime, a max": {
			runtime: withDefault("70").Set(int64(5), "spec", "runPolicy", "activeDeadlineSeconds"), policies: policies{def, most}, after: document(nil, ""),
			want: spec(100, byMax), wantOld: given{Annotation: "100", By: byMax},
		},
		"a copy of MultiKueue": {
			runtime: withDefault("70"), policies: policies{def, builder.LifecyclePolicy("req").Required()},
			after: copied(document(nil, "")),
		},
		"a copy of MultiKueue, a max": {
			runtime: withDefault("70"), policies: policies{def, most}, after: copied(document(nil, "")),
			want: spec(100, byMax), wantOld: given{Annotation: "100", By: byMax},
		},

		"copied, what it names still says so": {
			runtime: torch(), policies: policies{def}, after: document(map[string]string{givenBy: byDef}, `"activeDeadlineSeconds":50`),
			want: spec(50, byDef), wantOld: spec(50, byDef),
		},
		"copied, what it names says something else": {
			runtime: torch(), policies: policies{def}, after: document(map[string]string{givenBy: byDef}, `"activeDeadlineSeconds":51`),
			want: given{Spec: 51}, wantOld: given{Spec: 51},
		},
		"copied, another says the same": {
			runtime: torch(), policies: policies{def}, after: document(map[string]string{givenBy: "LifecyclePolicy/gone"}, `"activeDeadlineSeconds":50`),
			want: given{Spec: 50}, wantOld: given{Spec: 50},
		},
		"copied by annotation, it still says so": {
			runtime: torch(), policies: policies{def}, after: document(map[string]string{givenBy: byDef, deadlineKey: "50"}, ""),
			want: given{Annotation: "50", By: byDef}, wantOld: given{Annotation: "50", By: byDef},
		},
		"copied by annotation, it no longer does": {
			runtime: torch(), policies: policies{def}, after: document(map[string]string{givenBy: byDef, deadlineKey: "49"}, ""),
			want: given{Annotation: "49"}, wantOld: given{Annotation: "49"},
		},
		"forged, with no deadline": {
			runtime: torch(), after: document(map[string]string{givenBy: byDef}, ""),
		},
		"forged, with an opt-out": {
			runtime: torch(), policies: policies{def}, after: document(map[string]string{givenBy: byDef, deadlineKey: "none"}, ""),
			want: given{Annotation: "none"}, wantOld: given{Annotation: "none"},
		},
		"forged, and another one gives it": {
			runtime: torch(), policies: policies{def}, after: document(map[string]string{givenBy: torchID}, ""),
			want: spec(50, byDef), wantOld: given{Annotation: "50", By: byDef},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, now := range []struct {
				*policyBench
				want given
			}{
				{newPolicyBench(tc.runtime, tc.policies...), tc.want},
				{newPolicyBench(tc.runtime, tc.policies...).old(), tc.wantOld},
			} {
				got := now.asks("", tc.after)
				if !got.Allowed {
					t.Fatalf("refused: %v", got.Result)
				}
				once := apply(t, tc.after, got.Patches)
				if diff := cmp.Diff(now.want, givenIn(t, once)); diff != "" {
					t.Errorf("given (-want +got):\n%s", diff)
				}
				if again := now.asks("", once); !again.Allowed || len(again.Patches) != 0 {
					t.Errorf("asked again it answers %v, with %v", again.Allowed, again.Patches)
				}
				// No policy refuses what was given, or may stay as it is.
				if judged := now.judges("", once); !judged.Allowed != tc.garbage {
					t.Errorf("the validating webhook answers %v", judged.Result)
				}
			}
		})
	}
}

// copied is the TrainJob as MultiKueue copies it.
func copied(document string) string {
	return strings.Replace(document, `"metadata":{`, `"metadata":{"labels":{"kueue.x-k8s.io/multikueue-origin":"manager"},`, 1)
}

// The patch says what is needed and no more.
func TestDeadlinePatch(t *testing.T) {
	op := jsonpatchop.NewOperation
	const after = `{"metadata":{"name":"job","annotations":{"team":"x"}},"spec":{"suspend":true}}`
	want := []jsonpatchop.Operation{
		op("add", "/spec/activeDeadlineSeconds", int64(50)),
		op("add", "/metadata/annotations/lifecycle.trainer.kubeflow.org~1active-deadline-source", byDef),
	}
	def := builder.LifecyclePolicy("def").Default(50 * time.Second)
	if diff := cmp.Diff(want, newPolicyBench(torch(), def).asks("", after).Patches); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	want = []jsonpatchop.Operation{
		op("add", "/metadata/annotations/lifecycle.trainer.kubeflow.org~1active-deadline-seconds", "50"),
		want[1],
	}
	if diff := cmp.Diff(want, newPolicyBench(torch(), def).old().asks("", after).Patches); diff != "" {
		t.Errorf("patch without the field (-want +got):\n%s", diff)
	}
}

// A deadline is decided at the creation: an update asks no policy, and keeps who gave it.
func TestDeadlineIsNotDecidedAgain(t *testing.T) {
	b := newPolicyBench(torch(), builder.LifecyclePolicy("a").Max(time.Second).Required())
	b.unlisted = errors.New("not to be asked")
	kept := map[string]string{source: torchID, givenBy: byDef}
	ending := strings.Replace(document(kept, `"suspend":true,"activeDeadlineSeconds":50`), `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-03-01T11:00:00Z",`, 1)
	for name, tc := range map[string]struct {
		before, after string
		want          given
	}{
		"over the max of now":        {document(kept, `"suspend":true,"activeDeadlineSeconds":50`), document(kept, `"suspend":false,"activeDeadlineSeconds":50`), given{Spec: 50, By: byDef}},
		"the source removed":         {document(kept, `"suspend":true,"activeDeadlineSeconds":50`), document(nil, `"suspend":true,"activeDeadlineSeconds":50`), given{Spec: 50, By: byDef}},
		"the source changed":         {document(kept, `"suspend":true,"activeDeadlineSeconds":50`), document(with(kept, givenBy, "LifecyclePolicy/x"), `"suspend":true,"activeDeadlineSeconds":50`), given{Spec: 50, By: byDef}},
		"a source added":             {document(nil, `"suspend":true,"activeDeadlineSeconds":50`), document(map[string]string{givenBy: "LifecyclePolicy/x"}, `"suspend":true,"activeDeadlineSeconds":50`), given{Spec: 50}},
		"without one, resumed":       {document(nil, suspended), document(nil, `"suspend":false`), given{}},
		"the deadline removed":       {document(kept, `"suspend":true,"activeDeadlineSeconds":50`), document(kept, suspended), given{Spec: 50, By: byDef}},
		"the annotation removed":     {document(with(kept, deadlineKey, "50"), suspended), document(kept, suspended), given{Annotation: "50", By: byDef}},
		"the opt-out removed":        {document(map[string]string{deadlineKey: "none"}, suspended), document(nil, suspended), given{Annotation: "none"}},
		"being deleted, all changed": {ending, document(nil, `"suspend":true,"activeDeadlineSeconds":9`), given{Spec: 50, By: byDef}},
	} {
		got := b.asks(tc.before, tc.after)
		if !got.Allowed {
			t.Fatalf("%s: refused: %v", name, got.Result)
		}
		if judged := b.judges(tc.before, apply(t, tc.after, got.Patches)); !judged.Allowed {
			t.Errorf("%s: refused by the validating webhook: %v", name, judged.Result)
		}
		if diff := cmp.Diff(tc.want, givenIn(t, apply(t, tc.after, got.Patches))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
