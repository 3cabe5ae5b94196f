package guard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	secondClock = "must not be set in a runtime: it is a second clock, by which pods end without their TrainJob; use spec.activeDeadlineSeconds of the TrainJob"
	secondTTL   = "must not be set in a runtime: it deletes what its TrainJob still counts; set lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished on the runtime"
)

// specOf decodes the spec of a runtime as the webhook does.
func specOf(t testing.TB, text string) map[string]any {
	t.Helper()
	var spec map[string]any
	if err := kjson.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return spec
}

// jobSet is the spec of a runtime whose JobSet has these replicatedJobs.
func jobSet(replicatedJobs ...string) string {
	return `{"template":{"spec":{"replicatedJobs":[` + strings.Join(replicatedJobs, ",") + `]}}}`
}

// entry is a replicatedJob with this Job spec.
func entry(name, job string) string {
	return fmt.Sprintf(`{"name":%q,"template":{"spec":%s}}`, name, job)
}

// texts are the errors as they are printed.
func texts(errs field.ErrorList) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

func TestDefaults(t *testing.T) {
	const (
		deadline = "lifecycle.trainer.kubeflow.org/default-active-deadline-seconds"
		ttl      = "lifecycle.trainer.kubeflow.org/default-ttl-seconds-after-finished"
	)
	type annotations = map[string]string
	at := func(key, rest string) string { return "metadata.annotations[" + key + "]: Invalid value: " + rest }
	for name, tc := range map[string]struct {
		before, after annotations
		want          []string
	}{
		"none":      {after: annotations{"team": "x"}},
		"no map":    {},
		"the least": {after: annotations{deadline: "1", ttl: "0"}},
		"the most":  {after: annotations{deadline: "4294967295", ttl: "4294967295"}},
		"both wrong, told at once": {
			after: annotations{deadline: "0", ttl: "-1"},
			want:  []string{at(deadline, `"0": must be greater than or equal to 1`), at(ttl, `"-1": must be greater than or equal to 0`)},
		},
		"too many":                    {after: annotations{ttl: "4294967296"}, want: []string{at(ttl, `"4294967296": must be less than or equal to 4294967295`)}},
		"as a policy writes it":       {after: annotations{deadline: "8h"}, want: []string{at(deadline, `"8h": must be a whole number of seconds from 1 to 4294967295`)}},
		"empty":                       {after: annotations{ttl: ""}, want: []string{at(ttl, `"": must be a whole number of seconds from 0 to 4294967295`)}},
		"none is for TrainJobs":       {after: annotations{ttl: "none"}, want: []string{at(ttl, `"none": must be a whole number of seconds from 0 to 4294967295`)}},
		"stored, left as it is":       {before: annotations{deadline: "8h"}, after: annotations{deadline: "8h", "team": "x"}},
		"stored empty, left so":       {before: annotations{ttl: ""}, after: annotations{ttl: ""}},
		"added empty":                 {before: annotations{}, after: annotations{ttl: ""}, want: []string{at(ttl, `"": must be a whole number of seconds from 0 to 4294967295`)}},
		"stored, changed":             {before: annotations{deadline: "8h"}, after: annotations{deadline: "9h"}, want: []string{at(deadline, `"9h": must be a whole number of seconds from 1 to 4294967295`)}},
		"stored, the other one added": {before: annotations{deadline: "8h"}, after: annotations{deadline: "8h", ttl: "x"}, want: []string{at(ttl, `"x": must be a whole number of seconds from 0 to 4294967295`)}},
		"stored, removed":             {before: annotations{deadline: "8h"}, after: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, texts(Defaults(tc.before, tc.after))); diff != "" {
				t.Errorf("Defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClocks(t *testing.T) {
	const (
		quiet   = `{"template":{"spec":{"containers":[{"name":"node","image":"a"}]}}}`
		onJob   = `{"activeDeadlineSeconds":5}`
		onPod   = `{"template":{"spec":{"activeDeadlineSeconds":6}}}`
		ttl     = `{"ttlSecondsAfterFinished":7}`
		onAll   = `{"activeDeadlineSeconds":5,"ttlSecondsAfterFinished":7,"template":{"spec":{"activeDeadlineSeconds":6}}}`
		ofJobs  = "spec.template.spec.replicatedJobs"
		ofFirst = ofJobs + "[0].template.spec."
	)
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"none":                        {jobSet(entry("node", quiet)), nil},
		"on the JobSet template":      {`{"template":{"spec":{"activeDeadlineSeconds":8}}}`, []string{"spec.template.spec.activeDeadlineSeconds: Invalid value: 8: " + secondClock}},
		"a TTL on the JobSet":         {`{"template":{"spec":{"ttlSecondsAfterFinished":9}}}`, []string{"spec.template.spec.ttlSecondsAfterFinished: Invalid value: 9: " + secondTTL}},
		"on the Job template":         {jobSet(entry("node", onJob)), []string{ofFirst + "activeDeadlineSeconds: Invalid value: 5: " + secondClock}},
		"on the pod template":         {jobSet(entry("node", onPod)), []string{ofFirst + "template.spec.activeDeadlineSeconds: Invalid value: 6: " + secondClock}},
		"a TTL on the Job template":   {jobSet(entry("node", ttl)), []string{ofFirst + "ttlSecondsAfterFinished: Invalid value: 7: " + secondTTL}},
		"on the second of three":      {jobSet(entry("a", quiet), entry("b", onJob), entry("c", quiet)), []string{ofJobs + "[1].template.spec.activeDeadlineSeconds: Invalid value: 5: " + secondClock}},
		"zero is set":                 {jobSet(entry("node", `{"activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0}`)), []string{ofFirst + "activeDeadlineSeconds: Invalid value: 0: " + secondClock, ofFirst + "ttlSecondsAfterFinished: Invalid value: 0: " + secondTTL}},
		"the largest number is whole": {jobSet(entry("node", `{"activeDeadlineSeconds":9223372036854775807}`)), []string{ofFirst + "activeDeadlineSeconds: Invalid value: 9223372036854775807: " + secondClock}},
		"all at once": {
			`{"template":{"spec":{"activeDeadlineSeconds":8,"ttlSecondsAfterFinished":9,"replicatedJobs":[` + entry("a", onAll) + "," + entry("b", quiet) + "," + entry("c", onAll) + `]}}}`,
			[]string{
				"spec.template.spec.activeDeadlineSeconds: Invalid value: 8: " + secondClock,
				"spec.template.spec.ttlSecondsAfterFinished: Invalid value: 9: " + secondTTL,
				ofFirst + "activeDeadlineSeconds: Invalid value: 5: " + secondClock,
				ofFirst + "ttlSecondsAfterFinished: Invalid value: 7: " + secondTTL,
				ofFirst + "template.spec.activeDeadlineSeconds: Invalid value: 6: " + secondClock,
				ofJobs + "[2].template.spec.activeDeadlineSeconds: Invalid value: 5: " + secondClock,
				ofJobs + "[2].template.spec.ttlSecondsAfterFinished: Invalid value: 7: " + secondTTL,
				ofJobs + "[2].template.spec.template.spec.activeDeadlineSeconds: Invalid value: 6: " + secondClock,
			},
		},
		"null is not set": {
			`{"template":{"spec":{"activeDeadlineSeconds":null,"ttlSecondsAfterFinished":null,"replicatedJobs":[` +
				entry("a", `{"activeDeadlineSeconds":null,"ttlSecondsAfterFinished":null,"template":{"spec":{"activeDeadlineSeconds":null}}}`) + `]}}}`, nil,
		},
		"where the fields mean something else": {
			`{"activeDeadlineSeconds":1,"template":{"activeDeadlineSeconds":1,"metadata":{"annotations":{"activeDeadlineSeconds":"1"}},"spec":{"replicatedJobs":[` +
				`{"name":"a","activeDeadlineSeconds":1,"template":{"activeDeadlineSeconds":1,"spec":{"template":{"activeDeadlineSeconds":1,"spec":{"ttlSecondsAfterFinished":1}}}}}]}}}`, nil,
		},

		"no template":                       {`{}`, nil},
		"a template of null":                {`{"template":null}`, nil},
		"a template of text":                {`{"template":"x"}`, nil},
		"a JobSet spec of a list":           {`{"template":{"spec":[{"activeDeadlineSeconds":1}]}}`, nil},
		"replicatedJobs of null":            {`{"template":{"spec":{"replicatedJobs":null}}}`, nil},
		"replicatedJobs of an object":       {`{"template":{"spec":{"replicatedJobs":{"name":"a"}}}}`, nil},
		"entries that are no objects":       {jobSet(`null`, `"x"`, `5`, `[]`, entry("b", onJob)), []string{ofJobs + "[4].template.spec.activeDeadlineSeconds: Invalid value: 5: " + secondClock}},
		"an entry without a name":           {jobSet(`{"template":{"spec":{"activeDeadlineSeconds":5}}}`), []string{ofFirst + "activeDeadlineSeconds: Invalid value: 5: " + secondClock}},
		"an entry with a number for a name": {jobSet(`{"name":3,"template":{"spec":{"activeDeadlineSeconds":5}}}`), []string{ofFirst + "activeDeadlineSeconds: Invalid value: 5: " + secondClock}},
		"Job and pod templates of null":     {jobSet(`{"name":"a","template":null}`, `{"name":"b","template":{"spec":{"template":null}}}`), nil},
		"a value of text":                   {jobSet(entry("node", `{"activeDeadlineSeconds":"5"}`)), []string{ofFirst + `activeDeadlineSeconds: Invalid value: "5": ` + secondClock}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, texts(Clocks(nil, specOf(t, tc.spec)))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	if errs := Clocks(nil, nil); len(errs) != 0 {
		t.Errorf("no spec: %v", errs)
	}
}

// What is stored may stay, whatever else changes. What is added or changed is refused.
func TestClocksThatAreStored(t *testing.T) {
	const (
		node    = `{"activeDeadlineSeconds":5,"ttlSecondsAfterFinished":7,"template":{"spec":{"activeDeadlineSeconds":6,"containers":[{"name":"node","image":"old"}]}}}`
		quiet   = `{"template":{"spec":{}}}`
		ofJobs  = "spec.template.spec.replicatedJobs"
		invalid = "activeDeadlineSeconds: Invalid value: "
	)
	job := func(name string, deadline int) string {
		return entry(name, fmt.Sprintf(`{"activeDeadlineSeconds":%d}`, deadline))
	}
	pod := func(name string, deadline int) string {
		return entry(name, fmt.Sprintf(`{"template":{"spec":{"activeDeadlineSeconds":%d}}}`, deadline))
	}
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing changes":          {jobSet(entry("node", node)), jobSet(entry("node", node)), nil},
		"the image changes":        {jobSet(entry("node", node)), jobSet(entry("node", strings.Replace(node, "old", "new", 1))), nil},
		"all go":                   {jobSet(entry("node", node)), jobSet(entry("node", quiet)), nil},
		"one goes":                 {jobSet(job("a", 5), job("b", 5)), jobSet(job("a", 5), entry("b", quiet)), nil},
		"one becomes null":         {jobSet(job("a", 5)), jobSet(entry("a", `{"activeDeadlineSeconds":null}`)), nil},
		"one that was null is set": {jobSet(entry("a", `{"activeDeadlineSeconds":null}`)), jobSet(job("a", 5)), []string{ofJobs + "[0].template.spec." + invalid + "5: " + secondClock}},
		"one grows":                {jobSet(job("a", 5)), jobSet(job("a", 6)), []string{ofJobs + "[0].template.spec." + invalid + "6: " + secondClock}},
		"one shrinks":              {jobSet(job("a", 5)), jobSet(job("a", 4)), []string{ofJobs + "[0].template.spec." + invalid + "4: " + secondClock}},
		"one comes beside another": {
			jobSet(job("a", 5)), jobSet(entry("a", `{"activeDeadlineSeconds":5,"template":{"spec":{"activeDeadlineSeconds":5}}}`)),
			[]string{ofJobs + "[0].template.spec.template.spec." + invalid + "5: " + secondClock},
		},
		"one moves from the Job to its pod": {jobSet(job("a", 5)), jobSet(pod("a", 5)), []string{ofJobs + "[0].template.spec.template.spec." + invalid + "5: " + secondClock}},
		"one moves from the JobSet to a Job": {
			`{"template":{"spec":{"activeDeadlineSeconds":5,"replicatedJobs":[` + entry("a", quiet) + `]}}}`, jobSet(job("a", 5)),
			[]string{ofJobs + "[0].template.spec." + invalid + "5: " + secondClock},
		},
		"a deadline becomes a TTL": {
			jobSet(job("a", 5)), jobSet(entry("a", `{"ttlSecondsAfterFinished":5}`)),
			[]string{ofJobs + "[0].template.spec.ttlSecondsAfterFinished: Invalid value: 5: " + secondTTL},
		},
		"the JobSet's own": {
			`{"template":{"spec":{"activeDeadlineSeconds":5,"ttlSecondsAfterFinished":7}}}`, `{"template":{"spec":{"activeDeadlineSeconds":5,"ttlSecondsAfterFinished":8}}}`,
			[]string{"spec.template.spec.ttlSecondsAfterFinished: Invalid value: 8: " + secondTTL},
		},
		"reordered":                        {jobSet(job("a", 5), pod("b", 6), entry("c", quiet)), jobSet(entry("c", quiet), pod("b", 6), job("a", 5)), nil},
		"reordered, values swapped":        {jobSet(job("a", 5), job("b", 6)), jobSet(job("b", 5), job("a", 6)), []string{ofJobs + "[0].template.spec." + invalid + "5: " + secondClock, ofJobs + "[1].template.spec." + invalid + "6: " + secondClock}},
		"another one comes before it":      {jobSet(job("a", 5)), jobSet(entry("new", quiet), job("a", 5)), nil},
		"the one before it goes":           {jobSet(entry("old", quiet), job("a", 5)), jobSet(job("a", 5)), nil},
		"renamed":                          {jobSet(job("a", 5)), jobSet(job("b", 5)), []string{ofJobs + "[0].template.spec." + invalid + "5: " + secondClock}},
		"renamed to the name of a good":    {jobSet(job("a", 5), entry("b", quiet)), jobSet(entry("a", quiet), job("b", 5)), []string{ofJobs + "[1].template.spec." + invalid + "5: " + secondClock}},
		"renamed to the name of a bad":     {jobSet(job("a", 5), job("b", 5)), jobSet(job("b", 5)), nil},
		"a runtime that had no spec":       {`{}`, jobSet(job("a", 5)), []string{ofJobs + "[0].template.spec." + invalid + "5: " + secondClock}},
		"a runtime that lost its template": {jobSet(job("a", 5)), `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, texts(Clocks(specOf(t, tc.before), specOf(t, tc.after)))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBreaks(t *testing.T) {
	const jobs = "spec.template.spec.replicatedJobs"
	pod := func(name, spec string) string { return entry(name, `{"template":{"spec":`+spec+`}}`) }
	many := func(name string, replicas int, spec string) string {
		return fmt.Sprintf(`{"replicas":%d,`, replicas) + pod(name, spec)[1:]
	}
	const (
		node    = `{"containers":[{"name":"node","image":"old"}],"initContainers":[{"name":"fetch"}]}`
		mounted = `{"containers":[{"name":"dataset-initializer","volumeMounts":[{"name":"other","mountPath":"/a"},{"name":"initializer","mountPath":"/b"}]}]}`
		bare    = `{"containers":[{"name":"dataset-initializer","volumeMounts":[{"name":"other","mountPath":"/a"}]}]}`
	)
	model := func(spec string) string { return strings.ReplaceAll(spec, "dataset-initializer", "model-initializer") }
	initializerMount := func(name string) string {
		return fmt.Sprintf("%s[%s].template.spec.template.spec.containers[%s].volumeMounts[initializer]: Forbidden: cannot be removed", jobs, name, name)
	}
	dataset, ofModel := Needs{Dataset: true}, Needs{Model: true}
	for name, tc := range map[string]struct {
		before, after string
		needs         Needs
		want          []string
	}{
		"nothing changes":              {jobSet(pod("a", node)), jobSet(pod("a", node)), Needs{}, nil},
		"reordered":                    {jobSet(pod("a", node), pod("b", node)), jobSet(pod("b", node), pod("a", node)), Needs{}, nil},
		"a replicatedJob goes":         {jobSet(pod("a", node), pod("b", node)), jobSet(pod("a", node)), Needs{}, []string{jobs + "[b]: Forbidden: cannot be removed or renamed"}},
		"a replicatedJob comes":        {jobSet(pod("a", node)), jobSet(pod("a", node), pod("b", node)), Needs{}, []string{jobs + "[b]: Forbidden: cannot be added"}},
		"a replicatedJob is renamed":   {jobSet(pod("a", node)), jobSet(pod("b", node)), Needs{}, []string{jobs + "[a]: Forbidden: cannot be removed or renamed", jobs + "[b]: Forbidden: cannot be added"}},
		"replicas come":                {jobSet(pod("a", node)), jobSet(many("a", 2, node)), Needs{}, []string{jobs + "[a].replicas: Forbidden: cannot be changed from 1 to 2"}},
		"replicas change":              {jobSet(many("a", 3, node)), jobSet(many("a", 2, node)), Needs{}, []string{jobs + "[a].replicas: Forbidden: cannot be changed from 3 to 2"}},
		"replicas go":                  {jobSet(many("a", 3, node)), jobSet(pod("a", node)), Needs{}, []string{jobs + "[a].replicas: Forbidden: cannot be changed from 3 to 1"}},
		"replicas of 0":                {jobSet(many("a", 0, node)), jobSet(pod("a", node)), Needs{}, []string{jobs + "[a].replicas: Forbidden: cannot be changed from 0 to 1"}},
		"replicas of 1, then none":     {jobSet(many("a", 1, node)), jobSet(pod("a", node)), Needs{}, nil},
		"replicas none, then 1":        {jobSet(pod("a", node)), jobSet(many("a", 1, node)), Needs{}, nil},
		"replicas none, then null":     {jobSet(pod("a", node)), jobSet(`{"replicas":null,` + pod("a", node)[1:]), Needs{}, nil},
		"a container goes":             {jobSet(pod("a", `{"containers":[{"name":"x"},{"name":"y"}]}`)), jobSet(pod("a", `{"containers":[{"name":"x"}]}`)), Needs{}, []string{jobs + "[a].template.spec.template.spec.containers[y]: Forbidden: cannot be removed or renamed"}},
		"a container is renamed":       {jobSet(pod("a", `{"containers":[{"name":"x"}]}`)), jobSet(pod("a", `{"containers":[{"name":"y"}]}`)), Needs{}, []string{jobs + "[a].template.spec.template.spec.containers[x]: Forbidden: cannot be removed or renamed"}},
		"containers are reordered":     {jobSet(pod("a", `{"containers":[{"name":"x"},{"name":"y"}]}`)), jobSet(pod("a", `{"containers":[{"name":"y"},{"name":"x"}]}`)), Needs{}, nil},
		"an initContainer goes":        {jobSet(pod("a", node)), jobSet(pod("a", `{"containers":[{"name":"node"}]}`)), Needs{}, []string{jobs + "[a].template.spec.template.spec.initContainers[fetch]: Forbidden: cannot be removed or renamed"}},
		"an initContainer is renamed":  {jobSet(pod("a", node)), jobSet(pod("a", strings.Replace(node, "fetch", "get", 1))), Needs{}, []string{jobs + "[a].template.spec.template.spec.initContainers[fetch]: Forbidden: cannot be removed or renamed"}},
		"a sidecar comes":              {jobSet(pod("a", node)), jobSet(pod("a", strings.Replace(node, `[{"name":"node"`, `[{"name":"sidecar"},{"name":"node"`, 1))), Needs{Dataset: true, Model: true}, nil},
		"an initContainer comes":       {jobSet(pod("a", node)), jobSet(pod("a", strings.Replace(node, `[{"name":"fetch"`, `[{"name":"more"},{"name":"fetch"`, 1))), Needs{Dataset: true, Model: true}, nil},
		"the first initContainer":      {jobSet(pod("a", `{"containers":[{"name":"node"}]}`)), jobSet(pod("a", node)), Needs{}, nil},
		"the containers become null":   {jobSet(pod("a", `{"containers":[{"name":"x"}]}`)), jobSet(pod("a", `{"containers":null}`)), Needs{}, []string{jobs + "[a].template.spec.template.spec.containers[x]: Forbidden: cannot be removed or renamed"}},
		"the pod template goes":        {jobSet(pod("a", `{"containers":[{"name":"x"}]}`)), jobSet(`{"name":"a","template":{"spec":{}}}`), Needs{}, []string{jobs + "[a].template.spec.template.spec.containers[x]: Forbidden: cannot be removed or renamed"}},
		"the template goes":            {jobSet(pod("a", node), pod("b", node)), `{"template":null}`, Needs{}, []string{jobs + "[a]: Forbidden: cannot be removed or renamed", jobs + "[b]: Forbidden: cannot be removed or renamed"}},
		"the template comes":           {`{}`, jobSet(pod("a", node)), Needs{}, []string{jobs + "[a]: Forbidden: cannot be added"}},
		"entries that are no objects":  {jobSet(`null`), jobSet(`"x"`), Needs{}, nil},
		"the mount of a dataset goes":  {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", bare)), dataset, []string{initializerMount("dataset-initializer")}},
		"and nobody needs it":          {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", bare)), Needs{}, nil},
		"and a model is needed":        {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", bare)), ofModel, nil},
		"the mount of a model goes":    {jobSet(pod("model-initializer", model(mounted))), jobSet(pod("model-initializer", model(bare))), ofModel, []string{initializerMount("model-initializer")}},
		"and a dataset is needed":      {jobSet(pod("model-initializer", model(mounted))), jobSet(pod("model-initializer", model(bare))), dataset, nil},
		"the mount is renamed":         {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", strings.Replace(mounted, `"name":"initializer"`, `"name":"init"`, 1))), dataset, []string{initializerMount("dataset-initializer")}},
		"the mount moves":              {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", strings.Replace(mounted, "/b", "/c", 1))), dataset, nil},
		"another mount goes":           {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", strings.Replace(mounted, `{"name":"other","mountPath":"/a"},`, "", 1))), dataset, nil},
		"all mounts become null":       {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", `{"containers":[{"name":"dataset-initializer","volumeMounts":null}]}`)), dataset, []string{initializerMount("dataset-initializer")}},
		"the mount was not there":      {jobSet(pod("dataset-initializer", bare)), jobSet(pod("dataset-initializer", bare)), dataset, nil},
		"the mount comes":              {jobSet(pod("dataset-initializer", bare)), jobSet(pod("dataset-initializer", mounted)), dataset, nil},
		"the mount of another goes":    {jobSet(pod("node", mounted)), jobSet(pod("node", bare)), dataset, nil},
		"the container with it goes":   {jobSet(pod("dataset-initializer", mounted)), jobSet(pod("dataset-initializer", `{"containers":[]}`)), dataset, []string{jobs + "[dataset-initializer].template.spec.template.spec.containers[dataset-initializer]: Forbidden: cannot be removed or renamed"}},
		"the initializer goes":         {jobSet(pod("dataset-initializer", mounted)), jobSet(), dataset, []string{jobs + "[dataset-initializer]: Forbidden: cannot be removed or renamed"}},
		"both mounts, both are needed": {jobSet(pod("model-initializer", model(mounted)), pod("dataset-initializer", mounted)), jobSet(pod("model-initializer", model(bare)), pod("dataset-initializer", bare)), Needs{Dataset: true, Model: true}, []string{initializerMount("dataset-initializer"), initializerMount("model-initializer")}},
		"all at once": {
			jobSet(pod("a", node), pod("b", node), pod("dataset-initializer", mounted)),
			jobSet(pod("c", node), many("b", 2, `{}`), pod("dataset-initializer", bare)), dataset,
			[]string{
				jobs + "[a]: Forbidden: cannot be removed or renamed",
				jobs + "[b].replicas: Forbidden: cannot be changed from 1 to 2",
				jobs + "[b].template.spec.template.spec.containers[node]: Forbidden: cannot be removed or renamed",
				jobs + "[b].template.spec.template.spec.initContainers[fetch]: Forbidden: cannot be removed or renamed",
				initializerMount("dataset-initializer"),
				jobs + "[c]: Forbidden: cannot be added",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, texts(Breaks(specOf(t, tc.before), specOf(t, tc.after), tc.needs))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	if errs := Breaks(nil, nil, Needs{Dataset: true, Model: true}); len(errs) != 0 {
		t.Errorf("no specs: %v", errs)
	}
}

// Values change nothing that the neighbours look up.
func TestBreaksNothingByValues(t *testing.T) {
	before := specOf(t, `{"mlPolicy":{"numNodes":1,"torch":{}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"replicatedJobs":[{"name":"node","replicas":1,
		"template":{"metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},"spec":{"backoffLimit":0,"template":{"spec":{
		"containers":[{"name":"node","image":"old","args":["a"],"env":[{"name":"A","value":"b"}],"resources":{"limits":{"cpu":"1"}}}]}}}}}]}}}`)
	after := specOf(t, `{"mlPolicy":{"numNodes":4,"mpi":{}},"podGroupPolicy":{"coscheduling":{}},"template":{"metadata":{"labels":{"c":"d"}},"spec":{"failurePolicy":{"maxRestarts":3},
		"network":{"enableDNSHostnames":true},"replicatedJobs":[{"name":"node","replicas":1,"groupName":"g",
		"template":{"metadata":{"labels":{"x":"y"}},"spec":{"backoffLimit":5,"parallelism":2,"completions":2,"template":{"metadata":{"annotations":{"e":"f"}},"spec":{
		"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"key":"t"}],"nodeSelector":{"zone":"a"},"priorityClassName":"high","serviceAccountName":"s","hostNetwork":true,
		"containers":[{"name":"sidecar","image":"s"},{"name":"node","image":"new","command":["c"],"args":["d"],"env":[{"name":"E"}],
		"resources":{"limits":{"cpu":"2","nvidia.com/gpu":"1"}},"volumeMounts":[{"name":"v","mountPath":"/v"}],"securityContext":{"runAsUser":1}}]}}}}}]}}}`)
	if errs := Breaks(before, after, Needs{Dataset: true, Model: true}); len(errs) != 0 {
		t.Errorf("errors %v", errs)
	}
	if errs := Clocks(before, after); len(errs) != 0 {
		t.Errorf("clocks %v", errs)
	}
}

// Whatever comes in: nothing panics, nothing that stays as it is is an error, an update is
// refused for no more than what a creation would be, and neither argument is changed.
func FuzzRules(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, `{"template":{"spec":null}}`, `{"template":{"spec":{"activeDeadlineSeconds":{},"replicatedJobs":[null,5,[],{"name":null}]}}}`,
		jobSet(entry("a", `{"activeDeadlineSeconds":5,"ttlSecondsAfterFinished":"x","template":{"spec":{"activeDeadlineSeconds":[1]}}}`), entry("a", `{"activeDeadlineSeconds":6}`)),
		jobSet(`{"name":"dataset-initializer","replicas":"x","template":{"spec":{"template":{"spec":{"containers":[{"name":"dataset-initializer","volumeMounts":[{"name":"initializer"}]},null]}}}}}`),
		jobSet(`{"name":"a","replicas":1.5,"template":{"spec":{"template":{"spec":{"initContainers":[{"name":5},{"name":"x"}],"containers":{}}}}}}`),
	} {
		f.Add(text, `{}`)
		f.Add(`{}`, text)
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		var before, after map[string]any
		if kjson.Unmarshal([]byte(first), &before) != nil || kjson.Unmarshal([]byte(second), &after) != nil {
			t.Skip()
		}
		whole := map[string]bool{}
		for _, text := range texts(Clocks(nil, after)) {
			whole[text] = true
		}
		for _, text := range texts(Clocks(before, after)) {
			if !whole[text] {
				t.Errorf("an update is refused for %s, a creation not", text)
			}
		}
		needs := Needs{Dataset: true, Model: true}
		_ = Breaks(before, after, needs)
		if errs := Breaks(after, after, needs); len(errs) != 0 {
			t.Errorf("what stays as it is breaks: %v", errs)
		}
		now, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		var again map[string]any
		if err := kjson.Unmarshal([]byte(second), &again); err != nil {
			t.Fatal(err)
		}
		if was, _ := json.Marshal(again); string(was) != string(now) {
			t.Errorf("was %s, is %s", was, now)
		}
	})
}
