package kueue

import (
	"embed"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/json"
)

// testdata holds a TrainJob on a runtime in each file, and what is made of the two: the pod
// sets by the code of Kueue 0.19.2 with Trainer 2.2.1, which it is built of, and the JobSet by
// the code of Trainer 2.3.0. What the API server puts in (protocol, replicas) is there too.
//
//go:embed testdata
var testdata embed.FS

// examples are the names of the files.
var examples = []string{"torch", "plain", "torchtune", "mpi", "jax", "xgboost", "merged", "torchtune-memory"}

// example is a TrainJob, what its runtime has for the JobSet, and what was made of the two.
type example struct {
	Template Object   `json:"template"`
	TrainJob Object   `json:"trainJob"`
	PodSets  []Object `json:"podSets"`
	JobSet   Object   `json:"jobSet"`
}

func load(t testing.TB, name string) example {
	t.Helper()
	raw, err := testdata.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return decode[example](t, string(raw))
}

// decode decodes as the API machinery does: whole numbers are int64.
func decode[T any](t testing.TB, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func encode(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// changed returns a copy of a value with changes, each of which reads OPERATION PATH VALUE, as
// in a JSON patch ("replace /0/count 3"), or "move FROM TO".
func changed[T any](t testing.TB, value T, changes []string) T {
	t.Helper()
	text := encode(t, value)
	for _, change := range changes {
		operation, rest, _ := strings.Cut(change, " ")
		path, to, _ := strings.Cut(rest, " ")
		switch {
		case operation == "move":
			path, to = to, `,"from":"`+path+`"`
		case to != "":
			to = `,"value":` + to
		}
		patch, err := jsonpatch.DecodePatch([]byte(`[{"op":"` + operation + `","path":"` + path + `"` + to + `}]`))
		if err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		patched, err := patch.Apply([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		text = string(patched)
	}
	return decode[T](t, text)
}

// compared is what Kueue compares of a pod set (pkg/util/equality of Kueue 0.19.2), and its
// name.
type compared struct {
	Name     string `json:"name"`
	Count    int32  `json:"count"`
	MinCount *int32 `json:"minCount"`
	Template struct {
		Spec struct {
			Containers     []corev1.Container  `json:"containers"`
			InitContainers []corev1.Container  `json:"initContainers"`
			Tolerations    []corev1.Toleration `json:"tolerations"`
		} `json:"spec"`
	} `json:"template"`
}

// differ says where Kueue would find two lists of pod sets different; "" for nowhere.
func differ(t testing.TB, want, got []Object) string {
	t.Helper()
	return cmp.Diff(decode[[]compared](t, encode(t, want)), decode[[]compared](t, encode(t, got)),
		cmpopts.EquateEmpty(), cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }))
}

// What Trainer built is shown to Kueue as Kueue computes it itself where the runtime has not
// changed, so that nothing changes for it when it does, and when it is changed back.
func TestShownIsWhatKueueComputes(t *testing.T) {
	for _, name := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := load(t, name)
			last := encode(t, len(e.PodSets)-1)
			asked := changed(t, e.PodSets, []string{
				"replace /" + last + `/template/spec/containers/0/image "image:drifted"`,
				"add /" + last + `/template/spec/containers/- {"name":"sidecar","image":"sidecar:1"}`,
				"add /" + last + `/template/spec/tolerations [{"key":"drifted"}]`,
				"replace /" + last + `/count 99`,
			})
			for source, pods := range map[string]Pods{
				FromJobSet:   {Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet},
				FromWorkload: {Drifted: true, Template: e.Template, TrainJob: e.TrainJob, JobSet: e.JobSet, Workload: e.PodSets, HasQuota: true},
			} {
				for state, asked := range map[string][]Object{"drifted": asked, "as it was": e.PodSets, "empty": nil} {
					if state == "empty" && source == FromJobSet {
						// What the TrainJob adds to the runtime's is known from what is asked alone.
						continue
					}
					got, from, err := Show(asked, pods)
					if err != nil || from != source {
						t.Fatalf("%s: from %q, %v; want %q", state, from, err, source)
					}
					if diff := differ(t, e.PodSets, got); diff != "" {
						t.Errorf("%s, from %s (-want +got):\n%s", state, source, diff)
					}
				}
			}
		})
	}
}
