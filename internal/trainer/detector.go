package trainer

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Detector follows the CRD of TrainJobs, knows from it what the installed Trainer knows, and
// says so in the log and as a metric: at start and whenever that changes.
//
// +kubebuilder:object:generate=false
type Detector struct {
	// CRDs reads the CRD from a cache that holds no other.
	CRDs client.Reader

	last   atomic.Pointer[detected]
	said   atomic.Pointer[Capabilities]
	metric *prometheus.GaugeVec
}

// detected is what was found in one state of the CRD.
type detected struct {
	resourceVersion string
	capabilities    Capabilities
}

// Capabilities returns what the installed Trainer knows, as the cache has it.
func (d *Detector) Capabilities(ctx context.Context) (Capabilities, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := client.IgnoreNotFound(d.CRDs.Get(ctx, client.ObjectKey{Name: CRDName}, crd)); err != nil {
		return Capabilities{}, fmt.Errorf("read the CRD of TrainJobs: %w", err)
	}
	if last := d.last.Load(); last != nil && last.resourceVersion == crd.ResourceVersion {
		return last.capabilities, nil
	}
	// Without the CRD, Trainer knows nothing: as the empty one says.
	found := detected{resourceVersion: crd.ResourceVersion, capabilities: Detect(crd)}
	d.last.Store(&found)
	return found.capabilities, nil
}

// KeepsSnapshots tells whether the installed Trainer keeps the runtime of a TrainJob. While
// that is not known it is taken to: what is asked of it then, every Trainer fulfils in the
// normal case.
func (d *Detector) KeepsSnapshots(ctx context.Context) bool {
	found, err := d.Capabilities(ctx)
	return err != nil || found.RuntimeSnapshot
}

// HasActiveDeadline tells whether TrainJobs have spec.activeDeadlineSeconds. While that is not
// known they are taken not to: the annotation serves with every Trainer.
func (d *Detector) HasActiveDeadline(ctx context.Context) bool {
	found, err := d.Capabilities(ctx)
	return err == nil && found.ActiveDeadline
}

// CacheCRD is what a cache must hold for a Detector: the CRD of TrainJobs alone. It is read
// only, so that it need not be copied each time.
func CacheCRD() cache.ByObject {
	return cache.ByObject{
		Field:                 fields.OneTermEqualSelector("metadata.name", CRDName),
		UnsafeDisableDeepCopy: ptr.To(true),
	}
}

// SetupWithManager adds the detector to the manager and its metric to the registry.
func (d *Detector) SetupWithManager(mgr ctrl.Manager, registry prometheus.Registerer) error {
	d.metric = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "signalbox_trainer_capability",
		Help: "What the installed Trainer knows, going by its CRD: 1 or 0.",
	}, []string{"capability"})
	if err := registry.Register(d.metric); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("trainer-detector").
		For(&apiextensionsv1.CustomResourceDefinition{}).
		// Every replica says what it sees.
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(d)
}

// Reconcile looks at the CRD anew.
func (d *Detector) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.Name != CRDName {
		return reconcile.Result{}, nil
	}
	found, err := d.Capabilities(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if said := d.said.Swap(&found); said != nil && *said == found {
		return reconcile.Result{}, nil
	}
	log.FromContext(ctx).Info("what the installed Trainer knows",
		"activeDeadlineSeconds", found.ActiveDeadline, "runtimeSnapshot", found.RuntimeSnapshot,
		"ttlSecondsAfterFinished", found.TTL, "runPolicy", found.RunPolicy)
	d.set("active_deadline_seconds", found.ActiveDeadline)
	d.set("runtime_snapshot", found.RuntimeSnapshot)
	d.set("ttl_seconds_after_finished", found.TTL)
	d.set("run_policy", found.RunPolicy)
	return reconcile.Result{}, nil
}

func (d *Detector) set(capability string, has bool) {
	value := 0.0
	if has {
		value = 1
	}
	d.metric.WithLabelValues(capability).Set(value)
}
