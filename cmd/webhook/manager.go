package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/internal/certificate"
	"github.com/signalbox-dev/signalbox/internal/command"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

type options struct {
	command.Flags
	host          string
	port          int
	certDir       string
	certSecret    string
	service       string
	configuration string
	trainerUser   string
	kueueUser     string
	runtimesInUse guard.Mode
	snapshots     bool
	gate          bool
	policies      bool
	drain         time.Duration
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("webhook", flag.ContinueOnError)
	o.Register(set)
	set.StringVar(&o.host, "webhook-host", "", "`ADDRESS` to serve on; by default all")
	set.IntVar(&o.port, "webhook-port", 9443, "`PORT` to serve on")
	set.StringVar(&o.certDir, "cert-dir", "", "`FOLDER` with tls.crt and tls.key, reread when they change; by default the certificate is self-managed in a Secret")
	set.StringVar(&o.certSecret, "cert-secret", "signalbox-webhook-cert", "`NAME` of the Secret of the self-managed certificate, in Signalbox's namespace")
	set.StringVar(&o.service, "service", "signalbox-webhook", "`NAME` of the Service that the self-managed certificate is for")
	set.StringVar(&o.configuration, "webhook-configuration", "signalbox", "`NAME` of the two webhook configurations, mutating and validating, that get the self-managed CA")
	set.StringVar(&o.trainerUser, "trainer-user", "", "`USER` name of Trainer's controller (system:serviceaccount:NAMESPACE:NAME), whose early enforcement of deadlines is corrected; by default nobody's")
	set.StringVar(&o.kueueUser, "kueue-user", "", "`USER` name of Kueue's controller (system:serviceaccount:NAMESPACE:NAME), which is shown what a TrainJob runs where its runtime has changed since; by default nobody")
	set.TextVar(&o.runtimesInUse, "runtimes-in-use", guard.Deny, "what becomes of the deletion of a runtime that unfinished TrainJobs use, and of an edit that breaks them: Deny, Warn or Allow")
	set.BoolVar(&o.snapshots, "snapshots", true, "seal TrainJobs on their runtime when they first become active; false also turns off --gate")
	set.BoolVar(&o.gate, "gate", true, "start no JobSet of a sealed TrainJob that is built from another content of its runtime")
	set.BoolVar(&o.policies, "policies", true, "go by LifecyclePolicies")
	set.DurationVar(&o.drain, "drain", 10*time.Second, "how long to serve on once told to stop, asking whoever calls to turn to another replica")
	if err := o.Parse(set, args, os.Stderr); err != nil {
		return o, err
	}
	if o.port < 1 || o.port > 65535 {
		return o, fmt.Errorf("--webhook-port must be from 1 to 65535, not %d", o.port)
	}
	if o.drain < 0 {
		return o, fmt.Errorf("--drain must not be negative, as %s is", o.drain)
	}
	return o, nil
}

// newManager wires the webhooks to a manager that serves them, and turns callers away once ctx has
// ended.
func newManager(ctx context.Context, o options) (ctrl.Manager, error) {
	// Every read answers a request that the API server has let through: no limit of our own.
	cfg, err := command.RESTConfig(-1, 0)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, trainer.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	keeper := &certificate.Keeper{
		Clock:         clock.RealClock{},
		Secret:        types.NamespacedName{Namespace: o.Namespace, Name: o.certSecret},
		Configuration: o.configuration,
		DNSName:       o.service + "." + o.Namespace + ".svc",
	}
	serving := keeper.GetCertificate
	var files *certwatcher.CertWatcher
	if o.certDir != "" {
		if files, err = certwatcher.New(filepath.Join(o.certDir, corev1.TLSCertKey), filepath.Join(o.certDir, corev1.TLSPrivateKeyKey)); err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
		serving = files.GetCertificate
	}
	if err := certificate.RegisterExpiry(metrics.Registry, serving); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cached(o),
		// A request that is never answered must not hold a worker for ever.
		Controller:             config.Controller{ReconciliationTimeout: command.RequestTimeout, CacheSyncTimeout: command.SyncTimeout},
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.ProbeAddress,
		PprofBindAddress:       o.PprofAddress,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: o.host, Port: o.port, TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = serving }},
		}),
		GracefulShutdownTimeout: ptr.To(command.StopTimeout),
	})
	if err != nil {
		return nil, err
	}
	if files != nil {
		err = mgr.Add(files)
	} else {
		keeper.Client = mgr.GetClient()
		err = errors.Join(keeper.SetupWithManager(mgr), mgr.AddReadyzCheck("certificate", keeper.Check))
	}
	if err != nil {
		return nil, err
	}
	return mgr, setup(ctx, mgr, o)
}

// setup adds the webhooks and the probes to the manager.
func setup(ctx context.Context, mgr ctrl.Manager, o options) error {
	server, clock := mgr.GetWebhookServer(), clock.RealClock{}
	if err := command.RegisterBuild(metrics.Registry); err != nil {
		return err
	}
	detector := &trainer.Detector{CRDs: mgr.GetCache()}
	if err := detector.SetupWithManager(mgr, metrics.Registry); err != nil {
		return err
	}
	seals, err := snapshot.NewAdmissionMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	views, err := kueue.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	decisions, err := policy.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	policies, err := readPolicies(mgr, o)
	if err != nil {
		return err
	}
	runtimes := snapshot.NewResolver(mgr.GetAPIReader())
	mutator := &admission.TrainJobMutator{
		Clock:             clock,
		Runtimes:          runtimes,
		Metrics:           seals,
		Unsealed:          !o.snapshots,
		Policies:          policies,
		HasActiveDeadline: detector.HasActiveDeadline,
	}
	gate := &admission.JobSetValidator{
		TrainJobs:      mgr.GetAPIReader(),
		ConfigMaps:     mgr.GetAPIReader(),
		Clock:          clock,
		KeepsSnapshots: detector.KeepsSnapshots,
		TrainerUser:    o.trainerUser,
	}
	if !o.gate || !o.snapshots {
		// As with a Trainer that does not: no content is judged.
		gate.KeepsSnapshots = func(context.Context) bool { return false }
	}
	view := &admission.WorkloadMutator{
		Live:           mgr.GetAPIReader(),
		Runtimes:       runtimes,
		Clock:          clock,
		KeepsSnapshots: detector.KeepsSnapshots,
		KueueUser:      o.kueueUser,
		Metrics:        views,
	}
	index := &guard.Index{Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Clock: clock}
	if o.runtimesInUse != guard.Allow {
		if err := mgr.Add(index); err != nil {
			return err
		}
	}
	limit := admission.NewLimit(clock)
	for path, handler := range map[string]webhook.AdmissionHandler{
		admission.TrainJobMutatePath:   mutator,
		admission.TrainJobValidatePath: &admission.TrainJobValidator{Policies: policies, Runtimes: runtimes, Decisions: decisions},
		admission.TrainJobStatusPath:   &admission.TrainJobStatusMutator{Clock: clock, TrainerUser: o.trainerUser},
		admission.JobSetValidatePath:   gate,
		admission.RuntimeMutatePath:    &admission.RuntimeMutator{},
		admission.WorkloadMutatePath:   view,
		admission.RuntimeValidatePath:  &admission.RuntimeValidator{Index: index, Live: mgr.GetAPIReader(), InUse: o.runtimesInUse},
	} {
		server.Register(path, turnAway(ctx, limit.Handler(&webhook.Admission{Handler: handler})))
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("serving", server.StartedChecker())
}

// readPolicies returns where policies are read; nil where none count. A replica that has not read
// them is not ready.
func readPolicies(mgr ctrl.Manager, o options) (*policy.Reader, error) {
	if !o.policies {
		return nil, nil
	}
	warm := &policy.Warm{Cache: mgr.GetCache()}
	if err := mgr.Add(warm); err != nil {
		return nil, err
	}
	return &policy.Reader{Cache: mgr.GetCache(), Live: mgr.GetAPIReader()}, mgr.AddReadyzCheck("policies", warm.Check)
}

// cached keeps the cache to the objects of the self-managed certificate, so that rights to
// these, by name, are all that it needs, to the CRD of TrainJobs, to what of TrainJobs tells
// which runtimes are in use, and to policies and the labels of namespaces.
func cached(o options) cache.Options {
	named := func(name string) fields.Selector {
		return fields.OneTermEqualSelector("metadata.name", name)
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{o.Namespace: {FieldSelector: named(o.certSecret)}},
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: named(o.configuration)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: named(o.configuration)},
		&apiextensionsv1.CustomResourceDefinition{}:               trainer.CacheCRD(),

		&trainer.TrainJob{}: guard.CacheTrainJobs(),
	}}
}
