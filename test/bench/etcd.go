package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// store is the etcd of a cluster.
type store struct{ *clientv3.Client }

// openStore connects to the etcd of the cluster; it must be closed.
func openStore(ctx context.Context, c *cluster.Cluster) (*store, error) {
	opened, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{c.EtcdURL}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return &store{opened}, nil
}

// keyOf returns the key of a namespaced custom object: its group and its resource are as in its
// URL. Of a core object the group is "".
func keyOf(group, resource, namespace, name string) string {
	parts := []string{"/registry", group, resource, namespace, name}
	if group == "" {
		parts = []string{"/registry", resource, namespace, name}
	}
	return strings.Join(parts, "/")
}

// value returns what is stored at the key; nil when there is nothing.
func (s *store) value(ctx context.Context, key string) ([]byte, error) {
	found, err := s.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if len(found.Kvs) == 0 {
		return nil, nil
	}
	return found.Kvs[0].Value, nil
}
