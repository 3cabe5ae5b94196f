package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	system      = "signalbox-system"
	trainerUser = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"
	kueueUser   = "system:serviceaccount:kueue-system:kueue-controller-manager"
	denied      = "no right to do so"
	helm        = "helm upgrade signalbox charts/signalbox --namespace signalbox-system --reset-then-reuse-values"
	logs        = "look at its pods and their log: kubectl --namespace signalbox-system logs --selector app.kubernetes.io/component=reconciler --tail=50"
	podsText    = "look at its pods: kubectl --namespace signalbox-system get pods"
	noDeadlines = "deadlines are enforced by Trainer alone, finished TrainJobs stay, and TrainJobs may wait for their snapshot"
	restarts    = "Kueue stops a TrainJob when its runtime is edited, and queues it anew"
	renewOwn    = `look at the log of the webhook, and have it made anew: kubectl --namespace signalbox-system patch secret signalbox-webhook-cert --type=json --patch '[{"op":"remove","path":"/data/tls.crt"}]'`
)

// authority signs the certificates of these tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T, ends time.Time) *authority {
	t.Helper()
	a := &authority{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.AddDate(-2, 0, 0), NotAfter: ends,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// sign returns the PEM of a serving certificate for this name.
func (a *authority) sign(t *testing.T, name string, from, until time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: until, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

const serverName = "signalbox-webhook.signalbox-system.svc"

// unread is what could not be read.
func unread[T any]() Seen[T] { return Seen[T]{Unread: denied} }

// missing is what is not there.
func missing[T any]() Seen[T] { return Seen[T]{Missing: true} }

func seen[T any](value T) Seen[T] { return Seen[T]{Value: value} }

// right are the facts of a cluster that is set up right, with Kueue.
func right(ca *authority, certificate []byte) *Facts {
	meta := metav1.ObjectMeta{Name: "signalbox", Labels: map[string]string{"app.kubernetes.io/version": "0.2.0", "app.kubernetes.io/instance": "signalbox"}}
	config := admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: system, Name: "signalbox-webhook", Port: ptr.To[int32](443)}, CABundle: ca.pem,
	}
	by := func(user string) []admissionregistrationv1.MatchCondition {
		return []admissionregistrationv1.MatchCondition{{Name: "by", Expression: "request.userInfo.?username.orValue('') == '" + user + "'"}}
	}
	hook := func(name string, policy admissionregistrationv1.FailurePolicyType) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{
			Name: name + ".lifecycle.trainer.kubeflow.org", ClientConfig: config, FailurePolicy: &policy,
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{system, "kube-system"},
			}}},
		}
	}
	validatingHook := func(name string) admissionregistrationv1.ValidatingWebhook {
		h := hook(name, admissionregistrationv1.Fail)
		return admissionregistrationv1.ValidatingWebhook{Name: h.Name, ClientConfig: h.ClientConfig, FailurePolicy: h.FailurePolicy}
	}
	status, workload := hook("trainjob-status", admissionregistrationv1.Fail), hook("workload", admissionregistrationv1.Ignore)
	status.MatchConditions, workload.MatchConditions = by(trainerUser), by(kueueUser)
	workload.Rules = []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIVersions: []string{"v1beta1", "v1beta2"}}}}
	f := &Facts{
		Now: now, Namespace: system, Version: "v1.36.3",
		Served: seen(map[string][]string{}), CRDs: map[string]Seen[*apiextensionsv1.CustomResourceDefinition]{},
		Mutating: seen(&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{
			hook("trainjob", admissionregistrationv1.Fail), status, hook("runtime", admissionregistrationv1.Ignore), workload,
		}}),
		Validating: seen(&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			validatingHook("trainjob"), validatingHook("runtime"), validatingHook("jobset"),
		}}),
		Webhook: seen(deployed(system, "signalbox-webhook", "signalbox-webhook", 2)), Reconciler: seen(deployed(system, "signalbox-reconciler", "signalbox-reconciler", 2)),
		Slices: seen([]discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}, {Addresses: []string{"10.0.0.2"}},
		}}}),
		Answer:      Reached{Tried: true},
		Certificate: Certificate{Own: true, Secret: "signalbox-webhook-cert", Content: seen(certificate)},
		Lease: seen(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("signalbox-reconciler-1"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: now.Add(-time.Second)},
		}}),
		Trainers:   seen([]appsv1.Deployment{*deployed("kubeflow-system", "kubeflow-trainer-controller-manager", "kubeflow-trainer-controller-manager", 1)}),
		Kueues:     seen([]appsv1.Deployment{*deployed("kueue-system", "kueue-controller-manager", "kueue-controller-manager", 1)}),
		Runtimes:   map[string]Seen[Audit]{"ClusterTrainingRuntime": seen(Audit{"torch": ""}), "TrainingRuntime": seen(Audit{})},
		Policies:   seen([]v1alpha1.LifecyclePolicy{}),
		Namespaces: seen(map[string]map[string]string{}),
	}
	for _, name := range []string{"default", "kube-system", "signalbox-system", "team-a"} {
		f.Namespaces.Value[name] = map[string]string{corev1.LabelMetadataName: name}
	}
	for _, d := range definitions() {
		f.Served.Value[d.key()] = d.Versions
		f.CRDs[d.Name] = seen(trainerCRD(true, true))
	}
	return f
}

// trainerCRD is what counts of a CRD of TrainJobs.
func trainerCRD(deadline, snapshot bool) *apiextensionsv1.CustomResourceDefinition {
	spec := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	if deadline {
		spec.Properties["activeDeadlineSeconds"] = apiextensionsv1.JSONSchemaProps{}
	}
	if snapshot {
		spec.Properties["runtimePatches"] = apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"terminationGracePeriodSeconds": {}}}
	}
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1alpha1", Served: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}},
	}}}}
}

// deployed is a Deployment of which all replicas are ready.
func deployed(namespace, name, account string, replicas int32, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/version": "0.2.0"}}}
	d.Spec.Replicas, d.Status.ReadyReplicas = &replicas, replicas
	d.Spec.Template.Spec.ServiceAccountName = account
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
	return d
}

// The lines of a cluster that is set up right, by what they are about.
var fine = []Item{
	{"Kubernetes", OK, "v1.36.3", ""},
	{"clock", OK, "this machine and the API server agree", ""},
	{"Trainer", OK, "2.3 or later: it enforces spec.activeDeadlineSeconds and keeps the runtime of a TrainJob", ""},
	{"JobSet", OK, "serves v1alpha2", ""},
	{"webhooks", OK, "7 webhooks registered, called at signalbox-webhook.signalbox-system.svc", ""},
	{"CRDs", OK, "LifecyclePolicies and TrainingRuntimeSnapshots serve v1alpha1", ""},
	{"version", OK, "0.2.0", ""},
	{"webhook", OK, "the API server reaches it; 2 of 2 replicas ready", ""},
	{"certificate", OK, "valid until 2026-05-30T12:00:00Z", ""},
	{"reconciler", OK, "signalbox-reconciler-1 acts, and has renewed its Lease 1s ago", ""},
	{"Kueue", OK, "serves v1beta1, v1beta2, and acts as system:serviceaccount:kueue-system:kueue-controller-manager, as Signalbox knows", ""},
	{"policies", OK, "there are none: what TrainJobs and runtimes say counts", ""},
	{"runtimes", OK, "1 ClusterTrainingRuntime and 0 TrainingRuntimes, none with a clock of its own or a default that is none", ""},
}

func TestRight(t *testing.T) {
	ca := newAuthority(t, now.AddDate(8, 0, 0))
	got := Judge(right(ca, ca.sign(t, serverName, now.AddDate(0, 0, -1), now.AddDate(0, 0, 90))))
	if diff := cmp.Diff(Answer{OK, fine}, got); diff != "" {
		t.Error(diff)
	}
	if got.ExitCode() != 0 || got.Summary() != "" {
		t.Errorf("exit code %d, %q", got.ExitCode(), got.Summary())
	}
}

// changed returns the lines of an answer that are not among those of a cluster that is set up right.
func changed(answer Answer) []Item {
	var items []Item
	for _, item := range answer.Items {
		found := false
		for _, ok := range fine {
			found = found || item == ok
		}
		if !found {
			items = append(items, item)
		}
	}
	return items
}

// verdict is what is to come of a change to a cluster that is set up right.
type verdict struct {
	change func(*Facts)
	// want are the lines that are other than those of fine.
	want []Item
	exit int
}

// judged tries the changes, each on a cluster of its own that is set up right otherwise.
func judged(t *testing.T, ca *authority, verdicts map[string]verdict) {
	t.Helper()
	good := ca.sign(t, serverName, now.AddDate(0, 0, -1), now.AddDate(0, 0, 90))
	for name, tc := range verdicts {
		t.Run(name, func(t *testing.T) {
			facts := right(ca, good)
			tc.change(facts)
			got := Judge(facts)
			if diff := cmp.Diff(tc.want, changed(got)); diff != "" {
				t.Error(diff)
			}
			if got.ExitCode() != tc.exit {
				t.Errorf("exit code %d, want %d", got.ExitCode(), tc.exit)
			}
			if (got.Summary() == "") != (tc.exit == 0) {
				t.Errorf("exit code %d, and the summary is %q", tc.exit, got.Summary())
			}
		})
	}
}
