package install_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// The whole life of a release: the former version, the present one and back under load, removed,
// and installed anew as the present one.
func TestInstallLife(t *testing.T) {
	for _, helm := range []string{helm4, helm3} {
		t.Run(helm, func(t *testing.T) {
			s := newScene(t, helm)
			s.install(formerChart)
			s.accepted()
			s.works("former")
			policy := s.policy()
			s.moves()
			s.create("sealed")
			s.runs("sealed", true)
			filed := s.snapshot("sealed")
			s.create("waiting", suspended())
			s.helm("uninstall", release)
			s.left()
			s.stock()

			s.create("overdue", deadline(time.Second))
			s.create("adopted")
			s.runs("overdue", true)
			s.runs("adopted", true)
			s.install(chart)
			s.becomes("overdue", "Failed", "DeadlineExceeded")
			s.runs("overdue", false)
			s.snapshot("adopted")
			s.runs("adopted", true)
			if got := s.snapshot("sealed"); got != filed {
				t.Errorf("the snapshot of before has the UID %s, want %s", got, filed)
			}
			if got := s.policy(); got != policy {
				t.Errorf("the LifecyclePolicy of before has the UID %s, want %s", got, policy)
			}
			s.works("again")
			s.helm("uninstall", release)
			s.left()
		})
	}
}

// works checks that Signalbox stamps a new TrainJob, seals it, files its snapshot and ends it at
// its deadline.
func (s *scene) works(name string) {
	s.Helper()
	const limit = time.Second
	job := s.create(name, deadline(limit))
	if job.Annotations[v1alpha1.AnnotationRuntimeSnapshot] == "" {
		s.Errorf("TrainJob %s is not sealed", name)
	}
	s.snapshot(name)
	s.failsAt(name, s.start(job).Add(limit))
}

// moves takes the release from the former version to the present one and back, while TrainJobs
// are created and one runs towards its deadline.
func (s *scene) moves() {
	s.Helper()
	const limit = 30 * time.Second
	running := s.create("running", deadline(limit))
	s.runs("running", true)
	l := s.load()
	at := s.kept()

	s.upgrade(chart)
	s.is(present(s.T))
	s.accepted()
	s.works("present")
	for range 2 {
		s.stays("an upgrade to the same chart", s.kept(), func() { s.upgrade(chart) })
	}
	s.helm("rollback", release, "1", "--wait", "--timeout", patience.String())
	s.is("0.1.0")
	l.more(s, 20)
	l.end(s, 100)

	now := s.kept()
	at.Pods, now.Pods = nil, nil // each version has its own
	if diff := gocmp.Diff(at, now); diff != "" {
		s.Errorf("the certificate did not stay (-before +now):\n%s", diff)
	}
	s.failsAt("running", s.start(running).Add(limit))
}

// present is the version of the present chart.
func present(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, "version: "); ok {
			return strings.TrimSpace(version)
		}
	}
	t.Fatal("the chart has no version")
	return ""
}

// accepted checks that the API server has each object of the release.
func (s *scene) accepted() {
	s.Helper()
	kinds := map[string]bool{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(s.helm("get", "manifest", release)), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		s.must(err)
		if len(o.Object) == 0 {
			continue
		}
		kinds[o.GetKind()] = true
		if err := shared.Client.Get(s.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			s.Errorf("%s %s of the release: %v", o.GetKind(), o.GetName(), err)
		}
	}
	for _, kind := range []string{"CustomResourceDefinition", "Deployment", "MutatingWebhookConfiguration", "Secret", "Service"} {
		if !kinds[kind] {
			s.Errorf("the release has no %s", kind)
		}
	}
}

// is checks that what is installed, the CRDs too, and the pods that run are of that version.
func (s *scene) is(version string) {
	s.Helper()
	const label = "app.kubernetes.io/version"
	for _, name := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		s.must(shared.Client.Get(s.ctx, client.ObjectKey{Name: name}, crd))
		if got := crd.Labels[label]; got != version {
			s.Errorf("CRD %s is of version %s, want %s", name, got, version)
		}
	}
	for _, component := range []string{"webhook", "reconciler"} {
		deployment := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: systemNamespace, Name: "signalbox-" + component}
		s.must(shared.Client.Get(s.ctx, key, deployment))
		if image := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+version) {
			s.Errorf("Deployment %s has the image %s, want version %s", key.Name, image, version)
		}
		status := deployment.Status
		if status.UpdatedReplicas != 2 || status.ReadyReplicas != 2 {
			s.Errorf("Helm returned before the rollout of %s was done: %+v", key.Name, status)
		}
	}
}

// state is what an upgrade must leave alone.
type state struct {
	Certificate map[string][]byte
	Bundles     map[string][]byte
	Pods        []string
}

func (s *scene) kept() state {
	s.Helper()
	kept := state{Certificate: s.secret().Data, Bundles: s.bundles()}
	for _, component := range []string{"webhook", "reconciler"} {
		for _, pod := range shared.Pods(component) {
			kept.Pods = append(kept.Pods, pod.Name)
		}
	}
	return kept
}

// stays checks that something changes nothing of it.
func (s *scene) stays(what string, before state, do func()) {
	s.Helper()
	do()
	if diff := gocmp.Diff(before, s.kept()); diff != "" {
		s.Errorf("%s changes (-before +after):\n%s", what, diff)
	}
}

// policy returns the UID of a LifecyclePolicy that is about nothing, and makes it if it is not
// there.
func (s *scene) policy() types.UID {
	s.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"about": "nothing"}},
		"activeDeadline":    map[string]any{"max": "1h"},
	}}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LifecyclePolicy"))
	o.SetName("nothing")
	if shared.Client.Get(s.ctx, client.ObjectKeyFromObject(o), o) != nil {
		s.must(shared.Client.Create(s.ctx, o))
	}
	return o.GetUID()
}

// left checks that an uninstall leaves what the documentation says and no more.
func (s *scene) left() {
	s.Helper()
	want := []string{
		"CustomResourceDefinition lifecyclepolicies.lifecycle.trainer.kubeflow.org",
		"CustomResourceDefinition trainingruntimesnapshots.lifecycle.trainer.kubeflow.org",
		"Lease signalbox-reconciler",
		"Namespace signalbox-system",
		"ServiceAccount default", // of every namespace
	}
	s.eventually("the end of what Helm installed", func() (bool, string) {
		diff := gocmp.Diff(want, s.found())
		return diff == "", diff
	})
}

// found lists what is in Signalbox's namespace or bears its name, but events.
func (s *scene) found() []string {
	s.Helper()
	config := rest.CopyConfig(shared.Config)
	config.WarningHandler = rest.NoWarnings{} // some kinds are deprecated
	d, err := discovery.NewDiscoveryClientForConfig(config)
	s.must(err)
	reader, err := metadata.NewForConfig(config)
	s.must(err)
	lists, err := d.ServerPreferredResources()
	s.must(err)
	var found []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		s.must(err)
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Event" {
				continue
			}
			objects, err := reader.Resource(version.WithResource(resource.Name)).List(s.ctx, metav1.ListOptions{})
			s.must(err)
			for _, o := range objects.Items {
				ours := strings.Contains(o.Name, "signalbox") || o.Labels["app.kubernetes.io/name"] == "signalbox"
				if ours || o.Namespace == systemNamespace {
					found = append(found, resource.Kind+" "+o.Name)
				}
			}
		}
	}
	slices.SortFunc(found, cmp.Compare[string])
	return found
}

// stock checks that TrainJobs, of before and new ones, do without Signalbox what they do on stock.
func (s *scene) stock() {
	s.Helper()
	job := s.create("new")
	for key := range job.Annotations {
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group) {
			s.Errorf("without Signalbox a new TrainJob has the annotation %s", key)
		}
	}
	for _, name := range []string{"sealed", "new"} {
		s.runs(name, true)
		s.setSuspend(name, true)
	}
	for _, name := range []string{"sealed", "new"} {
		s.runs(name, false)
		s.setSuspend(name, false)
	}
	s.setSuspend("waiting", false)
	s.complete("sealed")
	s.complete("new")
	s.runs("waiting", true)
	for _, name := range []string{"waiting", "new"} {
		s.must(shared.Client.Delete(s.ctx, s.trainJob(name)))
		s.disappears("TrainJob "+name, s.trainJob(name))
		s.runs(name, false)
	}
}

// A certificate that the admin brings: in a Secret that the pods mount, the CA by value.
func TestInstallOwnCertificate(t *testing.T) {
	s := newScene(t, helm3)
	own := s.ownCertificate("own")
	s.install(chart, "--set", "certificates.existingSecret=own", "--set", "certificates.caBundle="+own.bundle)
	s.works("job")
	for _, pod := range shared.Pods("webhook") {
		if !bytes.Equal(served(t, pod).Raw, own.certificate) {
			t.Errorf("pod %s serves another certificate than that of the Secret", pod.Name)
		}
	}
	if found := s.found(); slices.Contains(found, "Secret signalbox-webhook-cert") {
		t.Error("there is a Secret for a self-managed certificate")
	}
}
