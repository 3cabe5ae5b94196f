package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// Names of the copies: all as long as those of the template, since a copy is made by putting
// other names of the same length in the stored bytes.
const (
	fillNamespaces = 50
	fillNamespace  = "scale-%02d"
	fillName       = "job-%06d"
)

// filler fills a cluster with TrainJobs that are active, sealed and have a deadline, and with what
// Signalbox keeps beside each: copies of one that went the ordinary way, written to etcd, which
// takes seconds where the API server would take half an hour.
type filler struct {
	cluster *cluster.Cluster
	store   *store
	// parts are the stored objects of the template.
	parts []part
	uid   string
	next  int
}

// part is one stored object of the template.
type part struct {
	key string
	// value has the object's own UID in it, also where it is not the TrainJob's.
	value []byte
	uid   string
}

// newFiller makes the namespaces and the template, with the parts of the cluster running.
func newFiller(ctx context.Context, c *cluster.Cluster, store *store) (*filler, error) {
	for i := range fillNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf(fillNamespace, i)}}
		if err := c.Client.Create(ctx, namespace); err != nil {
			return nil, err
		}
	}
	namespace, name := fmt.Sprintf(fillNamespace, 0), fmt.Sprintf(fillName, 0)
	job := trainJob(namespace, name, builtIn, nil)
	job.SetAnnotations(map[string]string{v1alpha1.AnnotationActiveDeadlineSeconds: "2592000"})
	if err := c.Client.Create(ctx, job); err != nil {
		return nil, err
	}
	f := &filler{cluster: c, store: store, uid: string(job.GetUID()), next: 1}
	config, filed := &corev1.ConfigMap{}, &metav1.PartialObjectMetadata{}
	filed.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind))
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: trainer.SnapshotConfigMap(name)}, config)
		if err == nil {
			err = c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, filed)
		}
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("what is kept of the runtime of the template: %w", err)
	}
	for _, kept := range []struct{ key, uid string }{
		{keyOf(trainer.GroupVersion.Group, "trainjobs", namespace, name), f.uid},
		{keyOf("", "configmaps", namespace, config.Name), string(config.UID)},
		{keyOf(v1alpha1.Group, "trainingruntimesnapshots", namespace, name), string(filed.UID)},
	} {
		value, err := store.value(ctx, kept.key)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(value, []byte(kept.uid)) {
			return nil, fmt.Errorf("%s is not as it was written", kept.key)
		}
		f.parts = append(f.parts, part{key: kept.key, value: value, uid: kept.uid})
	}
	return f, nil
}

// most is how many objects go into one transaction of etcd, which takes 128 at most.
const most = 126

// fill adds copies until there are so many TrainJobs, and waits until the API server has them.
func (f *filler) fill(ctx context.Context, count int) error {
	var group errgroup.Group
	group.SetLimit(8)
	var puts []clientv3.Op
	flush := func() {
		batch := puts
		puts = nil
		group.Go(func() error {
			_, err := f.store.Txn(ctx).Then(batch...).Commit()
			return err
		})
	}
	for ; f.next < count; f.next++ {
		puts = append(puts, f.copies(f.next)...)
		if len(puts) == most {
			flush()
		}
	}
	if len(puts) > 0 {
		flush()
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("fill etcd: %w", err)
	}
	return f.arrived(ctx, count)
}

// copies are the objects of the TrainJob of this number.
func (f *filler) copies(number int) []clientv3.Op {
	uid := string(uuid.NewUUID())
	replaced := func(text []byte) []byte {
		text = bytes.ReplaceAll(text, fmt.Appendf(nil, fillNamespace, 0), fmt.Appendf(nil, fillNamespace, number%fillNamespaces))
		text = bytes.ReplaceAll(text, fmt.Appendf(nil, fillName, 0), fmt.Appendf(nil, fillName, number))
		return bytes.ReplaceAll(text, []byte(f.uid), []byte(uid))
	}
	var puts []clientv3.Op
	for _, part := range f.parts {
		value := sealedLater(replaced(part.value), number)
		if part.uid != f.uid {
			value = bytes.ReplaceAll(value, []byte(part.uid), []byte(uuid.NewUUID()))
		}
		puts = append(puts, clientv3.OpPut(string(replaced([]byte(part.key))), string(value)))
	}
	return puts
}

// sealedLater changes when the TrainJob was sealed, if it is one, by so many seconds: no two that a
// user creates have the same seal.
func sealedLater(value []byte, seconds int) []byte {
	const key, head = `"` + v1alpha1.AnnotationRuntimeSnapshot + `":"`, 12
	at := bytes.Index(value, []byte(key))
	if at < 0 {
		return value
	}
	text := value[at+len(key):][:head]
	start, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		panic(err) // it is what the webhook wrote
	}
	binary.LittleEndian.PutUint32(start[4:], binary.LittleEndian.Uint32(start[4:])+uint32(seconds))
	base64.StdEncoding.Encode(text, start)
	return value
}

// arrived waits until the API server's cache has so many TrainJobs, and no fewer of the others.
func (f *filler) arrived(ctx context.Context, count int) error {
	for _, kind := range []metav1.TypeMeta{
		{APIVersion: trainer.GroupVersion.String(), Kind: "TrainJobList"},
		{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TrainingRuntimeSnapshotKind + "List"},
		{APIVersion: "v1", Kind: "ConfigMapList"},
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: kind}
		err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			if err := f.cluster.Client.List(ctx, list, client.Limit(1)); err != nil {
				return false, err
			}
			there := len(list.Items)
			if list.RemainingItemCount != nil {
				there += int(*list.RemainingItemCount)
			}
			return there >= count, nil
		})
		if err != nil {
			return fmt.Errorf("%d objects of %s: %w", count, kind.Kind, err)
		}
	}
	return nil
}
