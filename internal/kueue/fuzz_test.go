package kueue

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

// Whatever comes in: there is an answer or an error, nothing that was given changes, and
// asking again with the answer gives the same.
func FuzzShow(f *testing.F) {
	for _, name := range examples {
		e := load(f, name)
		asked, template, trainJob := encode(f, e.PodSets), encode(f, e.Template), encode(f, e.TrainJob)
		f.Add(asked, template, trainJob, encode(f, e.JobSet), asked)
		f.Add(asked, template, trainJob, `null`, asked)
		f.Add(asked, template, trainJob, encode(f, e.JobSet), `null`)
	}
	f.Add(`[]`, `{}`, `{}`, `{}`, `[]`)
	f.Add(`null`, `null`, `null`, `null`, `null`)
	f.Add(`[{"name":"a","topologyRequest":5}]`, `{"replicatedJobs":[{"name":"a","template":{"spec":{"template":{"spec":5}}}}]}`, `{}`, `{"spec":{"replicatedJobs":[null,5,{"name":"a","replicas":1e3}]}}`, `null`)
	f.Add(`[null,5]`, `{"replicatedJobs":[{"name":"a","template":{"spec":{"template":{"spec":{"containers":[5,null,{"env":[null,5]}]}}}}}]}`, `{}`,
		`{"spec":{"replicatedJobs":[{"name":"a","template":{"spec":{"parallelism":-1,"completions":9223372036854775807,"template":{"spec":{"containers":[5,null,{"env":[null,5],"ports":{}}]}}}}}]}}`, `[{"name":"a","template":{"spec":{"containers":[{"resources":{"limits":{"cpu":null,"memory":[]}}}]}}}]`)
	f.Add(`[]`, `{"replicatedJobs":[{"name":"a","template":{"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}}}]}`,
		`{"spec":{"runtimePatches":[{"trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":"a","template":{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"a"},{"$patch":"replace"}],"$setElementOrder/containers":[{"name":"a"}],"$deleteFromPrimitiveList/x":[1],"volumes":[{"$retainKeys":["name"]}]}}}}}]}}}}]}}`, `{}`, `[]`)
	f.Fuzz(func(t *testing.T, asked, template, trainJob, jobSet, admitted string) {
		var podSets []Object
		var pods Pods
		for text, into := range map[*string]any{&asked: &podSets, &template: &pods.Template, &trainJob: &pods.TrainJob, &jobSet: &pods.JobSet, &admitted: &pods.Workload} {
			if err := json.Unmarshal([]byte(*text), into); err != nil {
				t.Skip()
			}
		}
		for _, pods.Drifted = range []bool{true, false} {
			checkAny(t, podSets, pods)
		}
	})
}

// The same of examples in which values have been replaced by others, or taken away, at random.
func FuzzShowMangled(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(uint8(seed), uint8(seed), seed)
	}
	f.Fuzz(func(t *testing.T, of, changes uint8, seed uint64) {
		e := load(t, examples[int(of)%len(examples)])
		random := rand.New(rand.NewPCG(seed, 0))
		document := Object{"asked": e.PodSets, "admitted": e.PodSets, "template": e.Template, "trainJob": e.TrainJob, "jobSet": e.JobSet}
		// What is given must not share parts.
		document = decode[Object](t, encode(t, document))
		for range changes / 2 % 16 {
			mangle(random, document)
		}
		if text, err := json.Marshal(document); err != nil || json.Unmarshal(text, &document) != nil {
			t.Skip()
		}
		pods := Pods{
			Template: child(document, "template"), TrainJob: child(document, "trainJob"), JobSet: child(document, "jobSet"),
			HasQuota: changes%2 == 1, Drifted: seed%4 > 0,
		}
		if document["admitted"] != nil {
			pods.Workload = list(document, "admitted")
		}
		checkAny(t, list(document, "asked"), pods)
	})
}

// mangle changes one value somewhere below an object or a list.
func mangle(random *rand.Rand, within any) {
	odd := []any{nil, "", "text", int64(-1), int64(math.MaxInt64), 1.5, true, Object{}, []any{}, []any{nil, "a", int64(1)}, Object{"name": "node"}, []any{Object{"name": "node"}}}
	set := func(at any, put func(any), remove func()) {
		switch random.IntN(8) {
		case 0:
			put(odd[random.IntN(len(odd))])
		case 1:
			remove()
		default:
			switch at.(type) {
			case Object, []any:
				mangle(random, at)
			default:
				put(odd[random.IntN(len(odd))])
			}
		}
	}
	switch within := within.(type) {
	case Object:
		keys := slices.Sorted(maps.Keys(within))
		if len(keys) == 0 {
			within["name"] = "node"
			return
		}
		key := keys[random.IntN(len(keys))]
		set(within[key], func(value any) { within[key] = value }, func() { delete(within, key) })
	case []any:
		if len(within) == 0 {
			return
		}
		i := random.IntN(len(within))
		set(within[i], func(value any) { within[i] = value }, func() { within[i] = within[random.IntN(len(within))] })
	}
}

// checkAny checks what holds whatever is asked.
func checkAny(t *testing.T, asked []Object, pods Pods) {
	t.Helper()
	before := encode(t, []any{asked, pods})
	got, source, err := Show(asked, pods)
	if after := encode(t, []any{asked, pods}); after != before {
		t.Fatalf("what was given is now %s, was %s", after, before)
	}
	switch {
	case err != nil || source == "":
		if got != nil || err != nil && source != "" || err == nil && pods.Drifted && (pods.JobSet != nil || pods.Workload != nil) {
			t.Errorf("from %q: %v, %v", source, got, err)
		}
		return
	case source == FromWorkload && len(got) != len(pods.Workload) || source == FromJobSet && pods.JobSet == nil:
		t.Errorf("from %q: %s", source, encode(t, got))
	}
	text := encode(t, got)
	for _, operation := range Patch(asked, got) {
		if operation.Operation != "replace" || operation.Path != "/spec/podSets" || encode(t, operation.Value) != text {
			t.Errorf("patch %v, want %s", operation, text)
		}
	}
	names := map[string]bool{}
	for _, podSet := range got {
		names[nameOf(podSet)] = true
	}
	if len(names) != len(got) {
		// Of two of a name, which the API server does not take, the first counts.
		return
	}
	again, from, err := Show(decode[[]Object](t, text), pods)
	if err != nil || from != source {
		t.Fatalf("asked again: from %q, %v; before from %q: %s", from, err, source, text)
	}
	if diff := cmp.Diff(text, encode(t, again)); diff != "" {
		t.Errorf("asked again (-first +second):\n%s", diff)
	}
}
