// Package certificate keeps the serving certificate of the webhooks: a Secret with a CA of
// its own and a serving certificate signed by it, and the CA in the webhook configurations.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

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

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// checkEvery is how often the ends of the certificates are looked at.
const checkEvery = 12 * time.Hour

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

	// last is what was served last. One worker alone reads and writes it.
	last    state
	serving atomic.Pointer[tls.Certificate]
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
	data, wait, err := rotate(secret.Data, k.last, k.DNSName, k.Clock.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	if !maps.EqualFunc(data, secret.Data, bytes.Equal) {
		secret.Data = data
		if err := k.Client.Update(ctx, secret, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
			return reconcile.Result{}, fmt.Errorf("store the certificate: %w", err)
		}
		log.FromContext(ctx).Info("stored a step of the rotation of the certificate")
	}
	pair, err := tls.X509KeyPair(data[keyServing], data[keyServingKey])
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read the serving certificate: %w", err)
	}
	// Nothing is served before the API server was given its CA.
	if err := k.inject(ctx, data[keyCA]); err != nil {
		return reconcile.Result{}, err
	}
	k.last = k.last.follow(data, k.Clock.Now())
	k.serving.Store(&pair)
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{RequeueAfter: checkEvery}, nil
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
	if err := k.Client.Patch(ctx, configuration, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
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
	pair := k.serving.Load()
	if pair == nil {
		return errors.New("the CA is not in the webhook configurations yet")
	}
	if end := pair.Leaf.NotAfter; !k.Clock.Now().Before(end) {
		return fmt.Errorf("the serving certificate ended at %s", end)
	}
	return nil
}
