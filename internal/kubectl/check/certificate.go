package check

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Certificate is what is known of the certificate that the webhook serves.
type Certificate struct {
	// Own tells that the webhook makes it itself, as its Deployment says; false where that was not read.
	Own bool
	// Secret is where it is kept, or may be where the Deployment was not read, and Content what that holds of it: the PEM of tls.crt. Nobody asks
	// for the keys.
	Secret  string
	Content Seen[[]byte]
	// Ends are the ends that replicas tell of in their metrics, of those that could be read.
	Ends []time.Time
	// Order is the end that cert-manager tells of; the zero time where it was not asked or knows none.
	Order time.Time
}

// soon is how long before the end of a certificate it should have been renewed.
const soon = 14 * 24 * time.Hour

// certificate judges what the webhook serves, and whether the API server trusts it.
func certificate(facts *Facts) []Item {
	const check = "certificate"
	bundles, problem := trusted(facts)
	if problem != "" {
		return []Item{{check, Fault, problem, renew(facts)}}
	}
	if len(bundles) == 0 {
		// That there is no CA is said elsewhere.
		return nil
	}
	first := slices.MinFunc(bundles, func(a, b bundle) int { return a.until().Compare(b.until()) })
	if until := first.until(); !facts.Now.Before(until) {
		return []Item{{check, Fault, fmt.Sprintf("the CA of the webhook %s has ended at %s: the API server trusts nothing that answers", first.hook, stamp(until)), renew(facts)}}
	}
	valid := "its CA is valid until " + stamp(first.until())
	namespace, name, found := service(facts)
	dns := name + "." + namespace + ".svc"
	known, chain := facts.Certificate, certificates(facts.Certificate.Content.Value)
	// Where the Deployment was not read, another Secret may be the one that counts.
	doubt := ""
	if !facts.Webhook.There() {
		doubt = cmp.Or(facts.Webhook.Unread, "no Deployment "+webhookName)
	}
	switch {
	case !found:
		return []Item{{check, Unknown, "called at " + target(facts) + ", not by a Service: its end cannot be seen from here; " + valid, ""}}
	case doubt != "" && len(chain) > 0 && verify(chain, dns, bundles, facts.Now) == nil:
		return ends(facts, chain[0].NotAfter, "")
	case doubt == "" && known.Content.There() && len(known.Content.Value) == 0:
		return []Item{{check, Fault, "there is none yet in the Secret " + known.Secret, "look at the log of the webhook"}}
	case doubt == "" && known.Content.There():
		return served(facts, chain, dns, bundles)
	case doubt == "" && known.Content.Missing:
		return []Item{{check, Fault, "the Secret " + known.Secret + " is missing: a replica that starts has no certificate", upgrade(facts, "")}}
	case len(known.Ends) > 0:
		return ends(facts, slices.MinFunc(known.Ends, time.Time.Compare), "as its metrics tell")
	case !known.Order.IsZero():
		return ends(facts, known.Order, "as cert-manager tells")
	case doubt == "" && known.Own && facts.Slices.There() && ready(facts.Slices.Value) > 0:
		return []Item{{Check: check, Level: OK, Finding: fmt.Sprintf("valid, or the webhook would not be ready; its end is not known (%s); %s", known.Content.Unread, valid)}}
	}
	return []Item{{check, Unknown, fmt.Sprintf("its end is not known (%s); %s", cmp.Or(doubt, known.Content.Unread), valid), ""}}
}

// bundle is the CAs that the API server is given for a webhook, at least one.
type bundle struct {
	hook string
	cas  []*x509.Certificate
}

// until is when the last of the CAs ends.
func (b bundle) until() time.Time {
	return slices.MaxFunc(b.cas, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// trusted returns the CAs that the API server is given for each webhook that has any. The problem is a
// CA that is none.
func trusted(facts *Facts) (bundles []bundle, problem string) {
	for _, hook := range all(facts) {
		if len(hook.ClientConfig.CABundle) == 0 {
			continue
		}
		found := certificates(hook.ClientConfig.CABundle)
		if len(found) == 0 {
			return nil, fmt.Sprintf("what is given as the CA of the webhook %s is no certificate", hook.Name)
		}
		bundles = append(bundles, bundle{hook.Name, found})
	}
	return bundles, ""
}

// served judges the certificate in the Secret.
func served(facts *Facts, chain []*x509.Certificate, dns string, bundles []bundle) []Item {
	const check = "certificate"
	if len(chain) == 0 {
		return []Item{{check, Fault, "what is in the Secret " + facts.Certificate.Secret + " is no certificate", renew(facts)}}
	}
	if err := verify(chain, dns, bundles, facts.Now); err != nil {
		return []Item{{check, Fault, refusal(chain[0], err, facts.Now) + ": " + outage(facts), renew(facts)}}
	}
	return ends(facts, chain[0].NotAfter, "")
}

// verify verifies a certificate, the first of the chain, as the API server does when it calls each of the
// webhooks.
func verify(chain []*x509.Certificate, dns string, bundles []bundle, now time.Time) error {
	for _, bundle := range bundles {
		roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
		for _, ca := range bundle.cas {
			roots.AddCert(ca)
		}
		for _, link := range chain[1:] {
			intermediates.AddCert(link)
		}
		_, err := chain[0].Verify(x509.VerifyOptions{
			DNSName: dns, Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refusal says why the API server does not take the certificate.
func refusal(leaf *x509.Certificate, err error, now time.Time) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case !now.Before(leaf.NotAfter):
		return "it has ended at " + stamp(leaf.NotAfter)
	case now.Before(leaf.NotBefore):
		return "it is not valid before " + stamp(leaf.NotBefore)
	case errors.As(err, &authority):
		return "the CA in the webhook configurations is not that of the certificate"
	case errors.As(err, &host):
		return "it is for another name: " + host.Error()
	}
	return "the API server does not take it: " + err.Error()
}

// ends judges the end of a certificate that is good otherwise. how says from where it is known.
func ends(facts *Facts, end time.Time, how string) []Item {
	const check = "certificate"
	text := "valid until " + stamp(end)
	if how != "" {
		text += ", " + how
	}
	switch left := end.Sub(facts.Now); {
	case left <= 0:
		return []Item{{check, Fault, "it has ended at " + stamp(end) + ": " + outage(facts), renew(facts)}}
	case left < soon && facts.Certificate.Own:
		return []Item{{check, Warning, text + ", and not renewed 30 days before that, as it should be", renew(facts)}}
	case left < soon:
		return []Item{{check, Warning, text, "see that it is renewed in time"}}
	}
	return []Item{{Check: check, Level: OK, Finding: text}}
}

// renew says how to get another certificate.
func renew(facts *Facts) string {
	if facts.Certificate.Own {
		return fmt.Sprintf("look at the log of the webhook, and have it made anew: kubectl --namespace %s patch secret %s --type=json --patch '[{\"op\":\"remove\",\"path\":\"/data/tls.crt\"}]'",
			facts.Namespace, facts.Certificate.Secret)
	}
	return "see to the Secret " + facts.Certificate.Secret + " and to the CA in the webhook configurations: whoever makes the one must give the other"
}

// certificates returns those in the PEM; what is none is left out.
func certificates(text []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for block, rest := pem.Decode(bytes.TrimSpace(text)); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, c)
		}
	}
	return found
}

// stamp writes an instant.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
