package cluster

import (
	"context"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// manifests is what gets installed, and where the webhooks in it are served:
// port and URLs by the namespace of the part that serves them.
type manifests struct {
	neighbours, chart []*unstructured.Unstructured
	ports             map[string]int
	urls              map[string][]string
}

func (m *manifests) all() []*unstructured.Unstructured {
	return append(append([]*unstructured.Unstructured{}, m.neighbours...), m.chart...)
}

// render makes all manifests ready to be installed, and builds signalbox.
func (c *Cluster) render(ctx context.Context) (*manifests, error) {
	m := &manifests{ports: map[string]int{jobSetNamespace: c.ports.take(), trainerNamespace: c.ports.take()}}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		m.neighbours, err = c.kustomize(ctx)
		return err
	})
	if c.options.Kueue {
		m.ports[kueueNamespace] = c.ports.take()
	}
	if c.options.Signalbox || c.options.Pods {
		group.Go(func() (err error) {
			c.signalbox.webhook, c.signalbox.reconciler, err = binaries.Signalbox(ctx, c.root, c.log)
			return err
		})
	}
	if c.options.Signalbox {
		m.ports[signalboxNamespace] = c.ports.take()
		group.Go(func() (err error) {
			m.chart, err = c.renderSignalbox(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	c.log.step("manifests rendered")
	if c.options.KindsOnly {
		m.neighbours = slices.DeleteFunc(m.neighbours, isWebhookConfiguration)
	}
	c.fillKueueSecret(m.neighbours)
	var err error
	m.urls, err = c.pointWebhooks(m.all(), m.ports)
	return m, err
}

// startRest starts the parts that need the API server and the installed kinds,
// all at the same time.
func (c *Cluster) startRest(ctx context.Context, m *manifests) error {
	if err := c.newRest(m); err != nil {
		return err
	}
	if err := c.bindControllerManager(ctx); err != nil {
		return err
	}
	if !c.options.KindsOnly {
		if err := c.createNodes(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range c.parts {
		if p.Running() {
			continue // etcd and the API server
		}
		group.Go(func() error {
			err := p.Start(ctx)
			if err == nil {
				c.log.step("%s is ready", p.Name)
			}
			return err
		})
	}
	return group.Wait()
}

func (c *Cluster) newRest(m *manifests) error {
	c.ControllerManager = c.newControllerManager()
	if !c.options.KindsOnly {
		if err := c.newNeighbours(m); err != nil {
			return err
		}
	}
	var err error
	if c.options.Pods {
		if c.kubelet, err = c.startKubelet(); err == nil {
			c.services.kubelet.Store(c.kubelet)
		}
	}
	if err != nil || !c.options.Signalbox {
		return err
	}
	if c.Webhook, err = c.newWebhook(m.chart, m.ports[signalboxNamespace], m.urls[signalboxNamespace]); err != nil {
		return err
	}
	c.Reconciler, err = c.newReconciler(m.chart)
	return err
}

func (c *Cluster) newNeighbours(m *manifests) (err error) {
	c.Scheduler = c.newScheduler()
	if c.Kwok, err = c.newKwok(); err != nil {
		return err
	}
	if c.JobSet, err = c.newJobSet(m.ports[jobSetNamespace], m.urls[jobSetNamespace]); err != nil {
		return err
	}
	if c.Trainer, err = c.newTrainer(m.ports[trainerNamespace], m.urls[trainerNamespace]); err != nil {
		return err
	}
	if c.options.Kueue {
		c.Kueue, err = c.newKueue(m.ports[kueueNamespace], m.urls[kueueNamespace])
	}
	return err
}

// writeConfig writes the configuration file of a part and returns its path.
func (c *Cluster) writeConfig(name string, content object) (string, error) {
	path := filepath.Join(c.Dir, name+".yaml")
	return path, writeYAML(path, content)
}

// prove waits until the parts work together. A TrainJob passes the webhooks of
// all that are installed, so none can be proven before all are up.
func (c *Cluster) prove(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	var proofs []func(context.Context) error
	if !c.options.KindsOnly {
		group.Go(func() error { return c.waitNodes(groupCtx) })
		group.Go(func() error { return c.proveJobSet(groupCtx) })
		proofs = append(proofs, c.proveTrainer)
	}
	group.Go(func() error {
		if c.Kueue != nil {
			proofs = append(proofs, c.proveKueue)
		}
		if c.Webhook != nil {
			proofs = append(proofs, c.proveSignalbox)
		}
		for _, prove := range append(proofs, c.proveGarbageCollector) {
			if err := prove(groupCtx); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}
