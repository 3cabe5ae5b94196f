package check

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

func TestJudgeWebhook(t *testing.T) {
	ca := newAuthority(t, now.AddDate(8, 0, 0))
	judged(t, ca, map[string]verdict{
		"no pod of the webhook is ready": {
			func(f *Facts) {
				f.Slices.Value[0].Endpoints[0].Conditions.Ready = ptr.To(false)
				f.Slices.Value[0].Endpoints = f.Slices.Value[0].Endpoints[:1]
				f.Answer = Reached{}
				f.Webhook.Value.Status.ReadyReplicas = 0
			},
			[]Item{{"webhook", Fault, "no pod of signalbox-webhook is ready: TrainJobs cannot be created, suspended or resumed", podsText}}, 1,
		},
		"no pod is ready, and the webhook fails open": {
			func(f *Facts) {
				f.Slices, f.Answer = seen([]discoveryv1.EndpointSlice{}), Reached{}
				f.Mutating.Value.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			},
			[]Item{
				{"webhooks", Warning, "failurePolicy is Ignore for trainjob (mutating): what comes while no webhook answers passes unasked", helm + " --set webhook.failurePolicy=Fail"},
				{"webhook", Fault, "no pod of signalbox-webhook is ready: TrainJobs start without stamp, seal and limits", podsText},
			}, 1,
		},
		"one replica less": {
			func(f *Facts) { f.Webhook.Value.Status.ReadyReplicas = 1 },
			[]Item{{"webhook", Warning, "the API server reaches it; 1 of 2 replicas ready", podsText}}, 0,
		},
		"ready, but out of reach": {
			func(f *Facts) { f.Answer.Failure = "dial tcp 10.0.0.1:9443: i/o timeout" },
			[]Item{{"webhook", Fault, "the API server does not reach it: dial tcp 10.0.0.1:9443: i/o timeout: TrainJobs cannot be created, suspended or resumed", "see what lies between the API server and port 9443 of its pods: a network policy, a firewall; and " + podsText}}, 1,
		},
		"nobody may try": {
			func(f *Facts) { f.Answer = Reached{}; f.Webhook = unread[*appsv1.Deployment]() },
			[]Item{{"version", Unknown, "the versions of its parts, and what is switched off, are not known: no right to do so", ""}, {"webhook", OK, "2 replicas ready", ""}}, 2,
		},
		"nor see": {
			func(f *Facts) { f.Answer = Reached{}; f.Slices = unread[[]discoveryv1.EndpointSlice]() },
			[]Item{{"webhook", Unknown, "whether it is ready is not known: no right to do so", ""}}, 2,
		},
		"what answers is not the webhook": {
			func(f *Facts) { f.Answer = Reached{Untold: "it takes too long"} },
			[]Item{{"webhook", Unknown, "2 replicas ready; whether the API server reaches it is not known: it takes too long", ""}}, 2,
		},
		"what answers is not the webhook, and nothing else tells": {
			func(f *Facts) {
				f.Answer, f.Slices = Reached{Untold: "it takes too long"}, unread[[]discoveryv1.EndpointSlice]()
			},
			[]Item{{"webhook", Unknown, "whether it is ready is not known: it takes too long", ""}}, 2,
		},
		"called by URL": {
			func(f *Facts) {
				for i := range f.Mutating.Value.Webhooks {
					f.Mutating.Value.Webhooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://box.example.com:9443/mutate"), CABundle: ca.pem}
				}
				f.Validating = unread[*admissionregistrationv1.ValidatingWebhookConfiguration]()
			},
			[]Item{
				{"webhooks", Unknown, "the validating ones are not known: no right to do so", ""},
				{"webhook", Unknown, "called at box.example.com:9443, not by a Service: whether it answers cannot be seen from here", "look at the requests that it refuses or lets pass"},
				{"certificate", Unknown, "called at box.example.com:9443, not by a Service: its end cannot be seen from here; its CA is valid until 2034-03-01T12:00:00Z", ""},
			}, 2,
		},
	})
}

func TestReady(t *testing.T) {
	pod := func(name, address string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{address}, TargetRef: &corev1.ObjectReference{Name: name}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	slices := []discoveryv1.EndpointSlice{
		{Endpoints: []discoveryv1.Endpoint{pod("a", "10.0.0.1", ptr.To(true)), pod("b", "10.0.0.2", ptr.To(false)), pod("c", "10.0.0.3", nil)}},
		{Endpoints: []discoveryv1.Endpoint{pod("a", "fd00::1", ptr.To(true)), {Addresses: []string{"10.0.0.9"}}, {}}},
	}
	if got := ready(slices); got != 3 {
		t.Errorf("%d are ready, want a, c and the one without a name", got)
	}
}
