package chart_test

import (
	"strings"
	"testing"
)

func TestRefusedValues(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   string
	}{
		"a name at the top that is not there": {
			values: []string{"replicas=3"},
			want:   "additional properties 'replicas' not allowed",
		},
		"a name further down that is not there": {
			values: []string{"webhook.replicaCount=3"},
			want:   "additional properties 'replicaCount' not allowed",
		},
		"a value of another type": {
			values: []string{"reconciler.workers=many"},
			want:   "at '/reconciler/workers': got string, want integer",
		},
		"no replicas": {
			values: []string{"webhook.replicas=0"},
			want:   "at '/webhook/replicas': minimum: got 0, want 1",
		},
		"an account that is a user name": {
			values: []string{"trainer.serviceAccount=system:serviceaccount:team-a:trainer"},
			want:   "at '/trainer/serviceAccount'",
		},
		"an account without a namespace": {
			values: []string{"trainer.serviceAccount=trainer"},
			want:   "at '/trainer/serviceAccount'",
		},
		"an account that ends the expression it stands in": {
			values: []string{"trainer.serviceAccount=team-a/a'||'b"},
			want:   "at '/trainer/serviceAccount'",
		},
		"a switch that is neither on nor off": {
			values: []string{"trainer.correctEarlyDeadlines=never"},
			want:   "at '/trainer/correctEarlyDeadlines': got string, want boolean",
		},
		"an account of Kueue that is a user name": {
			values: []string{"kueue.serviceAccount=system:serviceaccount:team-a:kueue"},
			want:   "at '/kueue/serviceAccount'",
		},
		"an account of Kueue that ends the expression it stands in": {
			values: []string{"kueue.serviceAccount=team-a/a'||'b"},
			want:   "at '/kueue/serviceAccount'",
		},
		"snapshots that Kueue is shown or not": {
			values: []string{"kueue.showSnapshots=Ignore"},
			want:   "at '/kueue/showSnapshots': got string, want boolean",
		},
		"a name of Kueue that is not there": {
			values: []string{"kueue.enabled=true"},
			want:   "additional properties 'enabled' not allowed",
		},
		"an unknown policy for the status": {
			values: []string{"webhook.statusFailurePolicy=Warn"},
			want:   "at '/webhook/statusFailurePolicy'",
		},
		"an unknown policy for runtimes": {
			values: []string{"webhook.runtimeFailurePolicy=Warn"},
			want:   "at '/webhook/runtimeFailurePolicy'",
		},
		"runtimes in use that are neither kept nor not": {
			values: []string{"runtimes.inUse=deny"},
			want:   "at '/runtimes/inUse': value must be one of 'Deny', 'Warn', 'Allow'",
		},
		"runtimes in use that are protected by a switch": {
			values: []string{"runtimes.inUse=true"},
			want:   "at '/runtimes/inUse': value must be one of 'Deny', 'Warn', 'Allow'",
		},
		"a policy that is neither there nor not": {
			values: []string{"runtimes.admissionPolicy=Warn"},
			want:   "at '/runtimes/admissionPolicy': got string, want boolean",
		},
		"a name of the runtimes that is not there": {
			values: []string{"runtimes.failurePolicy=Fail"},
			want:   "additional properties 'failurePolicy' not allowed",
		},
		"a CRD that is neither installed nor not": {
			values: []string{"crds.install=IfMissing"},
			want:   "at '/crds/install': got string, want boolean",
		},
		"a CRD that is neither kept nor removed": {
			values: []string{"crds.keep=snapshots"},
			want:   "at '/crds/keep': got string, want boolean",
		},
		"a name of the CRDs that is not there": {
			values: []string{"crds.enabled=true"},
			want:   "additional properties 'enabled' not allowed",
		},
		"a status that needs the webhook where a JobSet does not": {
			values: []string{"webhook.failurePolicy=Ignore", "webhook.statusFailurePolicy=Fail"},
			want:   "webhook.statusFailurePolicy is Fail, but webhook.jobSetFailurePolicy is Ignore, as webhook.failurePolicy: while",
		},
		"a JobSet that does not need the webhook where a status does": {
			values: []string{"webhook.jobSetFailurePolicy=Ignore"},
			want:   "webhook.statusFailurePolicy is Fail, as webhook.failurePolicy, but webhook.jobSetFailurePolicy is Ignore: while",
		},
		"an unknown policy for JobSets": {
			values: []string{"webhook.jobSetFailurePolicy=Warn"},
			want:   "at '/webhook/jobSetFailurePolicy'",
		},
		"a policy of the API server for what the webhook is to let pass": {
			values: []string{"runtimes.guard=false", "runtimes.admissionPolicy=true"},
			want:   "runtimes.admissionPolicy is true, but runtimes.guard is false",
		},
		"values of an older chart": {
			values: []string{"snapshots=null", "metrics.service=null", "webhook.namespaceSelector=null"},
			want:   "missing property 'snapshots'",
		},
		"snapshots that are neither kept nor not": {
			values: []string{"snapshots.enabled=Fail"},
			want:   "at '/snapshots/enabled': got string, want boolean",
		},
		"a selector that is none": {
			values: []string{"webhook.namespaceSelector.team=a"},
			want:   "at '/webhook/namespaceSelector': additional properties 'team' not allowed",
		},
		"a selector by a value of no label": {
			values: []string{"webhook.namespaceSelector.matchLabels.team=a b"},
			want:   "at '/webhook/namespaceSelector/matchLabels/team'",
		},
		"a selector that asks for one of no values": {
			values: []string{"webhook.namespaceSelector.matchExpressions[0].key=a", "webhook.namespaceSelector.matchExpressions[0].operator=In"},
			want:   "at '/webhook/namespaceSelector/matchExpressions/0': missing property 'values'",
		},
		"a label by which pods are selected": {
			values: []string{`webhook.podLabels.app\.kubernetes\.io/component=mine`},
			want:   "at '/webhook/podLabels'",
		},
		"two makers of the certificate": {
			values: append([]string{"certificates.certManager.enabled=true"}, ownCertificate[:1]...),
			want:   "certificates.certManager.enabled is true, but certificates.existingSecret or certificates.caBundle gives a certificate",
		},
		"a CA that cert-manager takes from two places": {
			values: append([]string{"certificates.certManager.enabled=true"}, ownCertificate[1:]...),
			want:   "webhook.configurationAnnotations has cert-manager.io/inject-ca-from, but certificates.certManager.enabled is true",
		},
		"an issuer that nobody asks": {
			values: []string{"certificates.certManager.issuerRef.name=ours"},
			want:   "certificates.certManager.issuerRef is set, but certificates.certManager.enabled is false",
		},
		"an issuer without a name": {
			values: []string{"certificates.certManager.enabled=true", "certificates.certManager.issuerRef.kind=ClusterIssuer"},
			want:   "at '/certificates/certManager/issuerRef'",
		},
		"a Service for no metrics": {
			values: []string{"metrics.port=0", "metrics.service.enabled=true"},
			want:   "metrics.service.enabled is true, but metrics.port is 0",
		},
		"a ServiceMonitor for no metrics": {
			values: []string{"metrics.port=0", "metrics.serviceMonitor.enabled=true"},
			want:   "metrics.serviceMonitor.enabled is true, but metrics.port is 0",
		},
		"alerts on no metrics": {
			values: []string{"metrics.port=0", "metrics.prometheusRule.enabled=true"},
			want:   "metrics.prometheusRule.enabled is true, but metrics.port is 0",
		},
		"a dashboard of no metrics": {
			values: []string{"metrics.port=0", "metrics.grafanaDashboard.enabled=true"},
			want:   "metrics.grafanaDashboard.enabled is true, but metrics.port is 0",
		},
		"metrics that nobody may read": {
			values: []string{"metrics.serviceMonitor.enabled=true", "networkPolicy.enabled=true"},
			want:   "metrics.serviceMonitor.enabled is true, but networkPolicy.metricsFrom is empty",
		},
		"readers of no metrics": {
			values: []string{"metrics.port=0", "networkPolicy.enabled=true", "networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b"},
			want:   "networkPolicy.metricsFrom is set, but metrics.port is 0",
		},
		"callers of a webhook that is open to all": {
			values: []string{"networkPolicy.webhookFrom={10.0.0.0/8}"},
			want:   "networkPolicy.webhookFrom is set, but networkPolicy.enabled is false",
		},
		"an API server of pods that may call anything": {
			values: []string{"networkPolicy.apiServer.cidrs={10.0.0.0/8}"},
			want:   "networkPolicy.apiServer.cidrs is set, but networkPolicy.enabled is false",
		},
		"an address that is no range": {
			values: []string{"networkPolicy.enabled=true", "networkPolicy.webhookFrom={10.0.0.1}"},
			want:   "at '/networkPolicy/webhookFrom/0'",
		},
		"a peer that is a label": {
			values: []string{"networkPolicy.enabled=true", "networkPolicy.metricsFrom[0].team=watch"},
			want:   "at '/networkPolicy/metricsFrom/0': additional properties 'team' not allowed",
		},
		"an interval without a unit": {
			values: []string{"metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=fast"},
			want:   "at '/metrics/serviceMonitor/interval'",
		},
		"a warning after the deadline": {
			values: []string{"reconciler.warnBefore=-1m"},
			want:   "at '/reconciler/warnBefore'",
		},
		"a warning at a number without a unit": {
			values: []string{"reconciler.warnBefore=600"},
			want:   "at '/reconciler/warnBefore': got number, want string",
		},
		"metrics on the port of the probes": {
			values: []string{"metrics.port=8081"},
			want:   "at '/metrics/port'",
		},
		"a CA without a certificate": {
			values: []string{"certificates.caBundle=Q0E="},
			want:   "certificates.caBundle is the CA of the certificate in certificates.existingSecret, which is empty",
		},
		"an injected CA without a certificate": {
			values: ownCertificate[1:],
			want:   "webhook.configurationAnnotations has cert-manager inject a CA, but certificates.existingSecret is empty",
		},
		"a certificate whose CA nobody tells": {
			values: ownCertificate[:1],
			want:   "certificates.existingSecret is set, but nothing tells the API server its CA",
		},
		"a CA both given and injected": {
			values: append([]string{"certificates.caBundle=Q0E="}, ownCertificate...),
			want:   "certificates.caBundle is set and webhook.configurationAnnotations has cert-manager inject a CA",
		},
		"the Secret of the webhook's own certificate": {
			values: []string{"certificates.existingSecret=signalbox-webhook-cert", "certificates.caBundle=Q0E="},
			want:   "certificates.existingSecret must not be signalbox-webhook-cert",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template(tc.values...)
			checkError(t, err, tc.want)
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error:\n%v\nwant one with:\n%s", err, want)
	}
}
