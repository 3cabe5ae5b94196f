package kubectl

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Names that the chart gives, whatever the release is called.
const (
	// ConfigurationName is that of Signalbox's webhook configurations.
	ConfigurationName = "signalbox"
	// DefaultSystemNamespace is where Signalbox lives where nobody says otherwise.
	DefaultSystemNamespace = "signalbox-system"
)

// Installation is whether Signalbox is installed, going by its webhook configuration: what else belongs
// to it stays when it is uninstalled.
type Installation struct {
	// Known is false where that could not be read.
	Known bool
	// Is tells whether it is installed; false while that is not known.
	Is bool
	// Since is when the configuration was made, and Mutating what it is; zero and nil without one.
	Since    time.Time
	Mutating *admissionregistrationv1.MutatingWebhookConfiguration
}

// May tells whether Signalbox is installed or may be.
func (i Installation) May() bool { return i.Is || !i.Known }

// Installed finds out whether Signalbox is installed. That it cannot is a note.
func (r *Reader) Installed(ctx context.Context, notes *Notes) Installation {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	err := r.Get(ctx, client.ObjectKey{Name: ConfigurationName}, configuration)
	switch {
	case err == nil:
		return Installation{Known: true, Is: true, Since: configuration.CreationTimestamp.Time, Mutating: configuration}
	case NotInstalled(err):
		return Installation{Known: true}
	case ctx.Err() == nil:
		notes.Add(Why("the webhook configurations", err) + ": whether Signalbox is installed is not known")
	}
	return Installation{}
}

// Capabilities finds out what the installed Trainer knows; nothing where there is none. known is false
// where the CRD of TrainJobs could not be read, which is a note.
func (r *Reader) Capabilities(ctx context.Context, notes *Notes) (found trainer.Capabilities, known bool) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.Get(ctx, client.ObjectKey{Name: trainer.CRDName}, crd)
	switch {
	case err == nil:
		return trainer.Detect(crd), true
	case NotInstalled(err):
		return trainer.Capabilities{}, true
	case ctx.Err() == nil:
		notes.Add(Why("the CRD of TrainJobs", err) + ": what the installed Trainer does is not known")
	}
	return trainer.Capabilities{}, false
}

// workloads is the kind of Kueue's Workloads, whatever their version.
var workloads = schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"}

// Workloads finds out whether Kueue is installed, and the version of its Workloads. That it cannot is a
// note.
func (r *Reader) Workloads(ctx context.Context, notes *Notes) (gvk schema.GroupVersionKind, found bool) {
	mapping, err := r.mapper.RESTMapping(workloads)
	switch {
	case err == nil:
		return mapping.GroupVersionKind, true
	case !meta.IsNoMatchError(err) && ctx.Err() == nil:
		notes.Add(Why("the kinds of Kueue", err))
	}
	return schema.GroupVersionKind{}, false
}
