package admission

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// scheme knows all that the webhooks read. Runtimes have no type here: they are JSON.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(trainer.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	for _, kind := range []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind} {
		scheme.AddKnownTypeWithName(trainer.GroupVersion.WithKind(kind), &unstructured.Unstructured{})
	}
	return scheme
})

// stored makes an API server with these objects.
func stored(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(scheme()).WithObjects(builder.Copies(objects)...).Build()
}

// torch is the runtime of most tests.
func torch() *builder.RuntimeBuilder { return builder.ClusterTrainingRuntime("torch") }

// take takes the snapshot of a runtime.
func take(t testing.TB, runtime *builder.RuntimeBuilder) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Take(runtime.Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// document is the JSON of a TrainJob of the runtime, with this more in its spec.
func document(annotations map[string]string, spec string) string {
	encoded, err := json.Marshal(annotations)
	if err != nil {
		panic(err)
	}
	if spec != "" {
		spec = "," + spec
	}
	return `{"metadata":{"name":"job","namespace":"ns","uid":"uid-of-job","annotations":` + string(encoded) +
		`},"spec":{"runtimeRef":{"apiGroup":"trainer.kubeflow.org","kind":"ClusterTrainingRuntime","name":"torch"}` + spec + `}}`
}

// sealer is the webhook on an API server with these objects.
func sealer(live client.Reader) *TrainJobMutator {
	return &TrainJobMutator{
		Clock:             clocktesting.NewFakePassiveClock(now),
		Runtimes:          snapshot.NewResolver(live),
		Policies:          &policy.Reader{Cache: stored(), Live: live},
		HasActiveDeadline: func(context.Context) bool { return true },
	}
}

func sealRequest(before, after string) admission.Request {
	req := request(before, after)
	req.Namespace = "ns"
	return req
}

// annotations are those of a TrainJob, with what is sealed in place of the seal.
func annotations(t testing.TB, document string) map[string]string {
	t.Helper()
	job := &trainer.TrainJob{}
	if err := json.Unmarshal([]byte(document), job); err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(job.Annotations)
	if s, err := snapshot.Of(job); err != nil {
		got[v1alpha1.AnnotationRuntimeSnapshot] = err.Error()
	} else if s != nil {
		got[v1alpha1.AnnotationRuntimeSnapshot] = fmt.Sprint(s.Revision, " of ", s.SealedAt.UTC().Format(time.TimeOnly))
	}
	return got
}

// sealed are the annotations of a TrainJob that was sealed at a time, as annotations says
// them.
func sealed(s *snapshot.Snapshot, at string, more ...string) map[string]string {
	return with(map[string]string{
		v1alpha1.AnnotationRuntimeSource:   snapshot.Name(s.Source),
		v1alpha1.AnnotationRuntimeRevision: s.Revision,
		v1alpha1.AnnotationRuntimeSnapshot: s.Revision + " of " + at,
	}, more...)
}

// with adds pairs of key and value.
func with(annotations map[string]string, pairs ...string) map[string]string {
	out := maps.Clone(annotations)
	if out == nil {
		out = map[string]string{}
	}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

const (
	source  = v1alpha1.AnnotationRuntimeSource
	stamp   = v1alpha1.AnnotationResumedAt
	torchID = "ClusterTrainingRuntime/torch"
)

func TestSeal(t *testing.T) {
	live, older := take(t, torch()), take(t, torch().Image("image:older"))
	// An hour ago, when the runtime was older.
	seal := older.Pack().Seal(now.Add(-time.Hour))
	job := builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch").Obj()
	filed, kept := take(t, torch().Image("image:filed")), take(t, torch().Image("image:kept"))
	text, err := kept.YAML()
	if err != nil {
		t.Fatal(err)
	}
	config, object := builder.ConfigMap(job, text).Obj(), filed.Object(job)
	namespaced := func(spec string) string {
		return strings.Replace(document(nil, spec), `"kind":"ClusterTrainingRuntime"`, `"kind":"TrainingRuntime"`, 1)
	}
	waiting := map[string]string{source: torchID}
	const suspended, resumed, elsewhere = `"suspend":true`, `"suspend":false`, `"managedBy":"kueue.x-k8s.io/multikueue"`
	for name, tc := range map[string]struct {
		before, after string
		objects       []client.Object
		gone          bool
		want          map[string]string
		wantRefusal   string
	}{
		"created active":               {after: document(nil, ""), want: sealed(live, "12:00:00", stamp, fresh)},
		"created with suspend false":   {after: document(nil, resumed), want: sealed(live, "12:00:00", stamp, fresh)},
		"created with suspend null":    {after: document(nil, `"suspend":null`), want: sealed(live, "12:00:00", stamp, fresh)},
		"created for Trainer by name":  {after: document(nil, `"managedBy":"trainer.kubeflow.org/trainjob-controller"`), want: sealed(live, "12:00:00", stamp, fresh)},
		"created by a short reference": {after: `{"metadata":{"name":"job"},"spec":{"runtimeRef":{"name":"torch"}}}`, want: sealed(live, "12:00:00", stamp, fresh)},
		"created of a namespaced runtime": {
			after: namespaced(""), objects: []client.Object{builder.TrainingRuntime("ns", "torch").Image("image:ns").Obj()},
			want: sealed(take(t, builder.TrainingRuntime("ns", "torch").Image("image:ns")), "12:00:00", stamp, fresh),
		},
		"created suspended":                            {after: document(nil, suspended), want: waiting},
		"created suspended, without a runtime":         {after: document(nil, suspended), gone: true, want: waiting},
		"created suspended, of a namespaced runtime":   {after: namespaced(suspended), want: map[string]string{source: "TrainingRuntime/torch"}},
		"created active from an exported manifest":     {after: document(with(seal, stamp, "old", "team", "x"), ""), want: sealed(live, "12:00:00", stamp, fresh, "team", "x")},
		"created suspended from an exported manifest":  {after: document(with(seal, stamp, "old", "team", "x"), suspended), want: with(waiting, "team", "x")},
		"created elsewhere from an exported manifest":  {after: document(with(seal, stamp, "old", "team", "x"), elsewhere), want: map[string]string{"team": "x"}},
		"created elsewhere suspended":                  {after: document(nil, elsewhere+","+suspended), want: nil},
		"created elsewhere without a runtime":          {after: document(nil, elsewhere), gone: true, want: nil},
		"created without a reference":                  {after: `{"metadata":{},"spec":{}}`, want: map[string]string{stamp: fresh}},
		"created suspended without a reference":        {after: `{"metadata":{},"spec":{"suspend":true}}`, want: nil},
		"created of a runtime that Trainer knows not":  {after: strings.Replace(document(nil, ""), "ClusterTrainingRuntime", "Deployment", 1), want: map[string]string{stamp: fresh}},
		"created of a group that Trainer knows not":    {after: strings.Replace(document(nil, ""), "trainer.kubeflow.org", "example.com", 1), want: map[string]string{stamp: fresh}},
		"created while something of its name was left": {after: document(nil, ""), objects: []client.Object{config, object}, want: sealed(live, "12:00:00", stamp, fresh)},
		"created without a runtime": {
			after: document(nil, ""), gone: true,
			wantRefusal: `TrainJob.trainer.kubeflow.org "job" is invalid: spec.runtimeRef: Not found: "ClusterTrainingRuntime/torch"`,
		},
		"created of a runtime of another namespace": {
			after: namespaced(""), objects: []client.Object{builder.TrainingRuntime("other", "torch").Obj()},
			wantRefusal: `TrainJob.trainer.kubeflow.org "job" is invalid: spec.runtimeRef: Not found: "TrainingRuntime/torch"`,
		},

		"resumed":                            {before: document(waiting, suspended), after: document(waiting, resumed), want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed by suspend null":            {before: document(waiting, suspended), after: document(waiting, `"suspend":null`), want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed by dropping suspend":        {before: document(waiting, suspended), after: document(waiting, ""), want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed with runtimePatches":        {before: document(waiting, suspended), after: document(waiting, resumed+`,"runtimePatches":[{"manager":"kueue"}]`), want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed with a forged seal":         {before: document(waiting, suspended), after: document(seal, resumed), want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed without its annotations":    {before: document(waiting, suspended), after: document(nil, resumed), want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed, while Trainer keeps other": {before: document(waiting, suspended), after: document(waiting, resumed), objects: []client.Object{config}, want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed elsewhere":                  {before: document(nil, elsewhere+","+suspended), after: document(nil, elsewhere), want: nil},
		"resumed while it is being deleted": {
			before: strings.Replace(document(waiting, suspended), `"name"`, `"deletionTimestamp":"2026-03-01T11:00:00Z","name"`, 1), after: document(waiting, resumed),
			want: with(waiting, stamp, fresh),
		},

		"resumed again":                         {before: document(seal, suspended), after: document(seal, resumed), want: sealed(older, "11:00:00", stamp, fresh)},
		"resumed again without a runtime":       {before: document(seal, suspended), after: document(seal, resumed), gone: true, want: sealed(older, "11:00:00", stamp, fresh)},
		"paused":                                {before: document(with(seal, stamp, "old"), ""), after: document(with(seal, stamp, "old"), suspended), want: sealed(older, "11:00:00")},
		"sealed, all annotations removed":       {before: document(with(seal, stamp, "old"), ""), after: document(nil, ""), want: sealed(older, "11:00:00", stamp, "old")},
		"sealed, another seal sent":             {before: document(with(seal, stamp, "old"), ""), after: document(live.Pack().Seal(now), ""), want: sealed(older, "11:00:00", stamp, "old")},
		"sealed, a revision sent":               {before: document(with(seal, stamp, "old"), ""), after: document(with(seal, v1alpha1.AnnotationRuntimeRevision, live.Revision), ""), want: sealed(older, "11:00:00", stamp, "old")},
		"waiting, a label added":                {before: document(waiting, suspended), after: document(with(waiting, "team", "x"), suspended), want: with(waiting, "team", "x")},
		"waiting, its source removed":           {before: document(waiting, suspended), after: document(nil, suspended), want: waiting},
		"waiting, a seal sent":                  {before: document(waiting, suspended), after: document(seal, suspended), want: waiting},
		"waiting from before us":                {before: document(nil, suspended), after: document(map[string]string{"team": "x"}, suspended), want: map[string]string{"team": "x"}},
		"active from before us":                 {before: document(nil, ""), after: document(map[string]string{"team": "x"}, ""), want: map[string]string{"team": "x"}},
		"active from before us, a source sent":  {before: document(nil, ""), after: document(waiting, ""), want: nil},
		"active from before us, paused":         {before: document(nil, ""), after: document(nil, suspended), want: nil},
		"started while we were away":            {before: document(waiting, ""), after: document(waiting, ""), want: nil},
		"started while we were away, paused":    {before: document(waiting, ""), after: document(waiting, suspended), want: nil},
		"started while we were away, elsewhere": {before: document(waiting, elsewhere), after: document(waiting, elsewhere), want: nil},

		"from before us, resumed, filed":                  {before: document(nil, suspended), after: document(nil, resumed), objects: []client.Object{object, config}, want: sealed(filed, "12:00:00", stamp, fresh)},
		"from before us, resumed, kept by Trainer":        {before: document(nil, suspended), after: document(nil, resumed), objects: []client.Object{config}, want: sealed(kept, "12:00:00", stamp, fresh)},
		"from before us, resumed, kept for another":       {before: document(nil, suspended), after: document(nil, resumed), objects: []client.Object{builder.ConfigMap(builder.TrainJob("ns", "job").UID("earlier").Obj(), text).Obj()}, want: sealed(live, "12:00:00", stamp, fresh)},
		"from before us, resumed, nothing kept":           {before: document(nil, suspended), after: document(nil, resumed), want: sealed(live, "12:00:00", stamp, fresh)},
		"from before us, resumed, a source sent":          {before: document(nil, suspended), after: document(waiting, resumed), objects: []client.Object{config}, want: sealed(kept, "12:00:00", stamp, fresh)},
		"from before us, resumed, no runtime but kept":    {before: document(nil, suspended), after: document(nil, resumed), gone: true, objects: []client.Object{config}, want: sealed(kept, "12:00:00", stamp, fresh)},
		"resumed without a runtime, kept by Trainer":      {before: document(waiting, suspended), after: document(waiting, resumed), gone: true, objects: []client.Object{config}, want: sealed(kept, "12:00:00", stamp, fresh)},
		"resumed without a runtime, filed":                {before: document(waiting, suspended), after: document(waiting, resumed), gone: true, objects: []client.Object{object}, want: sealed(filed, "12:00:00", stamp, fresh)},
		"resumed without a runtime, with nothing":         {before: document(waiting, suspended), after: document(waiting, resumed), gone: true, wantRefusal: `TrainJob.trainer.kubeflow.org "job" is invalid: spec.runtimeRef: Not found: "ClusterTrainingRuntime/torch"`},
		"from before us, resumed, neither runtime nor it": {before: document(nil, suspended), after: document(nil, resumed), gone: true, wantRefusal: `TrainJob.trainer.kubeflow.org "job" is invalid: spec.runtimeRef: Not found: "ClusterTrainingRuntime/torch"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := tc.objects
			if !tc.gone {
				objects = append(objects, torch().Obj())
			}
			mutator := sealer(stored(objects...))
			got := mutator.Handle(t.Context(), sealRequest(tc.before, tc.after))
			if tc.wantRefusal != "" {
				if got.Allowed || got.Result.Code != http.StatusUnprocessableEntity || got.Result.Reason != metav1.StatusReasonInvalid || got.Result.Message != tc.wantRefusal {
					t.Errorf("answer %+v, want 422 Invalid %q", got.Result, tc.wantRefusal)
				}
				if causes := got.Result.Details.Causes; len(causes) != 1 || causes[0].Field != "spec.runtimeRef" {
					t.Errorf("causes %+v, want one of spec.runtimeRef", causes)
				}
				return
			}
			if !got.Allowed || len(got.Warnings) != 0 {
				t.Fatalf("refused: %+v, warnings %q", got.Result, got.Warnings)
			}
			patched := apply(t, tc.after, got.Patches)
			have := annotations(t, patched)
			if len(have) == 0 {
				have = nil
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if again := mutator.Handle(t.Context(), sealRequest(tc.before, patched)); len(again.Patches) != 0 {
				t.Errorf("asked again it patches again: %v", again.Patches)
			}
		})
	}
}

// Another webhook may suspend or resume what we have seen, and have us asked again.
func TestSealWhenAskedAgain(t *testing.T) {
	live := take(t, torch())
	waiting := map[string]string{source: torchID}
	active, suspended := `"suspend":false`, `"suspend":true`
	for name, tc := range map[string]struct {
		before, first, second string
		annotations           map[string]string
		want                  map[string]string
	}{
		"created active, then suspended": {first: active, second: suspended, want: waiting},
		"created suspended, then active": {first: suspended, second: active, want: sealed(live, "12:00:00", stamp, fresh)},
		"created active":                 {first: active, second: active, want: sealed(live, "12:00:00", stamp, fresh)},
		"resumed, then suspended again":  {before: document(waiting, suspended), annotations: waiting, first: active, second: suspended, want: waiting},
		"kept suspended, then resumed":   {before: document(waiting, suspended), annotations: waiting, first: suspended, second: active, want: sealed(live, "12:00:00", stamp, fresh)},
		"from before us, the same":       {before: document(nil, suspended), first: active, second: suspended, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mutator := sealer(stored(torch().Obj()))
			document := document(tc.annotations, tc.first)
			for _, suspend := range []string{tc.first, tc.second, tc.second} {
				document = strings.Replace(strings.Replace(document, active, suspend, 1), suspended, suspend, 1)
				got := mutator.Handle(t.Context(), sealRequest(tc.before, document))
				if !got.Allowed {
					t.Fatal(got.Result)
				}
				document = apply(t, document, got.Patches)
			}
			have := annotations(t, document)
			if len(have) == 0 {
				have = nil
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// What is sealed is the runtime as it is when the TrainJob starts, not when it was created.
func TestSealFollowsTheRuntimeWhileItWaits(t *testing.T) {
	store := stored(torch().Obj())
	mutator := sealer(store)
	waiting := document(map[string]string{source: torchID}, `"suspend":true`)
	for _, image := range []string{"image:1", "image:2", "image:3"} {
		runtime := torch().Obj()
		if err := store.Get(t.Context(), client.ObjectKeyFromObject(runtime), runtime); err != nil {
			t.Fatal(err)
		}
		edited := torch().Image(image).ResourceVersion(runtime.GetResourceVersion())
		if err := store.Update(t.Context(), edited.Obj()); err != nil {
			t.Fatal(err)
		}
		after := document(map[string]string{source: torchID}, `"suspend":false`)
		got := mutator.Handle(t.Context(), sealRequest(waiting, after))
		want := sealed(take(t, edited), "12:00:00", stamp, fresh)
		if diff := cmp.Diff(want, annotations(t, apply(t, after, got.Patches))); diff != "" {
			t.Errorf("with %s (-want +got):\n%s", image, diff)
		}
	}
}

// noise is text that hardly compresses, the same in each run.
func noise(length int) string {
	generator := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, length)
	for i := range out {
		out[i] = byte('a' + generator.IntN(26))
	}
	return string(out)
}

// sizes returns how large the runtime is compressed, in full, and as the annotations of a
// TrainJob.
func sizes(t *testing.T, s *snapshot.Snapshot) (compressed, full, annotations int) {
	t.Helper()
	seal := s.Pack().Seal(now)
	raw, err := base64.StdEncoding.DecodeString(seal[v1alpha1.AnnotationRuntimeSnapshot])
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range seal {
		annotations += len(key) + len(value)
	}
	return len(raw), len(content), annotations
}

// A TrainJob that is too large runs as it would without Signalbox, and says so.
func TestSealTooLarge(t *testing.T) {
	const rest = "; the TrainJob runs on what Trainer keeps of it"
	large := torch().Container("args", []any{noise(128 << 10)})
	var compressed, full int
	_, text := take(t, large).Pack().TooLarge(0, 0)
	if _, err := fmt.Sscanf(text, torchID+" is %d bytes compressed (%d in full), more than 65536", &compressed, &full); err != nil || compressed < 65536 || full < compressed {
		t.Fatalf("%q: %v", text, err)
	}
	_, _, seal := sizes(t, take(t, torch()))
	waiting := map[string]string{source: torchID}
	// What the user has of annotations, and of spec, for the sum to be one over the bound.
	annotated := func(over int) map[string]string {
		return map[string]string{"note": strings.Repeat("x", snapshot.MaxAnnotations-seal-len("note")+over)}
	}
	padded := func(annotations map[string]string, suspend string, over int) string {
		ours := 0
		for key, value := range annotations {
			ours += len(key) + len(value)
		}
		empty := len(document(annotations, suspend+`,"future":""`)) - ours
		return document(annotations, suspend+`,"future":"`+strings.Repeat("x", snapshot.MaxTrainJob-seal-empty+over)+`"`)
	}
	for name, tc := range map[string]struct {
		runtime       *builder.RuntimeBuilder
		before, after string
		want          map[string]string
		wantWarning   string
		wantResult    string
	}{
		"created, the runtime over its bound": {
			runtime: large, after: document(nil, ""), want: map[string]string{stamp: fresh}, wantResult: snapshot.TooLargeCompressed,
			wantWarning: fmt.Sprintf("the runtime is not sealed into this TrainJob: ClusterTrainingRuntime/torch is %d bytes compressed (%d in full), more than 65536", compressed, full),
		},
		"resumed, the runtime over its bound": {
			runtime: large, before: document(waiting, `"suspend":true`), after: document(waiting, `"suspend":false`), want: map[string]string{stamp: fresh}, wantResult: snapshot.TooLargeCompressed,
			wantWarning: fmt.Sprintf("the runtime is not sealed into this TrainJob: ClusterTrainingRuntime/torch is %d bytes compressed (%d in full), more than 65536", compressed, full),
		},
		"created suspended, the runtime over its bound": {
			runtime: large, after: document(nil, `"suspend":true`), want: waiting,
		},
		"created, its annotations over their bound": {
			runtime: torch(), after: document(annotated(1), ""), want: with(annotated(1), stamp, fresh), wantResult: snapshot.TooLargeAnnotations,
			wantWarning: fmt.Sprintf("the runtime is not sealed into this TrainJob: the annotations of the TrainJob would be 196609 bytes with the %d of the snapshot, more than 196608", seal),
		},
		"created, its annotations at their bound": {
			runtime: torch(), after: document(annotated(0), ""), want: with(annotated(0), sealedPairs(take(t, torch()))...), wantResult: snapshot.Sealed,
		},
		"resumed, its annotations over their bound": {
			runtime: torch(), before: document(with(annotated(1), source, torchID), `"suspend":true`), after: document(with(annotated(1), source, torchID), `"suspend":false`),
			want: with(annotated(1), stamp, fresh), wantResult: snapshot.TooLargeAnnotations,
			wantWarning: fmt.Sprintf("the runtime is not sealed into this TrainJob: the annotations of the TrainJob would be 196609 bytes with the %d of the snapshot, more than 196608", seal),
		},
		"created, the TrainJob over its bound": {
			runtime: torch(), after: padded(nil, `"suspend":false`, 1), want: map[string]string{stamp: fresh}, wantResult: snapshot.TooLargeTrainJob,
			wantWarning: fmt.Sprintf("the runtime is not sealed into this TrainJob: the TrainJob would be 1048577 bytes with the %d of the snapshot, more than 1048576", seal),
		},
		"created, the TrainJob a little under its bound": {
			runtime: torch(), after: padded(nil, `"suspend":false`, -100), want: with(nil, sealedPairs(take(t, torch()))...), wantResult: snapshot.Sealed,
		},
		"resumed, the TrainJob over its bound": {
			runtime: torch(), before: document(waiting, `"suspend":true`), after: padded(waiting, `"suspend":false`, 1), want: map[string]string{stamp: fresh}, wantResult: snapshot.TooLargeTrainJob,
			wantWarning: fmt.Sprintf("the runtime is not sealed into this TrainJob: the TrainJob would be 1048577 bytes with the %d of the snapshot, more than 1048576", seal),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			figures, err := snapshot.NewAdmissionMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			mutator := sealer(stored(tc.runtime.Obj()))
			mutator.Metrics = figures
			got := mutator.Handle(t.Context(), sealRequest(tc.before, tc.after))
			if !got.Allowed {
				t.Fatal(got.Result)
			}
			var wantWarnings []string
			if tc.wantWarning != "" {
				wantWarnings = []string{tc.wantWarning + rest}
			}
			if diff := cmp.Diff(wantWarnings, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			patched := apply(t, tc.after, got.Patches)
			if diff := cmp.Diff(tc.want, annotations(t, patched)); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(counted(tc.wantResult), results(t, registry)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			if again := mutator.Handle(t.Context(), sealRequest(tc.before, patched)); len(again.Patches) != 0 {
				t.Errorf("asked again it patches again: %d operations", len(again.Patches))
			}
		})
	}
}

// sealedPairs are the annotations of a TrainJob that is sealed now, as pairs.
func sealedPairs(s *snapshot.Snapshot) []string {
	var pairs []string
	for key, value := range sealed(s, "12:00:00", stamp, fresh) {
		pairs = append(pairs, key, value)
	}
	return pairs
}

// counted is one count of a result; "" is none.
func counted(result string) map[string]float64 {
	want := map[string]float64{}
	if result != "" {
		want[result] = 1
	}
	return want
}

// results are the counts that are not 0, by result.
func results(t testing.TB, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			if value := metric.GetCounter().GetValue(); value != 0 {
				got[metric.Label[0].GetValue()] = value
			}
		}
	}
	return got
}

func TestSealIsCounted(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	figures, err := snapshot.NewAdmissionMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	mutator := sealer(stored(torch().Obj()))
	mutator.Metrics = figures
	dry := sealRequest("", document(nil, ""))
	dry.DryRun = ptr.To(true)
	missing := sealRequest("", strings.Replace(document(nil, ""), `"torch"`, `"jax"`, 1))
	for _, req := range []admission.Request{
		sealRequest("", document(nil, "")), dry, missing, missing, sealRequest("", document(nil, `"suspend":true`)),
	} {
		mutator.Handle(t.Context(), req)
	}
	want := strings.TrimLeft(`
# HELP signalbox_runtime_seals_total Writes that make a TrainJob active for the first time, by what became of its seal.
# TYPE signalbox_runtime_seals_total counter
signalbox_runtime_seals_total{result="runtime_missing"} 2
signalbox_runtime_seals_total{result="sealed"} 1
signalbox_runtime_seals_total{result="too_large_annotations"} 0
signalbox_runtime_seals_total{result="too_large_compressed"} 0
signalbox_runtime_seals_total{result="too_large_content"} 0
signalbox_runtime_seals_total{result="too_large_trainjob"} 0
`, "\n")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// A dry run is answered as the real thing is.
func TestSealInADryRun(t *testing.T) {
	mutator := sealer(stored(torch().Obj()))
	real, dry := sealRequest("", document(nil, "")), sealRequest("", document(nil, ""))
	dry.DryRun = ptr.To(true)
	if diff := cmp.Diff(mutator.Handle(t.Context(), real).Patches, mutator.Handle(t.Context(), dry).Patches); diff != "" {
		t.Errorf("patches (-real +dry):\n%s", diff)
	}
}

func TestSealFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	resumed := sealRequest(document(nil, `"suspend":true`), document(nil, ""))
	waited := sealRequest(document(map[string]string{source: torchID}, `"suspend":true`), document(nil, ""))
	created := sealRequest("", document(nil, ""))
	for name, tc := range map[string]struct {
		req  admission.Request
		kind string
		gone bool
		want string
	}{
		"created, the runtime cannot be read":                   {req: created, kind: "ClusterTrainingRuntime", want: "read runtime: etcd is away"},
		"resumed, the runtime cannot be read":                   {req: waited, kind: "ClusterTrainingRuntime", want: "read runtime: etcd is away"},
		"from before us, what is filed cannot be read":          {req: resumed, kind: "TrainingRuntimeSnapshot", want: "read TrainingRuntimeSnapshot: etcd is away"},
		"from before us, what is kept cannot be read":           {req: resumed, kind: "ConfigMap", want: "read ConfigMap: etcd is away"},
		"resumed without a runtime, what is kept cannot be":     {req: waited, kind: "ConfigMap", gone: true, want: "read ConfigMap: etcd is away"},
		"resumed with a runtime, what is kept does not matter":  {req: waited, kind: "ConfigMap"},
		"created with a runtime, what is filed does not matter": {req: created, kind: "TrainingRuntimeSnapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := stored(torch().Obj())
			if tc.gone {
				store = stored()
			}
			live := interceptor.NewClient(store, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				gvk, err := c.GroupVersionKindFor(object)
				if err != nil {
					return err
				}
				if gvk.Kind == tc.kind {
					return broken
				}
				return c.Get(ctx, key, object, options...)
			}})
			got := sealer(live).Handle(t.Context(), tc.req)
			if tc.want == "" {
				if !got.Allowed || len(got.Patches) == 0 {
					t.Errorf("answer %+v", got)
				}
				return
			}
			if got.Allowed || got.Result.Code != http.StatusInternalServerError || got.Result.Message != tc.want {
				t.Errorf("answer %+v, want 500 %q", got.Result, tc.want)
			}
		})
	}
}
