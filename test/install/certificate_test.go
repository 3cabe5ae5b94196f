package install_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

const (
	certificateSecret = "signalbox-webhook-cert"
	serverName        = "signalbox-webhook." + systemNamespace + ".svc"
)

// Three replicas make one certificate in an empty Secret. All that can happen to that, by the
// certificate's own end or by an admin's hand, costs no request.
func TestCertificateRotations(t *testing.T) {
	s := newScene(t, helm4)
	s.install(chart, "--set", "webhook.replicas=3")
	if pods := shared.Pods("webhook"); len(pods) != 3 {
		t.Fatalf("%d webhooks run, want 3", len(pods))
	}
	s.serve("the first certificate", func(certificate *x509.Certificate, cas []*x509.Certificate) string {
		if len(cas) != 1 {
			return fmt.Sprintf("%d CAs", len(cas))
		}
		return ""
	})
	l := s.load()
	for i := range 3 {
		s.rotateServing(fmt.Sprintf("serving certificate %d", i+2))
		l.more(s, 20)
	}
	s.rotateCA("the CA after two were asked for", func() {
		first := s.cas()[0]
		s.drop("ca.key")
		s.eventually("the second CA", func() (bool, string) {
			cas := s.cas()
			return len(cas) == 2 && cas[1].Equal(first), fmt.Sprintf("%d CAs", len(cas))
		})
		// Meanwhile a pod is replaced by one that remembers nothing, and a third CA is asked for.
		gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: shared.Pods("webhook")[0].Name}}
		s.must(shared.Client.Delete(s.ctx, gone))
		second := s.cas()[0]
		s.drop("ca.key")
		s.eventually("the third CA", func() (bool, string) {
			cas := s.cas()
			return len(cas) == 2 && !cas[0].Equal(second) && cas[1].Equal(first), fmt.Sprintf("%d CAs", len(cas))
		})
	})
	s.rotateCA("the CA after the Secret was deleted", func() {
		s.must(shared.Client.Delete(s.ctx, s.secret()))
		s.upgrade(chart, "--set", "webhook.replicas=3")
	})
	l.more(s, 20)
	l.end(s, 500)
	for _, pod := range shared.Pods("webhook") {
		if n := s.answered(pod); n == 0 {
			t.Errorf("pod %s answered no request", pod.Name)
		}
	}
}

// judge says what is wrong about what is served and the CAs that are trusted, the newest first.
type judge func(certificate *x509.Certificate, cas []*x509.Certificate) string

// anything has nothing to say.
func anything(*x509.Certificate, []*x509.Certificate) string { return "" }

// serve waits until each replica serves the same certificate, the API server is given a CA for
// it, the newest of all, and check has nothing to say against it. It returns both.
func (s *scene) serve(what string, check judge) (certificate, ca *x509.Certificate) {
	s.Helper()
	s.eventually(what, func() (bool, string) {
		certificate = nil
		pods, cas := shared.Pods("webhook"), s.cas()
		if len(pods) != 3 || len(cas) == 0 {
			return false, fmt.Sprintf("%d replicas, %d CAs", len(pods), len(cas))
		}
		ca = cas[0]
		for _, pod := range pods {
			found, err := dial(pod)
			if err != nil {
				return false, err.Error()
			}
			if certificate != nil && !certificate.Equal(found) {
				return false, "the replicas serve different certificates"
			}
			certificate = found
		}
		if err := certificate.CheckSignatureFrom(ca); err != nil {
			return false, fmt.Sprintf("the certificate is not of the newest of %d CAs: %v", len(cas), err)
		}
		seen := check(certificate, cas)
		return seen == "", seen
	})
	if err := certificate.VerifyHostname(serverName); err != nil {
		s.Error(err)
	}
	return certificate, ca
}

// rotateServing has the serving certificate made anew, by the same CA.
func (s *scene) rotateServing(what string) {
	s.Helper()
	before, ca := s.serve("a certificate", anything)
	s.drop("tls.crt", "tls.key")
	s.serve(what, func(certificate *x509.Certificate, cas []*x509.Certificate) string {
		if certificate.Equal(before) {
			return "the same certificate"
		}
		if len(cas) != 1 || !cas[0].Equal(ca) {
			return "another CA"
		}
		return ""
	})
}

// rotateCA waits for what a change of the CA must lead to: every replica serves a certificate of
// a new CA, and only that is left.
func (s *scene) rotateCA(what string, change func()) {
	s.Helper()
	before, ca := s.serve("a certificate", anything)
	change()
	s.serve(what, func(certificate *x509.Certificate, cas []*x509.Certificate) string {
		switch {
		case cas[0].Equal(ca):
			return "the CA of before"
		case certificate.Equal(before):
			return "the certificate of before"
		case len(cas) > 1:
			return fmt.Sprintf("%d CAs are trusted", len(cas))
		}
		return ""
	})
}

// secret is the Secret of the self-managed certificate.
func (s *scene) secret() *corev1.Secret {
	s.Helper()
	secret := &corev1.Secret{}
	s.must(shared.Client.Get(s.ctx, client.ObjectKey{Namespace: systemNamespace, Name: certificateSecret}, secret))
	return secret
}

// drop takes keys out of the Secret, as an admin does to have them made anew.
func (s *scene) drop(keys ...string) {
	s.Helper()
	patch := ""
	for _, key := range keys {
		patch += fmt.Sprintf(`,{"op":"remove","path":"/data/%s"}`, key)
	}
	s.must(shared.Client.Patch(s.ctx, s.secret(), client.RawPatch(types.JSONPatchType, []byte("["+patch[1:]+"]"))))
}

// bundles returns the CAs of each webhook of Signalbox by its path.
func (s *scene) bundles() map[string][]byte {
	s.Helper()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	s.must(shared.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, mutating))
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.must(shared.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, validating))
	bundles := map[string][]byte{}
	for _, webhook := range mutating.Webhooks {
		bundles[*webhook.ClientConfig.Service.Path] = webhook.ClientConfig.CABundle
	}
	for _, webhook := range validating.Webhooks {
		bundles[*webhook.ClientConfig.Service.Path] = webhook.ClientConfig.CABundle
	}
	return bundles
}

// cas returns the CAs that all webhooks have, the newest first; none while they differ.
func (s *scene) cas() []*x509.Certificate {
	s.Helper()
	var cas []*x509.Certificate
	var first []byte
	for _, bundle := range s.bundles() {
		if first == nil {
			first = bundle
		}
		if !bytes.Equal(first, bundle) {
			return nil
		}
	}
	for block, rest := pem.Decode(first); block != nil; block, rest = pem.Decode(rest) {
		ca, err := x509.ParseCertificate(block.Bytes)
		s.must(err)
		cas = append(cas, ca)
	}
	return cas
}

// dial returns the certificate that a webhook serves.
func dial(pod *cluster.Pod) (*x509.Certificate, error) {
	// Whether the API server would trust it is another question.
	connection, err := tls.Dial("tcp", pod.Webhook, &tls.Config{InsecureSkipVerify: true, ServerName: serverName})
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0], nil
}

func served(t *testing.T, pod *cluster.Pod) *x509.Certificate {
	t.Helper()
	certificate, err := dial(pod)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// ownCertificate is one that the admin brings.
type ownCertificate struct {
	certificate []byte // DER
	bundle      string // PEM of the CA, in base64
}

// ownCertificate makes a CA, and a Secret with a certificate of it.
func (s *scene) ownCertificate(name string) ownCertificate {
	s.Helper()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "own CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	s.must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{serverName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	s.must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	s.must(err)
	s.must(shared.Client.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}))
	s.must(shared.Client.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		},
	}))
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return ownCertificate{certificate: der, bundle: base64.StdEncoding.EncodeToString(bundle)}
}
