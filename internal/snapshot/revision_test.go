package snapshot

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
)

// parse reads JSON as the API machinery does.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

// pod wraps a pod spec into the spec of a runtime.
func pod(spec string) string {
	return `{"template":{"spec":{"replicatedJobs":[{"name":"node","template":{"spec":{"template":{"spec":` + spec + `}}}}]}}}`
}

// What changes nothing that runs has no revision of its own.
func TestRevisionOfEqualContent(t *testing.T) {
	for name, tc := range map[string]struct{ a, b string }{
		"key order":              {`{"a":{"x":1,"y":2},"b":3}`, `{"b":3,"a":{"y":2,"x":1}}`},
		"nulls":                  {`{"mlPolicy":{"torch":{}}}`, `{"mlPolicy":{"torch":{"numProcPerNode":null},"jax":null},"podGroupPolicy":null}`},
		"white space and number": {`{"a": 1 , "b":1.5}`, `{"a":1,"b":15e-1}`},
		"the revision itself": {`{"template":{"metadata":{"annotations":{"x":"y"}}}}`,
			`{"template":{"metadata":{"annotations":{"x":"y","lifecycle.trainer.kubeflow.org/runtime-revision":"0123456789abcdef"}}}}`},
		"the revision as the only metadata": {`{"template":{"spec":{"a":1}}}`,
			`{"template":{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"0123456789abcdef"}},"spec":{"a":1}}}`},
		"creationTimestamp of a template": {pod(`{"containers":[{"name":"n"}]}`),
			`{"template":{"metadata":{"creationTimestamp":null},"spec":{"replicatedJobs":[{"name":"node","template":{"metadata":{"creationTimestamp":null},"spec":{"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"n"}]}}}}}]}}}`},
		"resources of a container":     {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n","resources":{}}]}`)},
		"empty limits of a container":  {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n","resources":{"limits":{},"requests":null}}]}`)},
		"quantities":                   {pod(`{"containers":[{"name":"n","resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}}}]}`), pod(`{"containers":[{"name":"n","resources":{"limits":{"cpu":1,"memory":"1024Mi"},"requests":{"cpu":0.5}}}]}`)},
		"a quantity elsewhere":         {pod(`{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]}`), pod(`{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1024Mi"}}]}`)},
		"the divisor of a resource":    {pod(`{"containers":[{"env":[{"valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}]}]}`), pod(`{"containers":[{"env":[{"valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}}]}]}`)},
		"empty lists":                  {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n","args":[],"env":[]}],"initContainers":[]}`)},
		"false where there is no null": {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n","tty":false,"volumeMounts":[]}],"hostNetwork":false}`)},
		"an empty value of a variable": {pod(`{"containers":[{"env":[{"name":"x"}]}]}`), pod(`{"containers":[{"env":[{"name":"x","value":""}]}]}`)},
		"a volume claim":               {`{"template":{"spec":{"volumeClaimPolicies":[{"templates":[{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"]}}]}]}}}`, `{"template":{"spec":{"volumeClaimPolicies":[{"templates":[{"metadata":{"name":"v","creationTimestamp":null},"spec":{"accessModes":["ReadWriteOnce"],"resources":{}},"status":{}}]}]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := Revision(parse(t, tc.a)), Revision(parse(t, tc.b))
			if a != b {
				t.Errorf("%s of %s\n%s of %s", a, tc.a, b, tc.b)
			}
		})
	}
}

// What Trainer acts on has one, and so has every field that nobody here knows.
func TestRevisionOfOtherContent(t *testing.T) {
	for name, tc := range map[string]struct{ a, b string }{
		"an image":                            {pod(`{"containers":[{"name":"n","image":"a"}]}`), pod(`{"containers":[{"name":"n","image":"b"}]}`)},
		"torch":                               {`{"mlPolicy":{"numNodes":1}}`, `{"mlPolicy":{"numNodes":1,"torch":{}}}`},
		"an empty policy":                     {`{}`, `{"mlPolicy":{}}`},
		"a policy's empty list":               {`{"mlPolicy":{"future":{}}}`, `{"mlPolicy":{"future":{"list":[]}}}`},
		"a policy's metadata":                 {`{"mlPolicy":{"future":{}}}`, `{"mlPolicy":{"future":{"metadata":{}}}}`},
		"coscheduling":                        {`{"podGroupPolicy":{}}`, `{"podGroupPolicy":{"coscheduling":{}}}`},
		"emptyDir":                            {pod(`{"volumes":[{"name":"v"}]}`), pod(`{"volumes":[{"name":"v","emptyDir":{}}]}`)},
		"security context":                    {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n","securityContext":{}}]}`)},
		"resources of the pod":                {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n"}],"resources":{}}`)},
		"no token":                            {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n"}],"automountServiceAccountToken":false}`)},
		"a number of 0":                       {`{"template":{"spec":{"replicatedJobs":[{"template":{"spec":{}}}]}}}`, `{"template":{"spec":{"replicatedJobs":[{"template":{"spec":{"parallelism":0}}}]}}}`},
		"an empty storage class":              {`{"template":{"spec":{"x":{"spec":{"a":1}}}}}`, `{"template":{"spec":{"x":{"spec":{"a":1,"storageClassName":""}}}}}`},
		"a network":                           {`{"template":{"spec":{"a":1}}}`, `{"template":{"spec":{"a":1,"network":{}}}}`},
		"the order of a list":                 {pod(`{"containers":[{"name":"a"},{"name":"b"}]}`), pod(`{"containers":[{"name":"b"},{"name":"a"}]}`)},
		"a quantity":                          {pod(`{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}`), pod(`{"containers":[{"resources":{"limits":{"cpu":"2"}}}]}`)},
		"a limit of 0":                        {pod(`{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}`), pod(`{"containers":[{"resources":{"limits":{"cpu":"1","nvidia.com/gpu":"0"}}}]}`)},
		"a field of the future":               {pod(`{"containers":[{"name":"n"}]}`), pod(`{"containers":[{"name":"n","future":{}}]}`)},
		"an annotation":                       {`{"template":{"metadata":{"annotations":{"x":"y"}}}}`, `{"template":{"metadata":{"annotations":{"x":"z"}}}}`},
		"text that looks like HTML":           {pod(`{"containers":[{"args":["<"]}]}`), pod(`{"containers":[{"args":["\\u003c"]}]}`)},
		"an annotation of a pod that is ours": {`{"template":{"spec":{"metadata":{"annotations":{"a":"b"}}}}}`, `{"template":{"spec":{"metadata":{"annotations":{"a":"b","lifecycle.trainer.kubeflow.org/runtime-revision":"0123456789abcdef"}}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := Revision(parse(t, tc.a)), Revision(parse(t, tc.b)); a == b {
				t.Errorf("%s of both\n%s\n%s", a, tc.a, tc.b)
			}
		})
	}
}

// A revision is stored for years: how it is made must not change.
func TestRevisionIsFixed(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "44136fa355b3678a",
		`{"mlPolicy":{"numNodes":2,"torch":{"numProcPerNode":"auto"}},"template":{"metadata":{"labels":{"a<b":"ü"}},"spec":{"x":[1,2.5,true,null,{}]}}}`: "b67f0d2ed4827472",
	} {
		if got := Revision(parse(t, text)); got != want {
			t.Errorf("revision of %s = %s, want %s", text, got, want)
		}
	}
}

// Neither content nor template is changed by being looked at.
func TestRevisionChangesNothing(t *testing.T) {
	const text = `{"template":{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"x"}},"spec":{"a":null,"b":[],"resources":{}}}}`
	spec := parse(t, text)
	Revision(spec)
	if got, want := string(encode(spec)), string(encode(parse(t, text))); got != want {
		t.Errorf("became %s", got)
	}
}
