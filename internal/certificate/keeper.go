// Package certificate keeps the serving certificate of the webhooks: a Secret with a CA of
// its own and a serving certificate signed by it, and the CA in the webhook configurations.
package certificate

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The life of the certificates. The CA outlives many serving certificates: replacing those
// asks nothing of the API server, which knows the CA.
const (
	caLife      = 10 * 365 * 24 * time.Hour
	servingLife = 90 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
	// backdate allows for clocks that run behind ours.
	backdate = time.Hour
	// checkEvery is how often the ends are looked at.
	checkEvery = 12 * time.Hour
)

// Keys of the Secret.
const (
	keyCA         = "ca.crt"
	keyCAKey      = "ca.key"
	keyServing    = corev1.TLSCertKey
	keyServingKey = corev1.TLSPrivateKeyKey
)

const caName = "signalbox-ca"

// Keeper makes, renews and serves the certificate. Every replica runs one: the Secret is
// written under its resourceVersion, so one of them wins and the others take what it wrote.
// The certificate is taken from the Secret itself, not from files that the kubelet projects
// up to a minute later.
type Keeper struct {
	// Client reads the Secret and the configurations from the cache and writes them.
	Client client.Client
	Clock  clock.PassiveClock
	// Secret must exist; its data may be empty.
	Secret types.NamespacedName
	// Configuration is the name of the MutatingWebhookConfiguration and of the
	// ValidatingWebhookConfiguration.
	Configuration string
	// DNSName is the name by which the API server calls the webhooks: SERVICE.NAMESPACE.svc.
	DNSName string

	serving  atomic.Pointer[tls.Certificate]
	injected atomic.Bool
}

// SetupWithManager adds the keeper to the manager.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager) error {
	toSecret := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: k.Secret}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificate").
		For(&corev1.Secret{}).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, toSecret).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, toSecret).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(k)
}

// Reconcile brings Secret, served certificate and webhook configuration in line.
func (k *Keeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.NamespacedName != k.Secret {
		return reconcile.Result{}, nil
	}
	secret := &corev1.Secret{}
	if err := k.Client.Get(ctx, k.Secret, secret); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the certificate's Secret: %w", err)
	}
	renewed, err := k.renew(secret, k.Clock.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	if renewed {
		if err := k.Client.Update(ctx, secret); err != nil {
			return reconcile.Result{}, fmt.Errorf("store the certificate: %w", err)
		}
		log.FromContext(ctx).Info("made a new serving certificate")
	}
	pair, err := tls.X509KeyPair(secret.Data[keyServing], secret.Data[keyServingKey])
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read the serving certificate: %w", err)
	}
	k.serving.Store(&pair)
	if err := k.inject(ctx, secret.Data[keyCA]); err != nil {
		return reconcile.Result{}, err
	}
	k.injected.Store(true)
	return reconcile.Result{RequeueAfter: checkEvery}, nil
}

// renew replaces in the Secret what is missing, broken or near its end at now, and tells
// whether that was anything.
func (k *Keeper) renew(secret *corev1.Secret, now time.Time) (bool, error) {
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	maker := &rotator.CertRotator{
		CAName: caName, CAOrganization: "signalbox", DNSName: k.DNSName, ExtKeyUsages: &usages,
	}
	data, end := secret.Data, now.Add(renewBefore)
	ca := &rotator.KeyPairArtifacts{CertPEM: data[keyCA], KeyPEM: data[keyCAKey]}
	if valid, _ := rotator.ValidCert(ca.CertPEM, ca.CertPEM, ca.KeyPEM, caName, nil, end); valid {
		if valid, _ := rotator.ValidCert(ca.CertPEM, data[keyServing], data[keyServingKey], k.DNSName, &usages, end); valid {
			return false, nil
		}
		if err := parse(ca); err != nil {
			return false, err
		}
	} else {
		made, err := maker.CreateCACert(now.Add(-backdate), now.Add(caLife))
		if err != nil {
			return false, fmt.Errorf("make a CA: %w", err)
		}
		ca = made
	}
	serving, servingKey, err := maker.CreateCertPEM(ca, now.Add(-backdate), now.Add(servingLife))
	if err != nil {
		return false, fmt.Errorf("make a serving certificate: %w", err)
	}
	secret.Data = map[string][]byte{
		keyCA: ca.CertPEM, keyCAKey: ca.KeyPEM, keyServing: serving, keyServingKey: servingKey,
	}
	return true, nil
}

// parse fills the certificate and key of a stored CA from their PEM.
func parse(ca *rotator.KeyPairArtifacts) error {
	pair, err := tls.X509KeyPair(ca.CertPEM, ca.KeyPEM)
	if err != nil {
		return fmt.Errorf("read the CA: %w", err)
	}
	key, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return fmt.Errorf("read the CA: its key is a %T, not an RSA key", pair.PrivateKey)
	}
	ca.Cert, ca.Key = pair.Leaf, key
	return nil
}

// inject writes the CA into each webhook of the two configurations that has another one.
func (k *Keeper) inject(ctx context.Context, ca []byte) error {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	err := k.patch(ctx, mutating, func() (changed bool) {
		for i := range mutating.Webhooks {
			changed = replace(&mutating.Webhooks[i].ClientConfig, ca) || changed
		}
		return changed
	})
	if err != nil {
		return err
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	return k.patch(ctx, validating, func() (changed bool) {
		for i := range validating.Webhooks {
			changed = replace(&validating.Webhooks[i].ClientConfig, ca) || changed
		}
		return changed
	})
}

// replace sets the CA and tells whether it was another one.
func replace(config *admissionregistrationv1.WebhookClientConfig, ca []byte) bool {
	if bytes.Equal(config.CABundle, ca) {
		return false
	}
	config.CABundle = ca
	return true
}

// patch reads a webhook configuration into the object and, if change finds something to
// change in it, stores that.
func (k *Keeper) patch(ctx context.Context, configuration client.Object, change func() bool) error {
	if err := k.Client.Get(ctx, types.NamespacedName{Name: k.Configuration}, configuration); err != nil {
		return fmt.Errorf("read the webhook configuration: %w", err)
	}
	before := configuration.DeepCopyObject().(client.Object)
	if !change() {
		return nil
	}
	// The list of webhooks is patched as a whole: only if it is still the one that was read.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Patch(ctx, configuration, patch); err != nil {
		return fmt.Errorf("write the CA into the webhook configuration: %w", err)
	}
	log.FromContext(ctx).Info("wrote the CA into a webhook configuration", "kind", fmt.Sprintf("%T", configuration))
	return nil
}

// GetCertificate gives the TLS server its certificate. It fails until there is one.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := k.serving.Load(); pair != nil {
		return pair, nil
	}
	return nil, errors.New("no serving certificate yet")
}

// Check is a readiness check: the API server was given the CA of the certificate that is
// served, and that has not ended.
func (k *Keeper) Check(*http.Request) error {
	if !k.injected.Load() {
		return errors.New("the CA is not in the webhook configurations yet")
	}
	if end := k.serving.Load().Leaf.NotAfter; !k.Clock.Now().Before(end) {
		return fmt.Errorf("the serving certificate ended at %s", end)
	}
	return nil
}
