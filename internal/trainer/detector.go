package trainer

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Detector follows the CRD of TrainJobs and says, in the log and as a metric, what the
// installed Trainer knows: at start and whenever that changes.
//
// +kubebuilder:object:generate=false
type Detector struct {
	// Client reads the CRD from a cache that holds no other.
	Client client.Client

	last   atomic.Pointer[Capabilities]
	metric *prometheus.GaugeVec
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
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := client.IgnoreNotFound(d.Client.Get(ctx, req.NamespacedName, crd)); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the CRD of TrainJobs: %w", err)
	}
	// Without the CRD, Trainer knows nothing: as the empty one says.
	found := Detect(crd)
	if last := d.last.Swap(&found); last != nil && *last == found {
		return reconcile.Result{}, nil
	}
	d.set("active_deadline_seconds", found.ActiveDeadline)
	d.set("runtime_snapshot", found.RuntimeSnapshot)
	log.FromContext(ctx).Info("what the installed Trainer knows",
		"activeDeadlineSeconds", found.ActiveDeadline, "runtimeSnapshot", found.RuntimeSnapshot)
	return reconcile.Result{}, nil
}

func (d *Detector) set(capability string, has bool) {
	value := 0.0
	if has {
		value = 1
	}
	d.metric.WithLabelValues(capability).Set(value)
}
