package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const dnsName = "signalbox-webhook.signalbox-system.svc"

var (
	secretKey = types.NamespacedName{Namespace: "signalbox-system", Name: "signalbox-webhook-cert"}
	now       = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
)

func newKeeper(t *testing.T, objects ...client.Object) (*Keeper, *clocktesting.FakePassiveClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakePassiveClock(now)
	return &Keeper{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		Clock:  clock, Secret: secretKey, Configuration: "signalbox", DNSName: dnsName,
	}, clock
}

func emptySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}}
}

func mutating() client.Object {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "signalbox"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "a.example.com"}, {Name: "b.example.com"}},
	}
}

func validating() client.Object {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "signalbox"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "c.example.com"}, {Name: "d.example.com"}},
	}
}

func (k *Keeper) reconcile() (reconcile.Result, error) {
	return k.Reconcile(context.Background(), reconcile.Request{NamespacedName: k.Secret})
}

func (k *Keeper) data(t *testing.T) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := k.Client.Get(context.Background(), k.Secret, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// trusted fails unless the served certificate is one that the API server takes at that time,
// going by the CA in each webhook of the configuration.
func (k *Keeper) trusted(t *testing.T, at time.Time) {
	t.Helper()
	pair, err := k.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Name: "signalbox"}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := errors.Join(k.Client.Get(context.Background(), key, mutating), k.Client.Get(context.Background(), key, validating)); err != nil {
		t.Fatal(err)
	}
	bundles := map[string][]byte{}
	for _, webhook := range mutating.Webhooks {
		bundles[webhook.Name] = webhook.ClientConfig.CABundle
	}
	for _, webhook := range validating.Webhooks {
		bundles[webhook.Name] = webhook.ClientConfig.CABundle
	}
	if len(bundles) != 4 {
		t.Fatalf("%d webhooks, want 4", len(bundles))
	}
	for name, bundle := range bundles {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle) {
			t.Fatalf("webhook %s has no CA", name)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: dnsName, Roots: roots, CurrentTime: at}); err != nil {
			t.Errorf("webhook %s: %v", name, err)
		}
	}
}

func TestKeeperStartsFromAnEmptySecret(t *testing.T) {
	k, clock := newKeeper(t, emptySecret(), mutating(), validating())
	if _, err := k.GetCertificate(&tls.ClientHelloInfo{}); err == nil {
		t.Error("serves before there is a certificate")
	}
	if err := k.Check(nil); err == nil {
		t.Error("ready before there is a certificate")
	}
	result, err := k.reconcile()
	if err != nil || result.RequeueAfter != checkEvery {
		t.Fatalf("Reconcile = %v, %v; want to look again after %v", result, err, checkEvery)
	}
	k.trusted(t, now)
	if err := k.Check(nil); err != nil {
		t.Errorf("not ready: %v", err)
	}
	first := k.data(t)
	if _, err := k.reconcile(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, k.data(t)); diff != "" {
		t.Errorf("a second look changed the Secret (-first +second):\n%s", diff)
	}
	clock.SetTime(now.Add(servingLife))
	if err := k.Check(nil); err == nil {
		t.Error("ready with a certificate that has ended")
	}
}

// Two replicas see the same empty Secret; both end with what one of them wrote.
func TestKeepersAgree(t *testing.T) {
	one, _ := newKeeper(t, emptySecret(), mutating(), validating())
	stale := emptySecret()
	if err := one.Client.Get(context.Background(), secretKey, stale); err != nil {
		t.Fatal(err)
	}
	two, _ := newKeeper(t)
	two.Client = one.Client
	if _, err := one.reconcile(); err != nil {
		t.Fatal(err)
	}
	var err error
	if stale.Data, _, err = rotate(stale.Data, state{}, dnsName, now); err != nil {
		t.Fatal(err)
	}
	if err := two.Client.Update(context.Background(), stale); !apierrors.IsConflict(err) {
		t.Fatalf("the second write: %v, want a conflict", err)
	}
	if _, err := two.reconcile(); err != nil {
		t.Fatal(err)
	}
	one.trusted(t, now)
	two.trusted(t, now)
}

func TestKeeperWaitsForWhatIsMissing(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"no Secret":                   {mutating(), validating()},
		"no mutating configuration":   {emptySecret(), validating()},
		"no validating configuration": {emptySecret(), mutating()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, _ := newKeeper(t, objects...)
			if _, err := k.reconcile(); !apierrors.IsNotFound(err) {
				t.Errorf("error = %v, want NotFound, to be tried again", err)
			}
			if err := k.Check(nil); err == nil {
				t.Error("ready all the same")
			}
		})
	}
}
