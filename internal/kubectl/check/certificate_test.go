package check

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

func TestJudgeCertificate(t *testing.T) {
	ca := newAuthority(t, now.AddDate(8, 0, 0))
	other := newAuthority(t, now.AddDate(8, 0, 0))
	ended := newAuthority(t, now)
	yesterday := now.AddDate(0, 0, -1)
	const noParts = "the versions of its parts, and what is switched off, are not known: no right to do so"
	judged(t, ca, map[string]verdict{
		"a certificate that has ended": {
			func(f *Facts) {
				f.Certificate.Content.Value = ca.sign(t, serverName, now.AddDate(0, 0, -90), yesterday)
			},
			[]Item{{"certificate", Fault, "it has ended at 2026-02-28T12:00:00Z: TrainJobs cannot be created, suspended or resumed", renewOwn}}, 1,
		},
		"a certificate that ends now": {
			func(f *Facts) {
				f.Certificate.Content.Value = ca.sign(t, serverName, now.AddDate(0, 0, -90), now)
			},
			[]Item{{"certificate", Fault, "it has ended at 2026-03-01T12:00:00Z: TrainJobs cannot be created, suspended or resumed", renewOwn}}, 1,
		},
		"a certificate of another CA": {
			func(f *Facts) {
				f.Certificate.Content.Value = other.sign(t, serverName, yesterday, now.AddDate(0, 0, 90))
			},
			[]Item{{"certificate", Fault, "the CA in the webhook configurations is not that of the certificate: TrainJobs cannot be created, suspended or resumed", renewOwn}}, 1,
		},
		"one webhook alone has another CA": {
			func(f *Facts) { f.Mutating.Value.Webhooks[3].ClientConfig.CABundle = other.pem },
			[]Item{{"certificate", Fault, "the CA in the webhook configurations is not that of the certificate: TrainJobs cannot be created, suspended or resumed", renewOwn}}, 1,
		},
		"two CAs during a rotation": {
			func(f *Facts) {
				both := append(append([]byte{}, other.pem...), ca.pem...)
				for i := range f.Mutating.Value.Webhooks {
					f.Mutating.Value.Webhooks[i].ClientConfig.CABundle = both
				}
			}, nil, 0,
		},
		"a certificate of cert-manager, for another name": {
			func(f *Facts) {
				f.Certificate = Certificate{Secret: "tls", Content: seen(ca.sign(t, "box.signalbox-system.svc", yesterday, now.AddDate(0, 0, 90)))}
			},
			[]Item{{"certificate", Fault, "it is for another name: x509: certificate is valid for box.signalbox-system.svc, not signalbox-webhook.signalbox-system.svc: TrainJobs cannot be created, suspended or resumed", "see to the Secret tls and to the CA in the webhook configurations: whoever makes the one must give the other"}}, 1,
		},
		"its own certificate was not renewed": {
			func(f *Facts) {
				f.Certificate.Content.Value = ca.sign(t, serverName, yesterday, now.AddDate(0, 0, 14).Add(-time.Second))
			},
			[]Item{{"certificate", Warning, "valid until 2026-03-15T11:59:59Z, and not renewed 30 days before that, as it should be", renewOwn}}, 0,
		},
		"the certificate of somebody else ends soon": {
			func(f *Facts) {
				f.Certificate = Certificate{Secret: "tls", Content: seen(ca.sign(t, serverName, yesterday, now.AddDate(0, 0, 13)))}
			},
			[]Item{{"certificate", Warning, "valid until 2026-03-14T12:00:00Z", "see that it is renewed in time"}}, 0,
		},
		"the Secret may not be read, and metrics tell": {
			func(f *Facts) {
				f.Certificate.Content = unread[[]byte]()
				f.Certificate.Ends = []time.Time{now.AddDate(0, 0, 90), now.AddDate(0, 0, 40)}
			},
			[]Item{{"certificate", OK, "valid until 2026-04-10T12:00:00Z, as its metrics tell", ""}}, 0,
		},
		"the Secret may not be read, and cert-manager tells": {
			func(f *Facts) {
				f.Certificate = Certificate{Secret: "tls", Content: unread[[]byte](), Order: now.AddDate(0, 0, 40)}
			},
			[]Item{{"certificate", OK, "valid until 2026-04-10T12:00:00Z, as cert-manager tells", ""}}, 0,
		},
		"the Secret may not be read, and replicas are ready": {
			func(f *Facts) { f.Certificate.Content = unread[[]byte]() },
			[]Item{{"certificate", OK, "valid, or the webhook would not be ready; its end is not known (no right to do so); its CA is valid until 2034-03-01T12:00:00Z", ""}}, 0,
		},
		"the Secret of somebody else may not be read": {
			func(f *Facts) { f.Certificate = Certificate{Secret: "tls", Content: unread[[]byte]()} },
			[]Item{{"certificate", Unknown, "its end is not known (no right to do so); its CA is valid until 2034-03-01T12:00:00Z", ""}}, 2,
		},
		"the Secret is gone": {
			func(f *Facts) { f.Certificate.Content = missing[[]byte]() },
			[]Item{{"certificate", Fault, "the Secret signalbox-webhook-cert is missing: a replica that starts has no certificate", helm}}, 1,
		},
		"the Secret is empty": {
			func(f *Facts) { f.Certificate.Content.Value = nil },
			[]Item{{"certificate", Fault, "there is none yet in the Secret signalbox-webhook-cert", "look at the log of the webhook"}}, 1,
		},
		"the Secret is gone, or another one counts": {
			func(f *Facts) {
				f.Webhook, f.Certificate = unread[*appsv1.Deployment](), Certificate{Secret: "signalbox-webhook-cert", Content: missing[[]byte]()}
			},
			[]Item{
				{"version", Unknown, noParts, ""},
				{"webhook", OK, "the API server reaches it", ""},
				{"certificate", Unknown, "its end is not known (no right to do so); its CA is valid until 2034-03-01T12:00:00Z", ""},
			}, 2,
		},
		"the Secret may not be read, and another one may count": {
			func(f *Facts) {
				f.Webhook, f.Certificate = unread[*appsv1.Deployment](), Certificate{Secret: "signalbox-webhook-cert", Content: unread[[]byte]()}
			},
			[]Item{
				{"version", Unknown, noParts, ""},
				{"webhook", OK, "the API server reaches it", ""},
				{"certificate", Unknown, "its end is not known (no right to do so); its CA is valid until 2034-03-01T12:00:00Z", ""},
			}, 2,
		},
		"another Secret counts, as that of before is not trusted": {
			func(f *Facts) {
				f.Webhook = unread[*appsv1.Deployment]()
				f.Certificate = Certificate{Secret: "signalbox-webhook-cert", Content: seen(other.sign(t, serverName, yesterday, now.AddDate(0, 0, 90)))}
			},
			[]Item{
				{"version", Unknown, noParts, ""},
				{"webhook", OK, "the API server reaches it", ""},
				{"certificate", Unknown, "its end is not known (no right to do so); its CA is valid until 2034-03-01T12:00:00Z", ""},
			}, 2,
		},
		"the CA of one webhook alone has ended": {
			func(f *Facts) { f.Validating.Value.Webhooks[1].ClientConfig.CABundle = ended.pem },
			[]Item{{"certificate", Fault, "the CA of the webhook runtime.lifecycle.trainer.kubeflow.org has ended at 2026-03-01T12:00:00Z: the API server trusts nothing that answers", renewOwn}}, 1,
		},
		"a CA that has ended beside another one": {
			func(f *Facts) {
				f.Validating.Value.Webhooks[1].ClientConfig.CABundle = append(append([]byte{}, ended.pem...), ca.pem...)
			}, nil, 0,
		},
		"a CA that is none": {
			func(f *Facts) { f.Mutating.Value.Webhooks[0].ClientConfig.CABundle = []byte("ca") },
			[]Item{{"certificate", Fault, "what is given as the CA of the webhook trainjob.lifecycle.trainer.kubeflow.org is no certificate", renewOwn}}, 1,
		},
	})
}
