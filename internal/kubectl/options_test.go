package kubectl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestResolve(t *testing.T) {
	for name, tc := range map[string]struct {
		change            func(*Options)
		formats           []string
		output, namespace string
		err               string
	}{
		"nothing":             {namespace: "team-a"},
		"of all namespaces":   {change: func(o *Options) { o.AllNamespaces = true }},
		"a table":             {change: func(o *Options) { o.Output = "table" }, namespace: "team-a"},
		"a format":            {change: func(o *Options) { o.Output = "json" }, formats: []string{"wide", "json"}, output: "json", namespace: "team-a"},
		"another format":      {change: func(o *Options) { o.Output = "xml" }, formats: []string{"wide", "json"}, err: `--output must be one of table, wide, json, not "xml"`},
		"none but the table":  {change: func(o *Options) { o.Output = "name" }, err: `--output must be one of table, not "name"`},
		"chunks below nought": {change: func(o *Options) { o.ChunkSize = -1 }, err: "--chunk-size must be 0 or more, not -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newAPIServer(t).options(t)
			if tc.change != nil {
				tc.change(o)
			}
			err := o.Resolve(tc.formats...)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || o.Output != tc.output || o.Namespace != tc.namespace {
				t.Errorf("output %q, namespace %q, error %v", o.Output, o.Namespace, err)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	runtimes := func(names ...string) metav1.PartialObjectMetadataList {
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for _, name := range names {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			})
		}
		return list
	}
	forbid := false
	s := newAPIServer(t)
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			t.Errorf("asks for more than names: %s", r.Header.Get("Accept"))
		}
		const group = "/apis/trainer.kubeflow.org/v1alpha1"
		switch path := r.URL.Path; {
		case forbid:
			fail(w, 403, metav1.StatusReasonForbidden)
		case path == "/api/v1/namespaces":
			write(w, runtimes("team-a", "team-b", "kube-system"))
		case path == group+"/clustertrainingruntimes":
			write(w, runtimes("torch", "torch-distributed", "jax"))
		case path == group+"/namespaces/team-a/trainingruntimes":
			write(w, runtimes("torch", "torch-mine"))
		case path == group+"/namespaces/team-a/trainjobs" && r.URL.Query().Get("continue") == "":
			list := runtimes("job-2", "other")
			list.Continue = "more"
			write(w, list)
		case path == group+"/namespaces/team-a/trainjobs":
			write(w, runtimes("job-1"))
		default:
			return false
		}
		return true
	}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	o := s.options(t)
	for name, tc := range map[string]struct {
		complete func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)
		args     []string
		start    string
		want     []string
	}{
		"TrainJobs, of all pages": {complete: o.CompleteJobs, want: []string{"job-1", "job-2", "other"}},
		"that begin so":           {complete: o.CompleteJobs, start: "job", want: []string{"job-1", "job-2"}},
		"with the type":           {complete: o.CompleteJobs, start: "trainjob/o", want: []string{"trainjob/other"}},
		"only one":                {complete: o.CompleteJobs, args: []string{"job-1"}},
		"runtimes of both kinds":  {complete: o.CompleteRuntimes, start: "t", want: []string{"torch", "torch-distributed", "torch-mine"}},
		"of the cluster":          {complete: o.CompleteRuntimes, start: "clustertrainingruntime/t", want: []string{"clustertrainingruntime/torch", "clustertrainingruntime/torch-distributed"}},
		"of the namespace":        {complete: o.CompleteRuntimes, start: "trainingruntimes/", want: []string{"trainingruntimes/torch", "trainingruntimes/torch-mine"}},
		"of no such kind":         {complete: o.CompleteRuntimes, start: "pods/t"},
		"one runtime":             {complete: o.CompleteRuntimes, args: []string{"torch"}},
		"namespaces":              {complete: o.CompleteNamespaces, start: "team", want: []string{"team-a", "team-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, directive := tc.complete(cmd, tc.args, tc.start)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if directive != cobra.ShellCompDirectiveNoFileComp {
				t.Errorf("directive %d", directive)
			}
		})
	}
	forbid = true
	if got, _ := o.CompleteJobs(cmd, nil, ""); len(got) > 0 {
		t.Errorf("without the right: %q", got)
	}
	s.Close()
	if got, _ := o.CompleteJobs(cmd, nil, ""); len(got) > 0 {
		t.Errorf("without an API server: %q", got)
	}
}

func TestReaderOfNoAPIServer(t *testing.T) {
	o := newAPIServer(t).options(t)
	o.Config.APIServer = nil
	bad := "/dev/null/kubeconfig"
	o.Config.KubeConfig = &bad
	if _, err := o.Reader(); err == nil {
		t.Error(fmt.Errorf("a reader of %s", bad))
	}
}
