package snapshot

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// sealTime is when the snapshots of these tests are sealed; its fraction is lost.
var sealTime = time.Date(2026, time.March, 1, 12, 0, 0, 999_000_000, time.UTC)

// take takes the snapshot of a runtime as it comes from the API server.
func take(t testing.TB, runtime *builder.RuntimeBuilder) *Snapshot {
	t.Helper()
	s, err := Take(runtime.Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// torch is the runtime of most tests.
func torch() *builder.RuntimeBuilder {
	return builder.ClusterTrainingRuntime("torch").Generation(3)
}

// sealedJob starts with an active TrainJob into which the snapshot is sealed.
func sealedJob(s *Snapshot) *builder.TrainJobBuilder {
	return builder.TrainJob("ns", "job").Runtime(s.Source.Kind, s.Source.Name).Annotations(s.Pack().Seal(sealTime))
}

// text is the content of the snapshot as JSON.
func text(s *Snapshot) string { return string(encode(s.object)) }

// toYAML writes the snapshot for Trainer.
func toYAML(t testing.TB, s *Snapshot) string {
	t.Helper()
	yaml, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return yaml
}

func TestTakeKeepsWhatMatters(t *testing.T) {
	s, err := Take(parse(t, `{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime",
		"metadata": {
			"name": "torch", "namespace": "ns", "uid": "u", "generation": 4, "resourceVersion": "77",
			"creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["trainer.kubeflow.org/in-use"],
			"labels": {"trainer.kubeflow.org/framework": "torch"},
			"annotations": {
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
				"lifecycle.trainer.kubeflow.org.example.com/x": "not ours",
				"lifecycle.trainer.kubeflow.org/default-active-deadline-seconds": "60"
			},
			"managedFields": [{"manager": "kubectl"}]
		},
		"spec": {"mlPolicy": {"numNodes": 9007199254740993, "future": {"big": 18446744073709551615, "small": 1e-7}}, "template": {"future": [null, {}, "é"]}},
		"status": {"dropped": true}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainingRuntime",` +
		`"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/default-active-deadline-seconds":"60"},"generation":4,` +
		`"labels":{"trainer.kubeflow.org/framework":"torch"},"name":"torch","namespace":"ns","uid":"u"},` +
		`"spec":{"mlPolicy":{"future":{"big":18446744073709552000,"small":1e-7},"numNodes":9007199254740993},` +
		`"template":{"future":[null,{},"é"],"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"` + s.Revision +
		`","lifecycle.trainer.kubeflow.org/runtime-source":"TrainingRuntime/torch"}}}}}`
	if diff := cmp.Diff(want, text(s)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	wantSource := v1alpha1.RuntimeSource{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainingRuntime", Name: "torch", UID: "u", Generation: 4}
	if s.Source != wantSource || !s.SealedAt.IsZero() || len(s.Revision) != 16 {
		t.Errorf("source %+v, revision %q, sealed at %v", s.Source, s.Revision, s.SealedAt)
	}
}

func TestTakeLeavesTheRuntimeAsItIs(t *testing.T) {
	runtime := torch().Set("b", "spec", "template", "metadata", "annotations", "a").Obj()
	before := runtime.DeepCopy()
	s, err := Take(runtime.Object)
	if err != nil {
		t.Fatal(err)
	}
	s.Pack()
	toYAML(t, s)
	if diff := cmp.Diff(before.Object, runtime.Object); diff != "" {
		t.Errorf("runtime changed (-before +after):\n%s", diff)
	}
}

// A runtime has one revision and one stamp, whatever stamp it had when it was taken.
func TestTakeCorrectsTheStamp(t *testing.T) {
	want := text(take(t, torch()))
	for name, runtime := range map[string]*builder.RuntimeBuilder{
		"wrong":                torch().Revision("0123456789abcdef"),
		"of another source":    torch().Set("x", "spec", "template", "metadata", "annotations", v1alpha1.AnnotationRuntimeSource),
		"right":                torch().Revision(take(t, torch()).Revision),
		"null annotations":     torch().Set(nil, "spec", "template", "metadata", "annotations"),
		"null metadata":        torch().Set(nil, "spec", "template", "metadata"),
		"not text":             torch().Set(int64(5), "spec", "template", "metadata", "annotations", v1alpha1.AnnotationRuntimeRevision),
		"other managed fields": torch().Set([]any{map[string]any{"manager": "kubectl"}}, "metadata", "managedFields"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, text(take(t, runtime))); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTakeRefusesWhatIsNoRuntime(t *testing.T) {
	const want = "apiVersion, kind, metadata.name and spec must be set"
	for name, runtime := range map[string]*builder.RuntimeBuilder{
		"without apiVersion": torch().Without("apiVersion"),
		"without kind":       torch().Without("kind"),
		"without metadata":   torch().Without("metadata"),
		"without a name":     torch().Without("metadata", "name"),
		"without spec":       torch().Without("spec"),
		"with spec null":     torch().Set(nil, "spec"),
		"with spec text":     torch().Set("spec", "spec"),
		"with a name of 1":   torch().Set(int64(1), "metadata", "name"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s, err := Take(runtime.Obj().Object); err == nil || err.Error() != want {
				t.Errorf("Take = %+v, %v; want error %q", s, err, want)
			}
		})
	}
	if _, err := Take(nil); err == nil {
		t.Error("took nothing")
	}
}

// Packed once, a snapshot is sealed into many TrainJobs, each at its time.
func TestSealAndOf(t *testing.T) {
	want := take(t, torch().Label("a", "b").Annotation(v1alpha1.Group+"/x", "y").Container("future", "field"))
	packed := want.Pack()
	for _, at := range []time.Time{sealTime, sealTime.Add(time.Hour), sealTime.Add(-time.Hour), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)} {
		seal := packed.Seal(at)
		if diff := cmp.Diff(map[string]string{v1alpha1.AnnotationRuntimeSource: "ClusterTrainingRuntime/torch", v1alpha1.AnnotationRuntimeRevision: want.Revision},
			without(seal, v1alpha1.AnnotationRuntimeSnapshot)); diff != "" {
			t.Errorf("seal (-want +got):\n%s", diff)
		}
		got, err := Of(sealedJob(want).Annotations(seal).Obj())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text(want), text(got)); diff != "" || got.Revision != want.Revision || got.Source != want.Source {
			t.Errorf("revision %s, source %+v, content (-want +got):\n%s", got.Revision, got.Source, diff)
		}
		if !got.SealedAt.Equal(at.Truncate(time.Second)) {
			t.Errorf("sealed at %v, want %v", got.SealedAt, at)
		}
	}
}

func without(annotations map[string]string, key string) map[string]string {
	rest := maps.Clone(annotations)
	delete(rest, key)
	return rest
}

func TestOfATrainJobThatIsNotSealed(t *testing.T) {
	for name, job := range map[string]*builder.TrainJobBuilder{
		"without annotations": builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch"),
		"while it waits":      builder.TrainJob("ns", "job").Suspended().Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch"),
		"with a revision":     builder.TrainJob("ns", "job").Annotation(v1alpha1.AnnotationRuntimeRevision, "0123456789abcdef"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s, err := Of(job.Obj()); s != nil || err != nil {
				t.Errorf("Of = %+v, %v; want none", s, err)
			}
		})
	}
}

// sealOf packs any text as a seal is packed.
func sealOf(t testing.TB, content string) string {
	t.Helper()
	var out bytes.Buffer
	compressor := gzip.NewWriter(&out)
	if _, err := compressor.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestOfRefusesWhatDoesNotHoldTogether(t *testing.T) {
	const key = "annotation lifecycle.trainer.kubeflow.org/runtime-snapshot"
	s := take(t, torch())
	seal := s.Pack().Seal(sealTime)[v1alpha1.AnnotationRuntimeSnapshot]
	compressed, err := base64.StdEncoding.DecodeString(seal)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(compressed)
	flipped[len(flipped)-6] ^= 1
	recoded := base64.StdEncoding.EncodeToString
	sealed := func(seal string) *builder.TrainJobBuilder {
		return sealedJob(s).Annotation(v1alpha1.AnnotationRuntimeSnapshot, seal)
	}
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		want string
	}{
		"empty":                   {sealed(""), key + ": EOF"},
		"no base64":               {sealed("*"), key + ": illegal base64 data at input byte 0"},
		"base64 for addresses":    {sealed("__8="), key + ": illegal base64 data at input byte 0"},
		"no gzip":                 {sealed(recoded([]byte(text(s)))), key + ": gzip: invalid header"},
		"cut off":                 {sealed(recoded(compressed[:len(compressed)/2])), key + ": unexpected EOF"},
		"cut off in its checksum": {sealed(recoded(compressed[:len(compressed)-1])), key + ": unexpected EOF"},
		"a bit wrong":             {sealed(recoded(flipped)), key + ": gzip: invalid checksum"},
		"more behind it":          {sealed(recoded(append(bytes.Clone(compressed), "tail"...))), key + ": unexpected EOF"},
		"no JSON":                 {sealed(sealOf(t, "spec: {}")), key + ": invalid character 's' looking for beginning of value"},
		"JSON and more":           {sealed(sealOf(t, text(s)+"{}")), key + ": invalid character '{' after top-level value"},
		"null":                    {sealed(sealOf(t, "null")), key + ": apiVersion, kind, metadata.name and spec must be set"},
		"a list":                  {sealed(sealOf(t, "[]")), key + ": json: cannot unmarshal array into Go value of type map[string]interface {}"},
		"a bomb":                  {sealed(sealOf(t, strings.Repeat(" ", maxContent+1))), key + ": more than 2097152 bytes"},
		"a bomb of values":        {sealed(sealOf(t, `{"spec":[`+strings.Repeat("{},", maxValues)+`{}]}`)), key + ": more than 65536 values"},
		"another revision": {
			sealedJob(s).Annotation(v1alpha1.AnnotationRuntimeRevision, "0123456789abcdef"),
			"annotation lifecycle.trainer.kubeflow.org/runtime-revision is not the revision of what is sealed, which is " + s.Revision,
		},
		"content of another revision": {
			sealed(take(t, torch().Image("image:2")).Pack().Seal(sealTime)[v1alpha1.AnnotationRuntimeSnapshot]),
			"annotation lifecycle.trainer.kubeflow.org/runtime-revision is not the revision of what is sealed, which is " + take(t, torch().Image("image:2")).Revision,
		},
		"from before the TrainJob": {
			sealedJob(s).Created(sealTime.Add(5*time.Minute + time.Second)),
			key + " was sealed at " + time.Unix(sealTime.Unix(), 0).String() + ", before the TrainJob was created",
		},
		"another runtime": {
			sealedJob(s).Runtime("ClusterTrainingRuntime", "jax"),
			key + " is of ClusterTrainingRuntime/torch, not the runtime of the TrainJob",
		},
		"another kind of the name": {
			sealedJob(s).Runtime("TrainingRuntime", "torch"),
			key + " is of ClusterTrainingRuntime/torch, not the runtime of the TrainJob",
		},
		"another group": {
			sealedJob(take(t, torch().Set("example.com/v1alpha1", "apiVersion"))),
			key + " is of ClusterTrainingRuntime/torch, not the runtime of the TrainJob",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Of(tc.job.Obj())
			if got != nil || err == nil || err.Error() != tc.want {
				t.Errorf("Of = %+v, error %v; want error %q", got, err, tc.want)
			}
		})
	}
}

// Clocks differ.
func TestOfAllowsForSkew(t *testing.T) {
	s := take(t, torch())
	for _, created := range []time.Time{sealTime.Add(5 * time.Minute), sealTime, sealTime.Add(-time.Hour)} {
		if got, err := Of(sealedJob(s).Created(created).Obj()); err != nil || got.Revision != s.Revision {
			t.Errorf("created at %v: %v", created, err)
		}
	}
}

// As much as may be unpacked is unpacked.
func TestOfReadsUpToTheBound(t *testing.T) {
	s := take(t, torch())
	content := text(s) + strings.Repeat(" ", maxContent-len(text(s)))
	if _, err := Of(sealedJob(s).Annotation(v1alpha1.AnnotationRuntimeSnapshot, sealOf(t, content)).Obj()); err != nil {
		t.Error(err)
	}
}

// A reference may leave out what has a default, and the version of a runtime does not matter.
func TestIsOf(t *testing.T) {
	s := take(t, torch())
	job := builder.TrainJob("ns", "job").Obj()
	job.Spec.RuntimeRef.Name = "torch"
	if !s.IsOf(job) {
		t.Error("not of a reference by name alone")
	}
	if later := take(t, torch().Set("trainer.kubeflow.org/v2", "apiVersion")); !later.IsOf(job) {
		t.Error("not of a later version")
	}
}

// awkward are strings that YAML reads as something else when they are written carelessly.
func awkward() []any {
	out := []any{
		"", " ", "yes", "no", "on", "off", "y", "n", "true", "null", "Null", "~", "=", "<<", "-", "--- ", "...", "?", ": ", "#", "a #b", "a: b",
		"1", "0x1", "0o7", "017", "0b1", "1_000", "1e3", ".5", "+1", "-0", ".inf", ".nan", "1:30", "190:20:30", "2026-03-01", "2026-03-01T12:00:00Z",
		"!!str", "&a", "*a", "%TAG", "@", "`", "'", `"`, `\`, "{", "[a]", "|", ">-", ",",
		"\t", "a\tb", "\ta", "a\t", "a\nb", "a\n", "\na", "\n", "\n\n", "a\n\n\nb\n\n", " a\n  b\n", "\n a", "\t\na", "a \nb", "a\r\nb", "\r",
		"\x00", "\x01", "\x1b[0m", "\b\f", "\x7f", "\u0080", "\u0085", "a\u0085b", "\u009f", "\u00a0", "\u2028", "\u2029", "a\u2028b",
		"\ufeff", "a\ufeffb", "\ufffd", "\ufffe", "\uffff", "\U0001f682", "\U0001fffe", "\U0010ffff", "ü", "日本語",
		"#!/bin/bash\nset -e\n\tif [ \"$A\" = 'b' ]; then\n\t  echo \"x\" # no\n\tfi\n",
		strings.Repeat("word ", 60), strings.Repeat("x", 300), strings.Repeat(" ", 100) + "x",
	}
	return out
}

// Trainer reads from YAML what was sealed as JSON.
func TestYAMLSaysTheSame(t *testing.T) {
	args := awkward()
	named := map[string]any{}
	for _, arg := range args {
		if arg != mergeKey {
			named[arg.(string)] = arg
		}
	}
	for name, runtime := range map[string]*builder.RuntimeBuilder{
		"strings": torch().Container("args", args),
		"keys":    torch().Set(named, "spec", "template", "future"),
		"numbers": torch().Container("future", []any{int64(9007199254740993), int64(-9223372036854775808), 18446744073709551615.0, 1e20, 1e21, 1e300, 1e-7, 0.1, -0.5, 5e-324}),
		"other":   torch().Container("future", []any{nil, true, false, []any{}, map[string]any{}, []any{[]any{nil}}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := take(t, runtime)
			yaml := toYAML(t, s)
			got, err := FromYAML(yaml)
			if err != nil {
				t.Fatalf("%v\n%s", err, yaml)
			}
			if diff := cmp.Diff(s.object, got.object); diff != "" || got.Revision != s.Revision || got.Source != s.Source {
				t.Errorf("revision %s, want %s, content (-want +got):\n%s\n%s", got.Revision, s.Revision, diff, yaml)
			}
			if !s.Holds(yaml) {
				t.Error("does not hold it")
			}
		})
	}
}

func TestYAMLIsPlain(t *testing.T) {
	s := take(t, torch())
	want := `apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  generation: 3
  name: torch
  uid: uid-of-ClusterTrainingRuntime-torch
spec:
  mlPolicy:
    numNodes: 1
  template:
    metadata:
      annotations:
        lifecycle.trainer.kubeflow.org/runtime-revision: ` + s.Revision + `
        lifecycle.trainer.kubeflow.org/runtime-source: ClusterTrainingRuntime/torch
    spec:
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                containers:
                - image: image:1
                  name: node
`
	// A revision of digits alone, or with one e, is a number when it is not quoted.
	if diff := cmp.Diff(want, toYAML(t, s)); diff != "" {
		t.Errorf("YAML (-want +got):\n%s", diff)
	}
}

// A runtime with a key that YAML cannot take is told, not written in another sense.
func TestYAMLRefusesWhatItCannotSay(t *testing.T) {
	for name, key := range map[string]string{"a key that merges": mergeKey, "a key that is too long": strings.Repeat("k", 1100)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if text, err := take(t, torch().Set("x", "spec", "template", "metadata", "labels", key)).YAML(); err == nil {
				t.Errorf("written as\n%s", text)
			}
		})
	}
}

func TestFromYAMLRefusesWhatIsNoRuntime(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no YAML": "\t- {", "a list": "- a", "text": "a", "without kind": "apiVersion: a/v1\nmetadata: {name: a}\nspec: {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s, err := FromYAML(text); err == nil {
				t.Errorf("read %+v", s)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	s := take(t, torch())
	of := func(runtime *builder.RuntimeBuilder) string {
		t.Helper()
		out, err := json.Marshal(runtime.Obj().Object)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	stamped := func() *builder.RuntimeBuilder { return torch().Revision(s.Revision) }
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"what it writes itself": {toYAML(t, s), true},
		"JSON":                  {of(stamped()), true},
		"with all of Trainer's": {of(stamped().Label("a", "b").Annotation("c", "d").ResourceVersion("5").UID("other").Generation(9).
			Set(nil, "metadata", "creationTimestamp").Container("resources", map[string]any{})), true},
		"without a stamp":          {of(torch()), false},
		"another stamp":            {of(torch().Revision("0123456789abcdef")), false},
		"other content":            {of(stamped().Image("image:2")), false},
		"other content, its stamp": {toYAML(t, take(t, torch().Image("image:2"))), false},
		"another name":             {toYAML(t, take(t, builder.ClusterTrainingRuntime("jax"))), false},
		"another kind":             {toYAML(t, take(t, builder.TrainingRuntime("ns", "torch"))), false},
		"another group":            {of(stamped().Set("example.com/v1alpha1", "apiVersion")), false},
		"no kind":                  {of(stamped().Without("kind")), false},
		"no apiVersion":            {of(stamped().Without("apiVersion")), false},
		"no spec":                  {of(stamped().Without("spec")), false},
		"no YAML":                  {"\t- {", false},
		"a key twice":              {toYAML(t, s) + "spec: {}\n", false},
		"nothing":                  {"", false},
		"its own summary":          {s.summary(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := s.Holds(tc.text); got != tc.want {
				t.Errorf("holds = %v, want %v", got, tc.want)
			}
		})
	}
}

// The source on a JobSet tells whether it was built from a snapshot or from the runtime.
func TestHoldsFor(t *testing.T) {
	s := take(t, torch())
	ours, trainers := toYAML(t, s), string(encode(torch().Revision(s.Revision).Obj().Object))
	source := map[string]string{v1alpha1.AnnotationRuntimeSource: "ClusterTrainingRuntime/torch"}
	for name, tc := range map[string]struct {
		text   string
		jobSet map[string]string
		want   bool
	}{
		"built from a snapshot":                       {ours, source, true},
		"built from Trainer's copy":                   {trainers, nil, true},
		"built before the snapshot was written":       {ours, nil, false},
		"built before Trainer's copy was":             {trainers, source, false},
		"built from a snapshot of another":            {ours, map[string]string{v1alpha1.AnnotationRuntimeSource: "ClusterTrainingRuntime/jax"}, false},
		"built from other content":                    {toYAML(t, take(t, torch().Image("image:2"))), source, false},
		"built from what cannot be read":              {"\t- {", nil, false},
		"built from what is empty":                    {"", nil, false},
		"built from Trainer's copy without the stamp": {string(encode(torch().Obj().Object)), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := s.HoldsFor(tc.text, tc.jobSet); got != tc.want {
				t.Errorf("holds = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestObjectAndFromObject(t *testing.T) {
	job := builder.TrainJob("ns", "job").Obj()
	for name, runtime := range map[string]*builder.RuntimeBuilder{
		"of the cluster":    torch().Container("future", int64(9007199254740993)),
		"of the namespace":  builder.TrainingRuntime("ns", "torch").Container("future", "field"),
		"with awkward text": torch().Container("args", awkward()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := take(t, runtime)
			want.SealedAt = sealTime.Truncate(time.Second)
			// As the API server stores it, which sorts keys and knows seconds only.
			encoded, err := json.Marshal(want.Object(job))
			if err != nil {
				t.Fatal(err)
			}
			stored := &v1alpha1.TrainingRuntimeSnapshot{}
			if err := json.Unmarshal(encoded, stored); err != nil {
				t.Fatal(err)
			}
			got, err := FromObject(stored)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.object, got.object); diff != "" || got.Revision != want.Revision || got.Source != want.Source {
				t.Errorf("revision %s, source %+v, content (-want +got):\n%s", got.Revision, got.Source, diff)
			}
			if !got.SealedAt.Equal(want.SealedAt) {
				t.Errorf("sealed at %v, want %v", got.SealedAt, want.SealedAt)
			}
		})
	}
}

func TestObjectIsOfItsTrainJob(t *testing.T) {
	s := take(t, torch())
	s.SealedAt = sealTime
	got := s.Object(builder.TrainJob("ns", "job").Obj())
	got.Spec.RuntimeSpec = runtime.RawExtension{}
	yes := true
	want := &v1alpha1.TrainingRuntimeSnapshot{
		TypeMeta: metav1.TypeMeta{APIVersion: "lifecycle.trainer.kubeflow.org/v1alpha1", Kind: "TrainingRuntimeSnapshot"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "job",
			Annotations: map[string]string{
				"trainer.kubeflow.org/snapshot-source":          "ClusterTrainingRuntime/torch",
				"lifecycle.trainer.kubeflow.org/runtime-source": "ClusterTrainingRuntime/torch",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Name: "job", UID: "uid-of-job", Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: v1alpha1.TrainingRuntimeSnapshotSpec{
			Source:   v1alpha1.RuntimeSource{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "ClusterTrainingRuntime", Name: "torch", UID: "uid-of-ClusterTrainingRuntime-torch", Generation: 3},
			Revision: s.Revision,
			SealedAt: metav1.NewTime(sealTime),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestFromObjectRefusesWhatIsForged(t *testing.T) {
	s := take(t, torch())
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrainingRuntimeSnapshotSpec)
		want   string
	}{
		"another revision": {func(spec *v1alpha1.TrainingRuntimeSnapshotSpec) { spec.Revision = "0123456789abcdef" }, "the revision of its content is " + s.Revision + ", not 0123456789abcdef"},
		"other content":    {func(spec *v1alpha1.TrainingRuntimeSnapshotSpec) { spec.RuntimeSpec.Raw = []byte(`{}`) }, "the revision of its content is 44136fa355b3678a, not " + s.Revision},
		"no content":       {func(spec *v1alpha1.TrainingRuntimeSnapshotSpec) { spec.RuntimeSpec.Raw = nil }, "unexpected end of JSON input"},
		"null":             {func(spec *v1alpha1.TrainingRuntimeSnapshotSpec) { spec.RuntimeSpec.Raw = []byte(`null`) }, "apiVersion, kind, metadata.name and spec must be set"},
		"no name":          {func(spec *v1alpha1.TrainingRuntimeSnapshotSpec) { spec.Source.Name = "" }, "apiVersion, kind, metadata.name and spec must be set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := s.Object(builder.TrainJob("ns", "job").Obj())
			tc.change(&object.Spec)
			if got, err := FromObject(object); err == nil || err.Error() != tc.want {
				t.Errorf("FromObject = %+v, %v; want error %q", got, err, tc.want)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	small := take(t, torch()).Pack()
	seal := 0
	for key, value := range small.Seal(sealTime) {
		seal += len(key) + len(value)
	}
	of := func(compressed int) *Packed {
		return &Packed{source: "ClusterTrainingRuntime/torch", revision: small.revision, original: 99999, size: compressed}
	}
	for name, tc := range map[string]struct {
		packed                *Packed
		trainJob, annotations int
		wantLimit, want       string
	}{
		"small":                        {packed: small},
		"compressed to the bound":      {packed: of(MaxCompressed)},
		"compressed over the bound":    {packed: of(MaxCompressed + 1), wantLimit: "too_large_compressed", want: "ClusterTrainingRuntime/torch is 65537 bytes compressed (99999 in full), more than 65536"},
		"annotations up to the bound":  {packed: small, annotations: MaxAnnotations - seal},
		"annotations over the bound":   {packed: small, annotations: MaxAnnotations - seal + 1, wantLimit: "too_large_annotations", want: fmt.Sprintf("the annotations of the TrainJob would be 196609 bytes with the %d of the snapshot, more than 196608", seal)},
		"the TrainJob up to the bound": {packed: small, trainJob: MaxTrainJob - seal},
		"the TrainJob over the bound":  {packed: small, trainJob: MaxTrainJob - seal + 1, wantLimit: "too_large_trainjob", want: fmt.Sprintf("the TrainJob would be 1048577 bytes with the %d of the snapshot, more than 1048576", seal)},
		"over all bounds":              {packed: of(MaxCompressed + 1), trainJob: MaxTrainJob, annotations: MaxAnnotations, wantLimit: "too_large_compressed", want: "ClusterTrainingRuntime/torch is 65537 bytes compressed (99999 in full), more than 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit, text := tc.packed.TooLarge(tc.trainJob, tc.annotations)
			if limit != tc.wantLimit || text != tc.want {
				t.Errorf("TooLarge = %q, %q\nwant       %q, %q", limit, text, tc.wantLimit, tc.want)
			}
		})
	}
}

// What just fits is read again.
func TestTheLargestSealIsRead(t *testing.T) {
	s := take(t, torch().Container("args", []any{noise(75 << 10)}))
	packed := s.Pack()
	if size := packed.size; size > MaxCompressed || size < MaxCompressed-1024 {
		t.Fatalf("%d bytes compressed, want a little less than %d", size, MaxCompressed)
	}
	if limit, text := packed.TooLarge(0, 0); limit != "" {
		t.Error(text)
	}
	if got, err := Of(sealedJob(s).Obj()); err != nil || text(got) != text(s) {
		t.Errorf("Of = %v", err)
	}
}

// noise is text that hardly compresses, the same in each run.
func noise(length int) string {
	source := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, length)
	for i := range out {
		out[i] = byte('!' + source.IntN(90))
	}
	return string(out)
}

// runtimeSpec reads JSON as the spec of a runtime that an API server could have stored; nil
// when it is none.
func runtimeSpec(document []byte) map[string]any {
	var spec map[string]any
	if json.Unmarshal(document, &spec) != nil || spec == nil {
		return nil
	}
	// Stored numbers have been written once: -0.0 is -0, which reads as 0.
	document = encode(spec)
	spec = nil
	if json.Unmarshal(document, &spec) != nil {
		return nil
	}
	value := any(spec)
	for _, key := range []string{"template", "metadata", "annotations"} {
		if value = value.(map[string]any)[key]; value == nil {
			break
		}
		if _, object := value.(map[string]any); !object {
			return nil
		}
	}
	return spec
}

// seeds are specs for the fuzz targets.
func seeds(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"mlPolicy":{"numNodes":9007199254740993,"torch":{}},"template":{"spec":{"replicatedJobs":[{"name":"node","replicas":1}]}}}`))
	f.Add([]byte(`{"template":null,"podGroupPolicy":{"coscheduling":{}}}`))
	f.Add([]byte(`{"template":{"metadata":null}}`))
	f.Add([]byte(`{"template":{"metadata":{"annotations":null,"labels":{"a":"b"}}}}`))
	f.Add([]byte(`{"template":{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"0123456789abcdef"}}}}`))
	f.Add([]byte(`{"template":{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":5,"x":"y"}}}}`))
	f.Add([]byte(`{"template":{"resources":{"limits":{"cpu":1,"memory":"1024Mi","x":{"a":null}}},"emptyDir":{"sizeLimit":"1Gi"}}}`))
	f.Add([]byte(`{"template":{"a":[[],[null],{}],"b":"","env":[{"name":"x","value":""}],"tty":false}}`))
	f.Add([]byte(`{"x":[18446744073709551615,1e300,1e-7,-0.0,0.1,100000000000000000000]}`))
	all, err := json.Marshal(map[string]any{"a": awkward()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all)
	for _, text := range awkward() {
		if text == mergeKey {
			continue
		}
		one, err := json.Marshal(map[string]any{text.(string): []any{text, "x" + text.(string)}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(one)
	}
}

// Whatever a runtime holds: by all ways that a snapshot takes it stays the same.
func FuzzRoundTrip(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		spec := runtimeSpec(document)
		if spec == nil || hasBadKey(spec) {
			t.Skip()
		}
		want, err := Take(map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": map[string]any{"name": "torch"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		if got := Revision(spec); got != want.Revision || Stamp(want.object["spec"].(map[string]any)) != got {
			t.Errorf("revision %s, stamp %s, want %s", want.Revision, Stamp(want.object["spec"].(map[string]any)), got)
		}
		job := sealedJob(want).Obj()
		same := func(way string, got *Snapshot, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			if text(got) != text(want) || got.Revision != want.Revision {
				t.Errorf("%s: revision %s, want %s; content\n%s\nwant\n%s", way, got.Revision, want.Revision, text(got), text(want))
			}
		}
		got, err := Of(job)
		same("seal", got, err)
		got, err = FromObject(want.Object(job))
		same("object", got, err)
		yaml := toYAML(t, want)
		got, err = FromYAML(yaml)
		same("YAML", got, err)
		if !want.Holds(yaml) {
			t.Errorf("does not hold its own YAML:\n%s", yaml)
		}
		got, err = Take(want.object)
		same("taken again", got, err)
	})
}

// mergeKey is no key for the writer of YAML: it writes it like the one that merges maps.
const mergeKey = "<<"

// hasBadKey tells of keys that no valid map of a runtime has and that YAML cannot take: the
// one that merges maps, and those of more than 1024 bytes.
func hasBadKey(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, value := range value {
			if key == mergeKey || len(encode(key)) > 1000 || hasBadKey(value) {
				return true
			}
		}
	case []any:
		for _, value := range value {
			if hasBadKey(value) {
				return true
			}
		}
	}
	return false
}

// What says the same has the same revision, and to look at it changes nothing.
func FuzzRevision(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		spec := runtimeSpec(document)
		if spec == nil {
			t.Skip()
		}
		before := string(encode(spec))
		want := Revision(spec)
		if after := string(encode(spec)); after != before {
			t.Fatalf("changed to %s from %s", after, before)
		}
		reordered := map[string]any{}
		if err := json.Unmarshal(reverse(spec), &reordered); err != nil {
			t.Fatal(err)
		}
		if got := Revision(reordered); got != want {
			t.Errorf("in another order %s, want %s", got, want)
		}
		if got := Revision(withNulls(spec, "").(map[string]any)); got != want {
			t.Errorf("with nulls %s, want %s", got, want)
		}
		taken, err := Take(map[string]any{"apiVersion": "a/v1", "kind": "b", "metadata": map[string]any{"name": "c"}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		if got := Revision(taken.object["spec"].(map[string]any)); got != want {
			t.Errorf("with a stamp %s, want %s", got, want)
		}
		if after := string(encode(spec)); after != before {
			t.Errorf("stamped in place: %s from %s", after, before)
		}
	})
}

// withNulls copies the value and adds a null to each object but maps with keys of the user's.
func withNulls(value any, key string) any {
	if slices.Contains(quantities, key) || slices.Contains(freeMaps, key) {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{"\x00null": nil}
		for k, v := range value {
			out[k] = withNulls(v, k)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = withNulls(v, "")
		}
		return out
	}
	return value
}

// reverse writes JSON with the keys of objects in reverse order.
func reverse(value any) []byte {
	switch value := value.(type) {
	case map[string]any:
		var out bytes.Buffer
		out.WriteByte('{')
		keys := slices.Sorted(maps.Keys(value))
		slices.Reverse(keys)
		for i, key := range keys {
			if i > 0 {
				out.WriteByte(',')
			}
			out.Write(encode(key))
			out.WriteByte(':')
			out.Write(reverse(value[key]))
		}
		out.WriteByte('}')
		return out.Bytes()
	case []any:
		parts := make([][]byte, len(value))
		for i, v := range value {
			parts[i] = reverse(v)
		}
		return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
	}
	return encode(value)
}

// What could not be unpacked again is not sealed, however well it compresses.
func TestTooManyValues(t *testing.T) {
	for name, tc := range map[string]struct {
		values int
		want   string
	}{
		"as many as may be": {maxValues - 100, ""},
		"more":              {maxValues, TooLargeContent},
	} {
		t.Run(name, func(t *testing.T) {
			tolerations := make([]any, tc.values)
			for i := range tolerations {
				tolerations[i] = "{,\\\"["
			}
			s, err := Take(torch().Set(tolerations, "spec", "many").Obj().Object)
			if err != nil {
				t.Fatal(err)
			}
			packed := s.Pack()
			limit, text := packed.TooLarge(0, 0)
			if limit != tc.want || (text == "") != (tc.want == "") {
				t.Fatalf("TooLarge = %q, %q; want %q", limit, text, tc.want)
			}
			if tc.want != "" {
				if packed.rest != "" {
					t.Error("it is kept all the same")
				}
				return
			}
			if _, err := unpack(packed.Seal(time.Unix(0, 0))[v1alpha1.AnnotationRuntimeSnapshot]); err != nil {
				t.Errorf("what is sealed cannot be unpacked: %v", err)
			}
		})
	}
}
