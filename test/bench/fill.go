package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// Names of the copies.
const (
	fillNamespaces = 50
	fillNamespace  = "scale-%02d"
	fillName       = "job-%06d"
)

// filler fills a cluster with TrainJobs that are active, sealed and have a deadline, and with what
// Signalbox keeps beside each.
type filler struct {
	cluster  *cluster.Cluster
	store    *store
	template *template
	next     int
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
	template, err := newTemplate(ctx, c, store, namespace, name)
	return &filler{cluster: c, store: store, template: template, next: 1}, err
}

// fill adds copies until there are so many TrainJobs, and waits until the API server has them.
func (f *filler) fill(ctx context.Context, count int) error {
	err := f.store.copyAll(ctx, most, func() ([]clientv3.Op, error) {
		if f.next >= count {
			return nil, nil
		}
		number := f.next
		f.next++
		return f.template.copy(fmt.Sprintf(fillNamespace, number%fillNamespaces), fmt.Sprintf(fillName, number),
			func(value []byte) []byte { return sealedLater(value, number) })
	})
	if err != nil {
		return err
	}
	return f.arrived(ctx, count)
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
