package check

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// Names that the chart gives, whatever the release is called.
const (
	// webhookName is that of the webhook's Deployment and Service.
	webhookName = "signalbox-webhook"
	// reconcilerName is that of the reconciler's Deployment and Lease.
	reconcilerName = "signalbox-reconciler"
	// ownSecret is that of the certificate that the webhook makes itself.
	ownSecret = "signalbox-webhook-cert"
)

// Seen is what came of one read.
type Seen[T any] struct {
	// Value is what was read; the zero value where nothing was.
	Value T
	// Missing tells that there is none, or that its kind is not installed.
	Missing bool
	// Unread is why it could not be read; "" where it could.
	Unread string
}

// There tells whether it was read.
func (s Seen[T]) There() bool { return !s.Missing && s.Unread == "" }

// Facts are all that is read of a cluster.
type Facts struct {
	// Now is the instant of the reads, by the clock of the API server where that could be told.
	Now time.Time
	// Namespace is that of Signalbox.
	Namespace string
	// Version is that of the API server, such as v1.36.3.
	Version string
	// Skew is how far the clock of the API server is ahead of that of this machine.
	Skew Seen[time.Duration]
	// Served are the versions that are served of each kind in served.go, by GROUP/KIND.
	Served Seen[map[string][]string]
	// CRDs holds those of the definitions, by name.
	CRDs map[string]Seen[*apiextensionsv1.CustomResourceDefinition]

	Mutating   Seen[*admissionregistrationv1.MutatingWebhookConfiguration]
	Validating Seen[*admissionregistrationv1.ValidatingWebhookConfiguration]

	Webhook, Reconciler Seen[*appsv1.Deployment]
	// Slices are the endpoints of the webhook's Service.
	Slices Seen[[]discoveryv1.EndpointSlice]
	// Answer is what came of a request to the webhook by way of the API server.
	Answer Reached
	// Certificate is what is known of the certificate that the webhook serves.
	Certificate Certificate

	Lease Seen[*coordinationv1.Lease]
	// Later is the Lease as it was read once more, with the instant, where it looked stale first.
	Later   *coordinationv1.Lease
	LaterAt time.Time

	// Trainers and Kueues are the Deployments that look like theirs.
	Trainers, Kueues Seen[[]appsv1.Deployment]

	// Runtimes are what was found of stored runtimes, by kind.
	Runtimes map[string]Seen[Audit]
	Policies Seen[[]v1alpha1.LifecyclePolicy]
	// Namespaces are the labels of all namespaces, by name.
	Namespaces Seen[map[string]map[string]string]
}

// Reached tells what came of a request to the webhook by way of the API server's proxy.
type Reached struct {
	// Tried is false where it was not, for want of the right or of anything that could answer, and
	// where what came tells nothing of the webhook.
	Tried bool
	// Untold is what came that tells nothing of the webhook; "" for nothing.
	Untold string
	// Failure is why there was no answer; "" for one.
	Failure string
}
