package cli_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// readerGroup is the group that the example binds.
const readerGroup = "trainjob-readers"

// elsewhere are the rights that this test's cluster has no use for, since its webhooks are not behind a
// Service: those of check tests use them.
var elsewhere = []string{"discovery.k8s.io/endpointslices list", "/services/proxy get"}

// The role of the example is enough for every command, and has nothing that none of them uses.
func TestCLIReaderRole(t *testing.T) {
	s := newScene(t)
	rights := s.exampleRole()
	s.create("sealed", deadline(28800))
	s.running("sealed")
	s.create("waiting", suspended())
	s.queue("queue", 1)
	s.create("queued", queued("queue"))
	s.running("queued")
	const manifest = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: %s, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: node, image: example.com/trainer:1, env: [{name: BALLAST, value: "%s"}]}]}}}}
`
	s.apply(fmt.Sprintf(manifest, "own", ""))
	s.create("own", onRuntime(trainer.TrainingRuntimeKind, "own"))
	s.running("own")
	// Text that cannot be compressed is too large to be sealed.
	var ballast strings.Builder
	for ballast.Len() < 2*snapshot.MaxCompressed {
		ballast.WriteString(rand.Text())
	}
	s.apply(fmt.Sprintf(manifest, "large", ballast.String()))
	s.create("unsealed", onRuntime(trainer.TrainingRuntimeKind, "large"))
	s.running("unsealed")
	s.create("never-ready", set(map[string]any{"requests": map[string]any{"cpu": "1000"}}, "spec", "trainer", "resourcesPerNode"))
	s.eventually("a pod of never-ready", func() (bool, string) { return len(s.pods("never-ready")) > 0, "none" })

	user, asked := s.recorded(readerGroup)
	for _, args := range [][]string{
		{"list"}, {"list", "--all-namespaces"}, {"list", "-o", "json"},
		{"explain", "sealed"}, {"explain", "waiting"}, {"explain", "queued"}, {"explain", "own"},
		{"explain", "unsealed"}, {"explain", "never-ready"},
		{"diff", "sealed"}, {"diff", "own"}, {"diff", "unsealed"},
		{"diff", "torch-distributed", "--jobs"}, {"diff", "own", "--jobs"}, {"diff", "torch-distributed", "--jobs", "-A"},
		{"check"},
		{"__complete", "explain", ""}, {"__complete", "diff", "--jobs", ""},
	} {
		out, errOut, _ := user.run(args...)
		for _, text := range []string{"no right", "forbidden"} {
			if strings.Contains(out+errOut, text) {
				t.Errorf("%s: %q in\n%s%s", strings.Join(args, " "), text, out, errOut)
			}
		}
		if out == "" && args[0] != "diff" {
			t.Errorf("%s: no answer, but %s", strings.Join(args, " "), errOut)
		}
	}
	p := user.start("list", "--watch")
	p.prints("sealed")
	s.eventually("watches", func() (bool, string) {
		seen := asked()
		return slices.Contains(seen, "kueue.x-k8s.io/workloads watch") && slices.Contains(seen, "trainer.kubeflow.org/trainingruntimes watch") &&
			slices.Contains(seen, "trainer.kubeflow.org/clustertrainingruntimes watch") && slices.Contains(seen, "jobset.x-k8s.io/jobsets watch"), strings.Join(seen, "\n")
	})
	if code := p.stop(); code != 0 || strings.Contains(p.errOut.String(), "no right") {
		t.Errorf("list --watch: exit code %d\n%s", code, p.errOut.String())
	}
	unused := slices.DeleteFunc(rights, func(right string) bool { return slices.Contains(asked(), right) || slices.Contains(elsewhere, right) })
	if len(unused) > 0 {
		t.Errorf("rights that nothing uses: %q\nrequests:\n%s", unused, strings.Join(asked(), "\n"))
	}
}

// exampleRole installs the example, and returns what it allows as GROUP/RESOURCE VERB.
func (s *scene) exampleRole() []string {
	s.Helper()
	data, err := os.ReadFile("../../examples/plugin-reader.yaml")
	s.must(err)
	var rights []string
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		s.must(err)
		s.must(s.cluster.Client.Create(s.ctx, object))
		s.Cleanup(func() { _ = s.cluster.Client.Delete(context.Background(), object) })
		var role rbacv1.ClusterRole
		s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, rule.APIGroups[0]+"/"+resource+" "+verb)
				}
			}
		}
	}
	if len(rights) == 0 {
		s.Fatal("the example has no rules")
	}
	return rights
}

// recorded returns the scene with a user of this group, whose requests are recorded, and what they were so
// far, as GROUP/RESOURCE VERB.
func (s *scene) recorded(group string) (*scene, func() []string) {
	s.Helper()
	var mu sync.Mutex
	var asked []string
	target, err := url.Parse(s.cluster.Config.Host)
	s.must(err)
	config := s.cluster.ConfigFor("recorded", group)
	transport, err := rest.TransportFor(config)
	s.must(err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
			mu.Lock()
			defer mu.Unlock()
			if right := request(r.In); right != "" && !slices.Contains(asked, right) {
				asked = append(asked, right)
			}
		},
		Transport:     transport,
		FlushInterval: -1,
	}
	server := httptest.NewServer(proxy)
	s.Cleanup(server.Close)
	written := clientcmdapi.NewConfig()
	written.Clusters["cluster"] = &clientcmdapi.Cluster{Server: server.URL}
	written.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster"}
	written.CurrentContext = "cluster"
	user, _ := s.user()
	s.must(clientcmd.WriteToFile(*written, user.kubeconfig))
	return user, func() []string {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(asked)
		return slices.Clone(asked)
	}
}

// request tells the right that a request needs as GROUP/RESOURCE VERB, "" for discovery.
func request(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	default:
		return ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource, verb := parts[0], "list"
	switch {
	case len(parts) > 2:
		resource, verb = resource+"/"+parts[2], "get"
	case len(parts) > 1:
		verb = "get"
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		verb = "watch"
	}
	if r.Method != http.MethodGet {
		verb = strings.ToLower(r.Method)
	}
	return fmt.Sprintf("%s/%s %s", group, resource, verb)
}
