package check

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme,
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func fakeOf(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).Build()
}

// sourceOf reads the objects that a client has.
func sourceOf(t *testing.T, c client.Client) *source {
	t.Helper()
	known := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &version.Info{GitVersion: "v1.36.3"}}
	known.Resources = []*metav1.APIResourceList{{
		GroupVersion: "trainer.kubeflow.org/v1alpha1",
		APIResources: []metav1.APIResource{{Name: "trainjobs", Kind: "TrainJob"}, {Name: "trainjobs/status", Kind: "TrainJob"}},
	}}
	return &source{
		Reader: c, Discovery: known, Clock: testingclock.NewFakePassiveClock(now), Namespace: system, Renewal: 2 * betweenLooks,
		Skew: func(context.Context) (time.Duration, error) { return 0, nil },
		Each: func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, _ kubectl.Selectors, again func(), f func(*unstructured.Unstructured) error) (string, error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return "", err
			}
			// What was listed before the list began anew is gone.
			for i := range list.Items {
				gone := list.Items[i].DeepCopy()
				gone.SetName("gone")
				if err := f(gone); err != nil {
					return "", err
				}
			}
			again()
			for i := range list.Items {
				if err := f(&list.Items[i]); err != nil {
					return "", err
				}
			}
			return "", nil
		},
	}
}

// lease was renewed at an instant.
func lease(renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "box", Name: reconcilerName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("one"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: renewed},
	}}
}

// registered is a webhook configuration that calls a Service in the namespace box.
func registered() *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: kubectl.ConfigurationName}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "trainjob.lifecycle.trainer.kubeflow.org", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "box", Name: webhookName}},
	}}}
}

func TestReadFindsTheNamespaceByTheConfigurations(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "box", Name: webhookName}}
	policy := &v1alpha1.LifecyclePolicy{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "box", Labels: map[string]string{"a": "b"}}}
	facts, err := sourceOf(t, fakeOf(t, registered(), deployment, lease(now), policy, namespace)).read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if facts.Namespace != "box" || !facts.Webhook.There() || !facts.Lease.There() || !facts.Reconciler.Missing || facts.Later != nil {
		t.Errorf("got %+v", facts)
	}
	if len(facts.Policies.Value) != 1 || facts.Policies.Value[0].Name != "one" {
		t.Errorf("policies: %+v", facts.Policies)
	}
	if diff := cmp.Diff(map[string]map[string]string{"box": {"a": "b"}}, facts.Namespaces.Value); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"trainer.kubeflow.org/TrainJob": {"v1alpha1"}}, facts.Served.Value); diff != "" {
		t.Error(diff)
	}
}

func TestReadWithoutAnyRight(t *testing.T) {
	c := interceptor.NewClient(fakeOf(t), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{}, key.Name, errors.New("no"))
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
		},
	})
	s := sourceOf(t, c)
	s.Skew = func(context.Context) (time.Duration, error) { return 0, errors.New("no date") }
	facts, err := s.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Item{
		{"clock", Unknown, "the time of the API server is not known: cannot read the date of its answers: no date", ""},
		{"Signalbox", Unknown, "whether it is installed is not known: no right to read MutatingWebhookConfiguration signalbox", ""},
		{"policies", Unknown, "not known: no right to read LifecyclePolicies", ""},
		{"runtimes", Unknown, "ClusterTrainingRuntimes are not known: no right to read ClusterTrainingRuntimes of all namespaces", ""},
		{"runtimes", Unknown, "TrainingRuntimes are not known: no right to read TrainingRuntimes of all namespaces", ""},
	}
	var got []Item
	for _, item := range Judge(facts).Items {
		if item.Level == Unknown {
			got = append(got, item)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadWithoutAnAPIServer(t *testing.T) {
	s := sourceOf(t, fakeOf(t))
	s.Discovery.(*fakediscovery.FakeDiscovery).PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	if _, err := s.read(t.Context()); err == nil || err.Error() != "ask the API server for its version: connection refused" {
		t.Errorf("got %v", err)
	}
}

// A Lease whose time is long ago, but which is renewed, is that of a clock that is behind.
func TestReadLooksTwiceAtALeaseThatIsStale(t *testing.T) {
	for name, renewed := range map[string]bool{"renewed": true, "not renewed": false} {
		t.Run(name, func(t *testing.T) {
			gets := 0
			c := interceptor.NewClient(fakeOf(t, registered(), lease(now.Add(-time.Hour))), interceptor.Funcs{
				Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					err := inner.Get(ctx, key, object, opts...)
					if lease, ok := object.(*coordinationv1.Lease); ok {
						if gets++; gets > 1 && renewed {
							lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-time.Hour + 2*time.Second)}
						}
					}
					return err
				},
			})
			facts, err := sourceOf(t, c).read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := Fault
			if renewed {
				want = Warning
			}
			if got := reconciler(facts); len(got) != 1 || got[0].Level != want {
				t.Errorf("got %+v, want one %s", got, want)
			}
		})
	}
}
