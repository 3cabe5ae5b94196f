package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// events has a TrainJob run into a deadline that its runtime gave it, and returns the events that
// Signalbox has written.
func (s *storages) events(ctx context.Context) ([]sizedObject, error) {
	const name = "deadline"
	runtime := runtimeOf(name, 2000)
	// The event that it comes near is written when a tenth is left: on a busy machine too.
	runtime.SetAnnotations(map[string]string{v1alpha1.AnnotationDefaultActiveDeadlineSeconds: "10"})
	if err := s.add(ctx, runtime, keeping{}); err != nil {
		return nil, err
	}
	// It is no runtime to compare.
	s.found = s.found[:len(s.found)-1]
	if err := s.cluster.Client.Create(ctx, trainJob(s.namespace, name, name, nil)); err != nil {
		return nil, err
	}
	var events []sizedObject
	err := eventually(ctx, "the event of a deadline", func(ctx context.Context) error {
		var list corev1.EventList
		if err := s.cluster.Client.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		events = nil
		ended := false
		for _, event := range list.Items {
			if event.Source.Component != v1alpha1.FieldManager {
				continue
			}
			value, err := s.etcd.value(ctx, keyOf("", "events", s.namespace, event.Name))
			if err != nil {
				return err
			}
			ended = ended || event.Reason == trainer.ReasonDeadlineExceeded
			events = append(events, sizedObject{fmt.Sprintf("Event %s of a TrainJob", event.Reason), len(value)})
		}
		if !ended {
			return fmt.Errorf("there are %d events of Signalbox", len(events))
		}
		return nil
	})
	return events, err
}

// installed returns all in etcd that comes with the installation of Signalbox, in the order of keys:
// what has its name or its API group in the key.
func (s *storages) installed(ctx context.Context) ([]sizedObject, error) {
	all, err := s.etcd.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
	if err != nil {
		return nil, fmt.Errorf("list the keys: %w", err)
	}
	var objects []sizedObject
	for _, found := range all.Kvs {
		key := string(found.Key)
		if !belongsToInstallation(key) {
			continue
		}
		value, err := s.etcd.value(ctx, key)
		if err != nil {
			return nil, err
		}
		objects = append(objects, sizedObject{strings.TrimPrefix(key, "/registry/"), len(value)})
	}
	if len(objects) == 0 {
		return nil, errors.New("nothing of the installation is in etcd")
	}
	return objects, nil
}

// belongsToInstallation tells whether the object of a key comes with the installation. What is in
// the namespaces of the bench, or an event, does not.
func belongsToInstallation(key string) bool {
	for _, namespace := range storageNamespaces {
		if strings.Contains(key, "/"+namespace+"/") {
			return false
		}
	}
	if strings.HasPrefix(key, "/registry/events/") {
		return false
	}
	return strings.Contains(key, v1alpha1.FieldManager) || strings.Contains(key, v1alpha1.Group)
}

// shares is what of an object is what, in bytes of JSON.
type shares struct {
	// annotations are those of Signalbox in the metadata, managedFields what these add to the
	// managedFields.
	annotations, managedFields int
	// seal is the compressed runtime that is one of the annotations, without its name.
	seal int
	// allManagedFields are the managedFields as a whole.
	allManagedFields int
}

// sharesOf measures a custom object as it is stored.
func sharesOf(stored []byte) (shares, error) {
	var object struct {
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(stored, &object); err != nil {
		return shares{}, fmt.Errorf("read a stored object: %w", err)
	}
	size := func() int {
		text, err := json.Marshal(object)
		if err != nil {
			panic(err) // it was JSON
		}
		return len(text)
	}
	var s shares
	annotations, _ := object.Metadata["annotations"].(map[string]any)
	seal, _ := annotations[v1alpha1.AnnotationRuntimeSnapshot].(string)
	s.seal = len(seal)
	whole := size()
	withoutOurs(object.Metadata, "annotations", "")
	s.annotations = whole - size()
	entries, _ := object.Metadata["managedFields"].([]any)
	whole = size()
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)["fieldsV1"].(map[string]any)
		metadata, _ := fields["f:metadata"].(map[string]any)
		withoutOurs(metadata, "f:annotations", "f:")
		if metadata != nil && len(metadata) == 0 {
			delete(fields, "f:metadata")
		}
	}
	s.managedFields = whole - size()
	delete(object.Metadata, "managedFields")
	s.allManagedFields = whole - size()
	return s, nil
}

// withoutOurs takes Signalbox's keys, which have a prefix before its group, out of the map that
// parent has under this key, and the map itself when nothing of others is left in it.
func withoutOurs(parent map[string]any, key, prefix string) {
	entries, found := parent[key].(map[string]any)
	if !found {
		return
	}
	removed := false
	for name := range entries {
		if strings.HasPrefix(name, prefix+v1alpha1.Group+"/") {
			delete(entries, name)
			removed = true
		}
	}
	// A dot stands for the map itself.
	if _, itself := entries["."]; removed && (len(entries) == 0 || len(entries) == 1 && itself) {
		delete(parent, key)
	}
}
