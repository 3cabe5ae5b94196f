package check

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

func TestJudgeInstalled(t *testing.T) {
	ca := newAuthority(t, now.AddDate(8, 0, 0))
	judged(t, ca, map[string]verdict{
		"CRDs of Signalbox are missing": {
			func(f *Facts) {
				delete(f.Served.Value, "lifecycle.trainer.kubeflow.org/LifecyclePolicy")
				f.CRDs["lifecyclepolicies.lifecycle.trainer.kubeflow.org"] = missing[*apiextensionsv1.CustomResourceDefinition]()
				f.Policies = missing[[]v1alpha1.LifecyclePolicy]()
			},
			[]Item{{"CRDs", Fault, "its lifecyclepolicies.lifecycle.trainer.kubeflow.org is missing", helm + " --set crds.install=true"}}, 1,
		},
		"a webhook less": {
			func(f *Facts) { f.Validating.Value.Webhooks = f.Validating.Value.Webhooks[:2] },
			[]Item{{"webhooks", Fault, "jobset (validating) is not registered: JobSets start whatever they were built from, and for finished TrainJobs", helm}}, 1,
		},
		"no guard": {
			func(f *Facts) {
				f.Validating.Value.Webhooks = append(f.Validating.Value.Webhooks[:1], f.Validating.Value.Webhooks[2])
			},
			[]Item{{"webhooks", Warning, "runtime (validating) is not registered: runtimes may have clocks of their own, and be broken or deleted while in use", helm + " --set runtimes.guard=true"}}, 0,
		},
		"half of the configurations may not be read": {
			func(f *Facts) {
				f.Validating = unread[*admissionregistrationv1.ValidatingWebhookConfiguration]()
			},
			[]Item{{"webhooks", Unknown, "the validating ones are not known: no right to do so", ""}}, 2,
		},
		"webhooks that fail open": {
			func(f *Facts) {
				f.Mutating.Value.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
				f.Validating.Value.Webhooks[2].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			},
			[]Item{{"webhooks", Warning, "failurePolicy is Ignore for trainjob (mutating), jobset (validating): what comes while no webhook answers passes unasked", helm + " --set webhook.failurePolicy=Fail"}}, 0,
		},
		"a webhook without a CA": {
			func(f *Facts) { f.Mutating.Value.Webhooks[1].ClientConfig.CABundle = nil },
			[]Item{{"webhooks", Fault, "no CA is given for trainjob-status (mutating): the API server cannot verify what answers, and calls nothing", "see that a pod of the webhook is ready, which writes its own CA, or that what injects another one works"}}, 1,
		},
		"uninstalled: CRDs and Lease are left": {
			func(f *Facts) { uninstalled(f) },
			[]Item{
				{"Signalbox", Fault, "not installed; CRDs of an earlier installation are there: deadlines are what Trainer makes of them", "install it: helm install signalbox charts/signalbox --namespace signalbox-system --create-namespace"},
				{"Kueue", OK, "serves v1beta1, v1beta2", ""},
			}, 1,
		},
		"never installed": {
			func(f *Facts) {
				uninstalled(f)
				for _, d := range ofOwn {
					delete(f.Served.Value, d.key())
					f.CRDs[d.Name] = missing[*apiextensionsv1.CustomResourceDefinition]()
				}
				f.Policies = missing[[]v1alpha1.LifecyclePolicy]()
			},
			[]Item{
				{"Signalbox", Fault, "not installed: deadlines are what Trainer makes of them", "install it: helm install signalbox charts/signalbox --namespace signalbox-system --create-namespace"},
				{"Kueue", OK, "serves v1beta1, v1beta2", ""},
			}, 1,
		},
		"uninstalled, with a policy": {
			func(f *Facts) { uninstalled(f); f.Policies.Value = []v1alpha1.LifecyclePolicy{{}, {}} },
			[]Item{
				{"Signalbox", Fault, "not installed; CRDs of an earlier installation are there: deadlines are what Trainer makes of them", "install it: helm install signalbox charts/signalbox --namespace signalbox-system --create-namespace"},
				{"Kueue", OK, "serves v1beta1, v1beta2", ""},
				{"policies", Warning, "2 LifecyclePolicies in the cluster: without Signalbox they mean nothing", ""},
			}, 1,
		},
		"switched off in a hurry": {
			func(f *Facts) {
				webhook := f.Webhook
				uninstalled(f)
				f.Webhook = webhook
			},
			[]Item{
				{"Signalbox", Fault, "its webhook configurations are gone, so that it is asked nothing: TrainJobs start without stamp, seal and limits", helm},
				{"Kueue", OK, "serves v1beta1, v1beta2", ""},
			}, 1,
		},
		"no right to read webhook configurations": {
			func(f *Facts) {
				f.Mutating, f.Validating = unread[*admissionregistrationv1.MutatingWebhookConfiguration](), unread[*admissionregistrationv1.ValidatingWebhookConfiguration]()
			},
			[]Item{
				{"Signalbox", Unknown, "whether it is installed is not known: no right to do so", ""},
				{"Kueue", OK, "serves v1beta1, v1beta2", ""},
			}, 2,
		},
		"nor any Deployment": {
			func(f *Facts) {
				f.Mutating, f.Validating = unread[*admissionregistrationv1.MutatingWebhookConfiguration](), unread[*admissionregistrationv1.ValidatingWebhookConfiguration]()
				f.Webhook, f.Reconciler = unread[*appsv1.Deployment](), unread[*appsv1.Deployment]()
				f.Lease.Value.Spec.RenewTime.Time = now.AddDate(0, 0, -1)
			},
			[]Item{
				{"Signalbox", Unknown, "whether it is installed is not known: no right to do so", ""},
				{"Kueue", OK, "serves v1beta1, v1beta2", ""},
			}, 2,
		},
		"features that are off": {
			func(f *Facts) {
				f.Webhook = seen(deployed(system, "signalbox-webhook", "signalbox-webhook", 2, "--gate=false"))
				f.Reconciler = seen(deployed(system, "signalbox-reconciler", "signalbox-reconciler", 2, "--ttl=false"))
			},
			[]Item{
				{"features", Warning, "snapshots.gate is off: JobSets start whatever they were built from", "if that is not meant: " + helm + " --set snapshots.gate=true"},
				{"features", Warning, "ttl.enabled is off: finished TrainJobs are not removed", "if that is not meant: " + helm + " --set ttl.enabled=true"},
			}, 0,
		},
		"an upgrade that stopped half-way": {
			func(f *Facts) { f.Webhook.Value.Labels["app.kubernetes.io/version"] = "0.1.0" },
			[]Item{{"version", Warning, "the parts are of different versions: 0.1.0 (webhook), 0.2.0 (reconciler, webhook configurations)", helm + " --set crds.install=true"}}, 0,
		},
	})
}

// uninstalled takes away what helm uninstall does.
func uninstalled(f *Facts) {
	f.Mutating, f.Validating = missing[*admissionregistrationv1.MutatingWebhookConfiguration](), missing[*admissionregistrationv1.ValidatingWebhookConfiguration]()
	f.Webhook, f.Reconciler = missing[*appsv1.Deployment](), missing[*appsv1.Deployment]()
	f.Slices, f.Answer = seen([]discoveryv1.EndpointSlice(nil)), Reached{}
}
