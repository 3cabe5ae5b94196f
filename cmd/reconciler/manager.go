package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/command"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// leaseName is the name of the Lease that the replicas hold in turn.
const leaseName = "signalbox-reconciler"

// The Lease's times: a replica that vanished is replaced after leaseDuration; one that
// cannot renew for renewDeadline stops acting.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// runtimeKinds are the kinds of runtimes.
var runtimeKinds = []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind}

type options struct {
	command.Flags
	leaderElect bool
	workers     int
	qps         float64
	burst       int
	warnBefore  time.Duration
	snapshots   bool
	policies    bool
	ttl         bool
	audit       bool
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("reconciler", flag.ContinueOnError)
	o.Register(set)
	set.BoolVar(&o.leaderElect, "leader-elect", true, "act only while holding the Lease "+leaseName+"; needed with more than one replica")
	set.IntVar(&o.workers, "workers", 10, "how many TrainJobs are worked on at the same time")
	set.Float64Var(&o.qps, "kube-api-qps", 0, "most requests a second to the API server about objects of one kind; 0 or less for no limit but the API server's own")
	set.IntVar(&o.burst, "kube-api-burst", 400, "most requests at once to the API server about objects of one kind, where --kube-api-qps sets a limit")
	set.DurationVar(&o.warnBefore, "warn-before", 10*time.Minute, "announce a deadline by an event this long before it, or when a tenth of the limit is left, whichever is later; 0 for no event")
	set.BoolVar(&o.snapshots, "snapshots", true, "keep sealed TrainJobs on their runtime: file TrainingRuntimeSnapshots, keep Trainer's copies like them, write revisions into runtimes")
	set.BoolVar(&o.policies, "policies", true, "go by LifecyclePolicies, and write their status")
	set.BoolVar(&o.ttl, "ttl", true, "remove finished TrainJobs when their time to stay is over")
	set.BoolVar(&o.audit, "audit", true, "report stored runtimes that have clocks, or defaults that are none")
	if err := o.Parse(set, args, os.Stderr); err != nil {
		return o, err
	}
	switch {
	case o.workers < 1:
		return o, fmt.Errorf("--workers must be at least 1, not %d", o.workers)
	case o.burst < 1:
		return o, fmt.Errorf("--kube-api-burst must be at least 1, not %d", o.burst)
	case o.warnBefore < 0:
		return o, fmt.Errorf("--warn-before must not be negative, as %s is", o.warnBefore)
	}
	// Deadlines must not wait for a limit of their own: the API server shares out what it can bear by
	// priority and fairness. To client-go 0 is a low limit, and less than 0 is none.
	if o.qps <= 0 {
		o.qps = -1
	}
	return o, nil
}

// newManager wires the reconciler to a manager that runs it.
func newManager(o options) (ctrl.Manager, error) {
	cfg, err := command.RESTConfig(o.qps, o.burst)
	if err != nil {
		return nil, err
	}
	lock, err := lease(cfg, o.Namespace)
	if err != nil {
		return nil, err
	}
	held := snapshot.Cached()
	held[&apiextensionsv1.CustomResourceDefinition{}] = trainer.CacheCRD()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme, trainer.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: held},
		// A request that is never answered must not hold a worker for ever.
		Controller:                          config.Controller{ReconciliationTimeout: command.RequestTimeout, CacheSyncTimeout: command.SyncTimeout},
		Metrics:                             metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:              o.ProbeAddress,
		PprofBindAddress:                    o.PprofAddress,
		LeaderElection:                      o.leaderElect,
		LeaderElectionResourceLockInterface: lock,
		// The process ends with its manager, so the next replica need not wait.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(command.StopTimeout),
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(retryPeriod),
	})
	if err != nil {
		return nil, err
	}
	return mgr, setup(mgr, o)
}

// setup adds the reconcilers, the detector and the probes to the manager.
func setup(mgr ctrl.Manager, o options) error {
	if err := command.RegisterBuild(metrics.Registry); err != nil {
		return err
	}
	figures, err := deadline.NewMetrics(metrics.Registry, mgr.GetClient(), clock.RealClock{})
	if err != nil {
		return err
	}
	reconciler := &deadline.Reconciler{
		Client:     mgr.GetClient(),
		Live:       mgr.GetAPIReader(),
		Clock:      clock.RealClock{},
		Metrics:    figures,
		WarnBefore: o.warnBefore,
	}
	if err := reconciler.SetupWithManager(mgr, o.workers); err != nil {
		return err
	}
	detector := &trainer.Detector{CRDs: mgr.GetCache()}
	if err := detector.SetupWithManager(mgr, metrics.Registry); err != nil {
		return err
	}
	if o.snapshots {
		err = errors.Join(err, addSnapshots(mgr, o, detector))
	}
	if o.policies {
		policies := &policy.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}
		err = errors.Join(err, addWhenInstalled(mgr, v1alpha1.LifecyclePolicyKind, func() error { return policies.SetupWithManager(mgr) }))
	}
	if o.ttl {
		err = errors.Join(err, addTTL(mgr, o, reconciler.Finish))
	}
	if o.audit {
		err = errors.Join(err, addAudit(mgr))
	}
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("ping", healthz.Ping)
}

// addSnapshots adds what keeps TrainJobs on their runtime.
func addSnapshots(mgr ctrl.Manager, o options, detector *trainer.Detector) error {
	writes, err := snapshot.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	snapshots := &snapshot.Reconciler{
		Client:  mgr.GetClient(),
		Live:    mgr.GetAPIReader(),
		Clock:   clock.RealClock{},
		Trainer: detector,
		Metrics: writes,
	}
	err = addWhenInstalled(mgr, v1alpha1.TrainingRuntimeSnapshotKind, func() error { return snapshots.SetupWithManager(mgr, o.workers) })
	for _, kind := range runtimeKinds {
		stamper := &snapshot.Stamper{Kind: kind, Cache: mgr.GetCache(), Client: mgr.GetClient(), Metrics: writes}
		err = errors.Join(err, stamper.SetupWithManager(mgr))
	}
	return err
}

// addTTL adds what removes finished TrainJobs. Before a TrainJob goes, before is called with it.
func addTTL(mgr ctrl.Manager, o options, before func(context.Context, *trainer.TrainJob) error) error {
	removals, err := ttl.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	says := &finished{cache: mgr.GetCache()}
	cleaner := &ttl.Reconciler{
		Client:  mgr.GetClient(),
		Live:    mgr.GetAPIReader(),
		Clock:   clock.RealClock{},
		Rules:   says.rules,
		Before:  before,
		Metrics: removals,
	}
	if !o.policies {
		return cleaner.SetupWithManager(mgr, nil)
	}
	says.policies = &policy.Reader{Cache: mgr.GetCache(), Live: mgr.GetAPIReader()}
	return addWhenInstalled(mgr, v1alpha1.LifecyclePolicyKind, func() error { return cleaner.SetupWithManager(mgr, policy.Namespace()) })
}

// addAudit adds what reports stored runtimes.
func addAudit(mgr ctrl.Manager) error {
	clocks, err := guard.NewAuditMetric(metrics.Registry)
	for _, kind := range runtimeKinds {
		auditor := &guard.Auditor{Kind: kind, Cache: mgr.GetCache(), Client: mgr.GetClient(), Clock: clock.RealClock{}, Metric: clocks}
		err = errors.Join(err, auditor.SetupWithManager(mgr))
	}
	return err
}

// lease returns the lock of the leader election. The holder is named by its pod where that
// is known: a container that restarts in its pod takes its own Lease back at once, where a
// random name would make it wait for the old one to run out.
func lease(cfg *rest.Config, namespace string) (resourcelock.Interface, error) {
	identity := os.Getenv("POD_NAME")
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name the holder of the lease: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: identity}, cfg, renewDeadline)
}
