// Package cluster starts a real Kubernetes control plane for tests, without
// containers: etcd, kube-apiserver with RBAC, kube-controller-manager,
// kube-scheduler, nodes played by kwok, JobSet and Trainer, and on request Kueue
// and signalbox. All parts are processes of this machine on ports of 127.0.0.1.
//
// Every part acts as its own service account and has the rights of its released
// manifests, so that a missing right shows. Whatever happens to the calling
// process, no process and no file of a cluster outlives it.
package cluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// Options says what a cluster consists of. The zero value is the stock stack
// with two nodes.
type Options struct {
	// Kueue adds Kueue, with its integrations of JobSets and TrainJobs. It puts a job whose
	// pods are not all ready for a minute back in its queue.
	Kueue bool
	// Signalbox adds the webhook and the reconciler, built from this source and
	// installed by the chart.
	Signalbox bool
	// Pods has Deployments, ReplicaSets and Services work as in any cluster: the pods of
	// Signalbox, which a test installs by Helm, run as processes of this machine, see Pod, and
	// the API server reaches those that are ready by their Service. Not with Signalbox or
	// KindsOnly.
	Pods bool
	// KindsOnly leaves out the programs and the webhooks of JobSet and Trainer, and with
	// them the scheduler and the nodes. Their kinds, service accounts and rights are there:
	// a test plays what it needs of them, and may change the kinds. Not with Kueue.
	KindsOnly bool
	// HelmValues are --set arguments for the chart, such as "webhook.replicas=3".
	HelmValues []string
	// Nodes is the number of fake nodes, 2 if it is 0. Each has 64 CPUs, 512 GiB of
	// memory, 8 nvidia.com/gpu and room for 1000 pods.
	Nodes int
	// Unthrottled lifts the limits that the neighbours put on their own requests to the API
	// server: what is measured is then the work, not a limit. By default they have those that
	// they are released with, or such as let tests be fast.
	Unthrottled bool
	// CompletePodsAfter is how long the pods of Jobs run until they succeed. With 0
	// they run until a test patches their status.phase to Succeeded or Failed.
	CompletePodsAfter time.Duration
	// Log gets a line for each step, with the time since the start; nil discards
	// them.
	Log io.Writer
	// Bare leaves out all but etcd and the API server, also the kinds of JobSet and Trainer. Not with
	// any other option.
	Bare bool
}

// Cluster is a running control plane. End it with Close.
type Cluster struct {
	// Config has all rights (group system:masters) and no client-side rate limit.
	Config *rest.Config
	// Client uses Config. It knows the types of core, batch, apps, rbac,
	// coordination, admissionregistration, apiextensions and policy; other kinds go through
	// unstructured.Unstructured. It reads live, without a cache.
	Client client.Client
	// Kubeconfig is the path of a kubeconfig with the rights of Config.
	Kubeconfig string
	// Kubectl is the path of a kubectl of the cluster's version.
	Kubectl string
	// EtcdURL is where etcd serves its clients, without TLS. The API server's objects are below
	// /registry.
	EtcdURL string
	// Dir is the cluster's own folder, with the logs of all parts in Dir/logs. Close
	// removes it.
	Dir string

	// The parts. A test may stop, kill and start them; they keep their ports. Those
	// that Options did not ask for are nil.
	Etcd, APIServer, ControllerManager, Scheduler, Kwok *Process
	JobSet, Trainer, Kueue, Webhook, Reconciler         *Process

	options    Options
	root       string
	binaries   map[string]string
	modules    map[string]string
	signalbox  struct{ webhook, reconciler string }
	supervisor *supervisor
	ports      *ports
	certs      *certs
	http       *http.Client
	log        *progress
	parts      []*Process
	kubelet    *kubelet
	services   *services
	// definitions names the CRDs that are installed.
	definitions []string

	mu      sync.Mutex
	unpause func()
	closed  bool
}

// closeTimeout is how long parts may take to end by themselves in Close before
// they are killed. Nothing of a cluster is kept, so little is lost.
const closeTimeout = 3 * time.Second

// Start starts a cluster and returns when every part works: each says that it is
// ready, each webhook is called by the API server, the garbage collector knows
// the custom kinds and the nodes take pods. Missing programs are built first,
// which takes minutes at the first time; see package binaries. When it fails, or
// ctx ends, nothing is left behind.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{options: options, log: newProgress(options.Log)}
	if c.options.Nodes == 0 {
		c.options.Nodes = 2
	}
	if c.options.Kueue && c.options.KindsOnly {
		return nil, errors.New("the options Kueue and KindsOnly exclude each other")
	}
	if c.options.Pods && (c.options.Signalbox || c.options.KindsOnly) {
		return nil, errors.New("the option Pods excludes the options Signalbox and KindsOnly")
	}
	err := c.build(ctx)
	if err == nil {
		err = c.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.log.step("the cluster is up")
	return c, nil
}

// build provides the programs and the manifests, which are shared by all
// clusters and stay.
func (c *Cluster) build(ctx context.Context) (err error) {
	if c.root, err = binaries.Root(); err != nil {
		return err
	}
	names := []string{binaries.Etcd, binaries.APIServer}
	modules := []string{binaries.JobSetModule, binaries.TrainerModule, binaries.KwokModule}
	if !c.options.Bare {
		names = append(names, binaries.ControllerManager, binaries.Kubectl)
	}
	if !c.options.Bare && !c.options.KindsOnly {
		names = append(names, binaries.Scheduler, binaries.JobSet, binaries.Trainer, binaries.Kwok)
	}
	if c.options.Kueue {
		names = append(names, binaries.Kueue)
		modules = append(modules, binaries.KueueModule)
	}
	if c.binaries, err = binaries.Ensure(ctx, c.root, c.log, names...); err != nil || c.options.Bare {
		return err
	}
	c.Kubectl = c.binaries[binaries.Kubectl]
	c.modules, err = binaries.ModuleDirs(ctx, c.root, c.log, modules...)
	return err
}

// start runs the parts, those that do not need each other at the same time.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	var content *manifests
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.startAPIServer(groupCtx) })
	if !c.options.Bare {
		group.Go(func() (err error) {
			content, err = c.render(groupCtx)
			return err
		})
	}
	if err := group.Wait(); err != nil || c.options.Bare {
		return err
	}
	if err := c.install(ctx, content.all()); err != nil {
		return err
	}
	c.log.step("manifests installed")
	if err := c.startRest(ctx, content); err != nil {
		return err
	}
	return c.prove(ctx)
}

// prepare makes the cluster's folder and all that is written before any part
// runs.
func (c *Cluster) prepare() error {
	dir, err := os.MkdirTemp("", "signalbox-cluster-")
	if err != nil {
		return err
	}
	// From here on the folder is removed whatever comes.
	if c.supervisor, err = supervise(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	// kustomize follows relative paths, which lead astray from behind a link.
	if c.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	for _, name := range []string{"logs", "kubeconfig", "tmp/k8s-webhook-server"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, name), 0o755); err != nil {
			return err
		}
	}
	if c.certs, err = newCerts(filepath.Join(c.Dir, "certs")); err != nil {
		return err
	}
	c.http = c.certs.httpClient()
	if c.ports, err = claimPorts(); err != nil {
		return err
	}
	// The one place where Trainer looks for its certificate, see env.
	return os.Symlink(c.certs.dir, filepath.Join(c.Dir, "tmp", "k8s-webhook-server", "serving-certs"))
}

// startAPIServer starts etcd and the API server and makes the admin's clients.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	port := c.ports.take()
	if err := c.writeUsers("https://" + address(port)); err != nil {
		return err
	}
	c.Kubeconfig = c.kubeconfig(adminUser)
	var err error
	if c.options.Pods {
		if c.services, err = c.serveServices(); err != nil {
			return err
		}
	}
	if c.Config, err = adminConfig(c.Kubeconfig); err != nil {
		return err
	}
	c.Etcd = c.newEtcd()
	c.APIServer = c.newAPIServer(port)
	for _, p := range []*Process{c.Etcd, c.APIServer} {
		if err := p.Start(ctx); err != nil {
			return err
		}
		c.log.step("%s is ready", p.Name)
	}
	if c.Client, err = newClient(c.Config); err != nil {
		return err
	}
	return c.waitNamespaces(ctx)
}

// Close ends all parts, at once and in parallel, and removes the cluster's
// folder. It returns an error if signalbox was built with -race and has reported
// a data race. A second call does nothing.
func (c *Cluster) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.endPause()
	if c.kubelet != nil {
		c.kubelet.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var group errgroup.Group
	for _, p := range c.parts {
		// The API server and etcd wait for their clients, and keep nothing.
		if p != c.APIServer && p != c.Etcd {
			group.Go(func() error { return p.Stop(ctx) })
		}
	}
	_ = group.Wait() // what does not end by itself is killed by the supervisor
	for _, p := range []*Process{c.APIServer, c.Etcd} {
		if p != nil {
			p.Kill()
		}
	}
	err := c.races()
	if c.services != nil {
		err = errors.Join(err, c.services.Close())
	}
	if c.supervisor != nil {
		err = errors.Join(err, c.supervisor.Close())
	}
	if c.Dir != "" {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	if c.ports != nil {
		err = errors.Join(err, c.ports.Close())
	}
	c.log.step("the cluster is gone")
	return err
}
