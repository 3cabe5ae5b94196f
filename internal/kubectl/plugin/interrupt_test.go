package plugin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Whatever a command reads when it is interrupted, it gives no answer.
func TestAnInterruptedCommandHasNoAnswer(t *testing.T) {
	kinds := map[string]string{
		"/version": `{"gitVersion": "v1.36.3"}`,
		"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "trainer.kubeflow.org",
			"versions": [{"groupVersion": "trainer.kubeflow.org/v1alpha1", "version": "v1alpha1"}],
			"preferredVersion": {"groupVersion": "trainer.kubeflow.org/v1alpha1", "version": "v1alpha1"}}]}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
		"/apis/trainer.kubeflow.org/v1alpha1": `{"kind": "APIResourceList", "groupVersion": "trainer.kubeflow.org/v1alpha1", "resources": [
			{"name": "trainjobs", "kind": "TrainJob", "namespaced": true},
			{"name": "trainingruntimes", "kind": "TrainingRuntime", "namespaced": true},
			{"name": "clustertrainingruntimes", "kind": "ClusterTrainingRuntime"}]}`,
	}
	const job = `{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": {"namespace": "default", "name": "a", "uid": "a"}, "spec": {"runtimeRef": {"name": "torch"}}}`
	jobs := "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
	for name, tc := range map[string]struct {
		args []string
		// answers are those beside the kinds; any other request hangs until the interrupt.
		answers map[string]string
	}{
		"list, at the TrainJobs":    {args: []string{"list"}},
		"list, beside them":         {args: []string{"list"}, answers: map[string]string{jobs: `{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJobList", "metadata": {}, "items": [` + job + `]}`}},
		"explain, at the TrainJob":  {args: []string{"explain", "a"}},
		"explain, beside it":        {args: []string{"explain", "a"}, answers: map[string]string{jobs + "/a": job}},
		"diff, at the TrainJob":     {args: []string{"diff", "a"}},
		"diff, beside it":           {args: []string{"diff", "a"}, answers: map[string]string{jobs + "/a": job}},
		"diff --jobs":               {args: []string{"diff", "torch", "--jobs"}},
		"check":                     {args: []string{"check"}},
		"list --watch, at the list": {args: []string{"list", "--watch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, found := kinds[r.URL.Path]
				if !found {
					answer, found = tc.answers[r.URL.Path]
				}
				if !found {
					interrupt()
					<-r.Context().Done()
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
			defer server.Close()
			var out, errOut bytes.Buffer
			args := append(slices.Clone(tc.args), "--server", server.URL, "--kubeconfig", "/dev/null", "--namespace", "default", "--cache-dir", t.TempDir())
			code := Run(ctx, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
			if code != 130 || out.Len() > 0 || errOut.Len() > 0 {
				t.Errorf("exit code %d, standard output %q, standard error %q", code, out.String(), errOut.String())
			}
		})
	}
}
