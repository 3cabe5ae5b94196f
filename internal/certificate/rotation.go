package certificate

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
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
	// settle is how long every API server has to learn of a CA before anything is served that
	// only this CA vouches for, and every replica to serve that before the CA of what was served
	// until then goes. Both learn by a watch, so it is many times what they need.
	settle = 20 * time.Second
)

// Keys of the Secret. ca.crt holds each CA that the API server is to trust, the newest first;
// ca.key is the key of the newest.
const (
	keyCA         = "ca.crt"
	keyCAKey      = "ca.key"
	keyServing    = corev1.TLSCertKey
	keyServingKey = corev1.TLSPrivateKeyKey
)

const caName = "signalbox-ca"

// usages are what a serving certificate is for.
var usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// state is what a replica goes by.
type state struct {
	// data is what the Secret held.
	data map[string][]byte
	// published is since when the API server has been given the newest CA of data, served since
	// when the replica serves the certificate of data: as this replica knows, by its own clock.
	published, served time.Time
}

// rotate returns what the Secret must hold at now, for webhooks that are called by this name, and
// when to look again, 0 for at leisure. stored is what the Secret holds, last what this replica
// has gone by until now.
//
// A new CA comes in three steps, so that no request meets an API server that does not trust the
// certificate it is shown: the API server is given the new CA beside the old one; after settle
// the new one signs the serving certificate; after settle again the old one goes. Only where
// nothing is served that the API server could trust is it done at once. That a key is gone from
// the Secret asks for a new certificate; where all is gone, what is served goes on from last.
func rotate(stored map[string][]byte, last state, dnsName string, now time.Time) (data map[string][]byte, wait time.Duration, err error) {
	data = maps.Clone(stored)
	if data == nil {
		data = map[string][]byte{}
	}
	bundle := certificates(data[keyCA], now)
	if len(bundle) == 0 {
		bundle = certificates(last.data[keyCA], now)
	}
	maker := &rotator.CertRotator{CAName: caName, CAOrganization: "signalbox", DNSName: dnsName, ExtKeyUsages: &usages}
	ca, err := newest(bundle, data[keyCAKey], now)
	if err != nil {
		made, err := maker.CreateCACert(now.Add(-backdate), now.Add(caLife))
		if err != nil {
			return nil, 0, fmt.Errorf("make a CA: %w", err)
		}
		ca, bundle = made, append([]*x509.Certificate{made.Cert}, vouching(bundle, data, last.data)...)
		data[keyCAKey] = made.KeyPEM
	}
	data[keyCA] = encode(bundle)
	unsettled := rest(last.data, data, keyCA, last.published, now)
	served := serving(data, bundle, dnsName, now)
	signed := func(certificate *x509.Certificate) bool { return certificate.CheckSignatureFrom(ca.Cert) == nil }
	if served == nil && unsettled > 0 {
		// Where the newest CA has signed what is served it is known, and may sign again.
		if before := serving(last.data, bundle, dnsName, now); before != nil && !signed(before) {
			data[keyServing], data[keyServingKey] = last.data[keyServing], last.data[keyServingKey]
			served = before
		}
	}
	byNewest := served != nil && signed(served)
	switch {
	case byNewest && now.Add(renewBefore).Before(served.NotAfter):
	case served != nil && unsettled > 0:
		// The API server may not know the CA yet.
		return data, unsettled, nil
	default:
		data[keyServing], data[keyServingKey], err = maker.CreateCertPEM(ca, now.Add(-backdate), now.Add(servingLife))
		if err != nil {
			return nil, 0, fmt.Errorf("make a serving certificate: %w", err)
		}
	}
	if len(bundle) == 1 {
		return data, 0, nil
	}
	// Other replicas may still serve what another CA has signed.
	if wait = rest(last.data, data, keyServing, last.served, now); wait <= 0 {
		data[keyCA], wait = encode(bundle[:1]), 0
	}
	return data, wait, nil
}

// rest returns how much of settle is left for the first certificate under the key, which last has
// held since then: all of it where it is another one now.
func rest(last, data map[string][]byte, key string, since, now time.Time) time.Duration {
	if !same(last, data, key) {
		return settle
	}
	return settle - now.Sub(since)
}

// same tells whether the first certificate under the key is the same in both.
func same(a, b map[string][]byte, key string) bool {
	one, _ := pem.Decode(a[key])
	other, _ := pem.Decode(b[key])
	return one != nil && other != nil && bytes.Equal(one.Bytes, other.Bytes)
}

// follow returns what a replica goes by once it has published and served the data at now.
func (s state) follow(data map[string][]byte, now time.Time) state {
	next := state{data: data, published: now, served: now}
	if same(s.data, data, keyCA) {
		next.published = s.published
	}
	if same(s.data, data, keyServing) {
		next.served = s.served
	}
	return next
}

// vouching returns those of the CAs that have signed what is served by either data.
func vouching(cas []*x509.Certificate, served ...map[string][]byte) []*x509.Certificate {
	var found []*x509.Certificate
	for _, ca := range cas {
		for _, data := range served {
			pair, err := tls.X509KeyPair(data[keyServing], data[keyServingKey])
			if err == nil && pair.Leaf.CheckSignatureFrom(ca) == nil {
				found = append(found, ca)
				break
			}
		}
	}
	return found
}

// newest returns the CA that signs, with its key. The error says why there is none, or that it is
// near its end.
func newest(bundle []*x509.Certificate, key []byte, now time.Time) (*rotator.KeyPairArtifacts, error) {
	if len(bundle) == 0 {
		return nil, fmt.Errorf("there is no CA")
	}
	ca := bundle[0]
	certificate := encode(bundle[:1])
	if valid, err := rotator.ValidCert(certificate, certificate, key, caName, nil, now.Add(renewBefore)); !valid {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	private, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key of the CA is a %T, not an RSA key", pair.PrivateKey)
	}
	return &rotator.KeyPairArtifacts{Cert: ca, Key: private, CertPEM: certificate, KeyPEM: key}, nil
}

// serving returns the serving certificate in the data, nil where it cannot be served: there is no
// such pair, it is for another name, has ended, or no CA of the bundle vouches for it.
func serving(data map[string][]byte, bundle []*x509.Certificate, dnsName string, now time.Time) *x509.Certificate {
	pair, err := tls.X509KeyPair(data[keyServing], data[keyServingKey])
	if err != nil {
		return nil
	}
	roots := x509.NewCertPool()
	for _, ca := range bundle {
		roots.AddCert(ca)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: dnsName, Roots: roots, KeyUsages: usages, CurrentTime: now}); err != nil {
		return nil
	}
	return pair.Leaf
}

// certificates returns those in the PEM that have not ended; what is none is left out.
func certificates(text []byte, now time.Time) []*x509.Certificate {
	var found []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(certificate.NotAfter) {
			found = append(found, certificate)
		}
	}
	return found
}

// encode writes certificates as PEM.
func encode(certificates []*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, certificate := range certificates {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	}
	return text.Bytes()
}
