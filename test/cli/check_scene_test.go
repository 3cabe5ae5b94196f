package cli_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const checkNamespace = "signalbox-system"

// checkScene is a cluster that one test has for itself, since it takes away what others need.
type checkScene struct {
	*scene
	root, helmPath, helmHome string
}

// startCheck starts a cluster, which ends with the test.
func startCheck(t *testing.T, options cluster.Options) *checkScene {
	t.Helper()
	s := &checkScene{helmHome: t.TempDir()}
	var err error
	if s.root, err = binaries.Root(); err != nil {
		t.Fatal(err)
	}
	if options.Pods {
		if s.helmPath, err = binaries.HelmPath(t.Context(), s.root, os.Stderr, "helm"); err != nil {
			t.Fatal(err)
		}
	}
	s.scene = sceneOn(t, func() (*cluster.Cluster, error) {
		started.Lock()
		c, err := cluster.Start(t.Context(), options)
		started.Unlock()
		if err == nil {
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		return c, err
	})
	return s
}

// helm runs Helm in the root of the project as an admin of the cluster would.
func (s *checkScene) helm(args ...string) {
	s.Helper()
	cmd := exec.CommandContext(s.ctx, s.helmPath, append(args, "--namespace", checkNamespace)...)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	// Plugins and repositories of whoever runs the tests have no part in them.
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+filepath.Join(s.helmHome, name))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("helm %v: %v\n%s", args, err, out)
	}
}

// apply applies a file of the project as kubectl does.
func (s *checkScene) apply(path string) {
	s.Helper()
	cmd := exec.CommandContext(s.ctx, s.cluster.Kubectl, "apply", "--kubeconfig", s.kubeconfig, "--filename", filepath.Join(s.root, path))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("apply %s: %v\n%s", path, err, out)
	}
}

// upgrade gives the chart these values, and its own for the rest.
func (s *checkScene) upgrade(flags ...string) {
	s.Helper()
	s.helm(append([]string{"upgrade", "signalbox", "charts/signalbox", "--reset-values", "--wait", "--timeout", patience.String()}, flags...)...)
}

// checkVaries is what differs from one run to the next, and what stands for it in the files. All else
// stays, also the gaps between columns.
var checkVaries = []struct {
	found *regexp.Regexp
	text  string
}{
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`), "YYYY-MM-DDThh:mm:ssZ"},
	{regexp.MustCompile(`ssZ \(\w+\)`), "ssZ (AGE)"},
	{regexp.MustCompile(`signalbox-reconciler-\w+-\w+ acts`), "HOLDER acts"},
	{regexp.MustCompile(`Lease \w+ ago`), "Lease AGE ago"},
}

// golden runs `check`, and compares what it says on both outputs with a file. A cluster that comes up may
// still be catching up: it is asked until the answer is that of the file.
func (s *checkScene) golden(name string, wantCode int, flags ...string) {
	s.Helper()
	s.eventually("the answer in "+name, func() (bool, string) {
		out, complaint, code := s.run(append([]string{"check"}, flags...)...)
		got := out + complaint
		for _, v := range checkVaries {
			got = v.found.ReplaceAllString(got, v.text)
		}
		return code == wantCode && s.is(name, got), fmt.Sprintf("exit code %d\n%s", code, got)
	})
}

// is tells whether the text is that of a file; with -update it becomes that.
func (s *scene) is(name, text string) bool {
	s.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		s.must(os.WriteFile(path, []byte(text), 0o644))
		return true
	}
	want, err := os.ReadFile(path)
	s.must(err)
	return text == string(want)
}

// endpoints returns how many pods of the webhook its Service leads to.
func (s *checkScene) endpoints() int {
	s.Helper()
	slices, n := &discoveryv1.EndpointSliceList{}, 0
	s.must(s.cluster.Client.List(s.ctx, slices, client.InNamespace(checkNamespace), client.MatchingLabels{discoveryv1.LabelServiceName: "signalbox-webhook"}))
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				n++
			}
		}
	}
	return n
}

// ended returns a serving certificate as that in the Secret, of the same CA, that has ended.
func (s *checkScene) ended(secret *corev1.Secret) []byte {
	s.Helper()
	ca, err := tls.X509KeyPair(secret.Data["ca.crt"], secret.Data["ca.key"])
	s.must(err)
	serving, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	s.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), DNSNames: serving.Leaf.DNSNames, ExtKeyUsage: serving.Leaf.ExtKeyUsage,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, serving.Leaf.PublicKey, ca.PrivateKey)
	s.must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// child returns the object at the path in an object; nil for none.
func child(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// nowhere is a kubeconfig of a cluster that does not answer.
func nowhere(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["nowhere"] = &clientcmdapi.Cluster{Server: "http://127.0.0.1:1"}
	config.Contexts["nowhere"] = &clientcmdapi.Context{Cluster: "nowhere"}
	config.CurrentContext = "nowhere"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
