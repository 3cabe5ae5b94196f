package guard

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Reasons of the events about a stored runtime: a clock in it, and a default for its TrainJobs
// that is none, so that they do not get it.
const (
	reasonSecondClock    = "SecondClock"
	reasonInvalidDefault = "InvalidDefault"
)

// NewAuditMetric registers the number of stored runtimes with a clock of their own, by kind.
func NewAuditMetric(registry prometheus.Registerer) (*prometheus.GaugeVec, error) {
	metric := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "signalbox_runtimes_with_clocks",
		Help: "Stored runtimes that set activeDeadlineSeconds or ttlSecondsAfterFinished, by kind.",
	}, []string{"kind"})
	return metric, registry.Register(metric)
}

// Auditor reports stored runtimes that have a clock of their own, or a default that is none:
// those that were there before the webhook, or came while it was away. It changes nothing.
type Auditor struct {
	// Kind is the kind of runtime.
	Kind string
	// Cache reads runtimes as unstructured objects.
	Cache client.Reader
	// Client writes events.
	Client client.Client
	Clock  clock.PassiveClock
	Metric *prometheus.GaugeVec

	mu sync.Mutex
	// found holds the runtimes with clocks, to be counted.
	found map[types.NamespacedName]struct{}
}

// SetupWithManager adds the auditor to the manager.
func (a *Auditor) SetupWithManager(mgr ctrl.Manager) error {
	a.Metric.WithLabelValues(a.Kind)
	return ctrl.NewControllerManagedBy(mgr).
		Named("audit-" + a.Kind).
		For(trainer.NewRuntime(a.Kind)).
		WithOptions(controller.Options{EnableWarmup: ptr.To(true)}).
		Complete(a)
}

// Reconcile looks at one runtime.
func (a *Auditor) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	runtime := trainer.NewRuntime(a.Kind)
	err := a.Cache.Get(ctx, req.NamespacedName, runtime)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || runtime.GetDeletionTimestamp() != nil {
		a.count(req.NamespacedName, false)
		return reconcile.Result{}, nil
	}
	spec, _ := runtime.Object["spec"].(map[string]any)
	errs := Clocks(nil, spec)
	a.count(req.NamespacedName, len(errs) > 0)
	a.tell(ctx, runtime, reasonSecondClock, errs)
	a.tell(ctx, runtime, reasonInvalidDefault, Defaults(nil, runtime.GetAnnotations()))
	return reconcile.Result{}, nil
}

// tell reports what is wrong with a runtime.
func (a *Auditor) tell(ctx context.Context, runtime *unstructured.Unstructured, reason string, errs field.ErrorList) {
	if len(errs) == 0 {
		return
	}
	text := errs.ToAggregate().Error()
	log.FromContext(ctx).Info("a stored runtime is not as it should be", "kind", a.Kind, "reason", reason, "fields", text)
	// Its name follows from the text, so that a restart does not tell again.
	event.Warn(ctx, a.Client, event.About(runtime), reason, text, text, a.Clock.Now())
}

// count notes whether the runtime has a clock, and sets the metric.
func (a *Auditor) count(name types.NamespacedName, has bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found == nil {
		a.found = map[types.NamespacedName]struct{}{}
	}
	delete(a.found, name)
	if has {
		a.found[name] = struct{}{}
	}
	a.Metric.WithLabelValues(a.Kind).Set(float64(len(a.found)))
}

var _ reconcile.Reconciler = (*Auditor)(nil)
