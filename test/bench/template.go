package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// storedKind is a kind of which something is stored for each TrainJob.
type storedKind struct {
	schema.GroupVersionKind
	// folder is where etcd has it: GROUP/RESOURCE, of Kubernetes's own kinds without the group.
	folder string
}

// storedKinds are the kinds of all that is stored for a TrainJob that runs, but events.
var storedKinds = []storedKind{
	{trainer.GroupVersion.WithKind(trainer.TrainJobKind), trainer.GroupVersion.Group + "/trainjobs"},
	{v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind), v1alpha1.Group + "/trainingruntimesnapshots"},
	{trainer.JobSetGroupVersionKind, trainer.JobSetGroupVersionKind.Group + "/jobsets"},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps"},
	{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "services/specs"},
	{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "jobs"},
	{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods"},
}

// template is what etcd has of one TrainJob that went the ordinary way. Copies of it, with other
// UIDs, and names of the same length since lengths are stored too, are written to etcd, which
// takes seconds where thousands of TrainJobs on their ordinary way would take an hour.
type template struct {
	namespace, name string
	uids            []string
	// parts are what is stored by key.
	parts map[string][]byte
}

// newTemplate reads what is stored for a TrainJob: what has its name in its own. It must rest.
func newTemplate(ctx context.Context, c *cluster.Cluster, store *store, namespace, name string) (*template, error) {
	t := &template{namespace: namespace, name: name, parts: map[string][]byte{}}
	for _, kind := range storedKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.Client.List(ctx, list, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for _, object := range list.Items {
			if !strings.HasPrefix(object.Name, name) {
				continue
			}
			key := strings.Join([]string{"/registry", kind.folder, namespace, object.Name}, "/")
			value, err := store.value(ctx, key)
			if err != nil {
				return nil, err
			}
			if !bytes.Contains(value, []byte(object.UID)) {
				return nil, fmt.Errorf("%s is not as it was written", key)
			}
			t.parts[key] = value
			t.uids = append(t.uids, string(object.UID))
		}
	}
	return t, nil
}

// copy returns what stores a copy of the TrainJob under this name, with each part as edit leaves it.
func (t *template) copy(namespace, name string, edit func([]byte) []byte) ([]clientv3.Op, error) {
	if len(namespace) != len(t.namespace) || len(name) != len(t.name) {
		return nil, fmt.Errorf("%s/%s is not as long as %s/%s", namespace, name, t.namespace, t.name)
	}
	names := []string{t.namespace, namespace, t.name, name}
	for _, uid := range t.uids {
		names = append(names, uid, string(uuid.NewUUID()))
	}
	replacer := strings.NewReplacer(names...)
	var puts []clientv3.Op
	for key, value := range t.parts {
		puts = append(puts, clientv3.OpPut(replacer.Replace(key), string(edit([]byte(replacer.Replace(string(value)))))))
	}
	return puts, nil
}

// most is how many objects go into one transaction of etcd, which takes 128 at most.
const most = 126

// copyAll writes what each call of next returns, until that is nothing, up to so many objects in one
// transaction. Those have one revision, by which Kubernetes's garbage collector misses some:
// where it runs, each object needs its own.
func (s *store) copyAll(ctx context.Context, together int, next func() ([]clientv3.Op, error)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	var puts []clientv3.Op
	for more := true; more; {
		copied, err := next()
		if err != nil {
			return err
		}
		more = len(copied) > 0
		puts = append(puts, copied...)
		for len(puts) >= together || !more && len(puts) > 0 {
			size := min(together, len(puts))
			batch := puts[:size:size]
			puts = puts[size:]
			group.Go(func() error {
				_, err := s.Txn(ctx).Then(batch...).Commit()
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("fill etcd: %w", err)
	}
	return nil
}
