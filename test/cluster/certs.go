package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// certs is a certificate authority with one serving certificate, which every
// part of the cluster serves with.
type certs struct {
	// dir holds tls.crt and tls.key, the names that Kubernetes programs expect.
	dir  string
	pems map[string][]byte
	ca   *x509.Certificate
}

// Kueue checks the Secret that it shares with its webhooks before it serves: the
// authority must be valid for this name, and the certificate for its Service's.
const (
	kueueCAName      = "kueue-ca"
	kueueServiceName = "kueue-webhook-service.kueue-system.svc"
)

func newCerts(dir string) (*certs, error) {
	now := time.Now()
	c := &certs{dir: dir, pems: map[string][]byte{}}
	caKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test cluster"},
		DNSNames:              []string{kueueCAName},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if c.ca, err = c.sign("ca", template, template, caKey, caKey); err != nil {
		return nil, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	if _, err := c.sign("tls", &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "127.0.0.1"},
		DNSNames:     []string{"localhost", kueueServiceName},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    template.NotBefore,
		NotAfter:     template.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, c.ca, key, caKey); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, data := range c.pems {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// sign issues a certificate and keeps it as NAME.crt and its key as NAME.key.
func (c *certs) sign(name string, template, parent *x509.Certificate, key, parentKey *rsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	c.pems[name+".crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	c.pems[name+".key"] = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return x509.ParseCertificate(der)
}

func (c *certs) file(name string) string { return filepath.Join(c.dir, name) }

// httpClient returns a client that trusts the authority. Connections are not
// kept: a restarted part must not be judged by what its predecessor left.
func (c *certs) httpClient() *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(c.ca)
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}
}
