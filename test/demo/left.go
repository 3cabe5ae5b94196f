package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// wantLeft is what a finished TrainJob leaves: itself, Trainer's copy of the runtime, and the
// snapshot that people read.
var wantLeft = []key{
	{"ConfigMap", trainer.SnapshotConfigMap(jobName)}, {kindTrainJob, jobName}, {v1alpha1.TrainingRuntimeSnapshotKind, jobName},
}

// leftover is what is in the namespace, split by whether the TrainJob is the cause.
type leftover struct {
	objects []key
	// given are there in every namespace.
	given []key
	// events go by themselves after an hour.
	events int
}

// sortOut splits the objects of the namespace.
func sortOut(all []key) leftover {
	var left leftover
	for _, k := range all {
		switch k {
		case key{"ServiceAccount", "default"}, key{"ConfigMap", "kube-root-ca.crt"}:
			left.given = append(left.given, k)
			continue
		}
		if k.kind == kindEvent {
			left.events++
			continue
		}
		left.objects = append(left.objects, k)
	}
	slices.SortFunc(left.objects, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
	return left
}

// others says, for the reader, what else is there.
func (l leftover) others() string {
	var words []string
	for _, k := range l.given {
		words = append(words, k.kind+" "+k.name)
	}
	words = append(words, fmt.Sprintf("%d events", l.events))
	return "besides: " + strings.Join(words, ", ")
}

// awaitLeft lists the namespace until only what a finished TrainJob leaves is there: the
// garbage collector takes the rest, but in its own time.
func (d *demo) awaitLeft(ctx context.Context) (leftover, error) {
	kinds, err := d.listableKinds()
	if err != nil {
		return leftover{}, err
	}
	var left leftover
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		all, err := d.list(ctx, kinds)
		if err != nil {
			return false, err
		}
		left = sortOut(all)
		return slices.Equal(left.objects, wantLeft), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = d.failed(fmt.Errorf("after %s the namespace has %v, want %v", patience, left.objects, wantLeft), d.cluster.ControllerManager)
	}
	return left, err
}

// listableKinds returns every kind of the API whose objects live in namespaces.
func (d *demo) listableKinds() (map[schema.GroupVersionResource]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(d.cluster.Config)
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("discover the kinds of the API: %w", err)
	}
	kinds := map[schema.GroupVersionResource]string{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		if version.Group == "events.k8s.io" {
			continue // the same objects as the core API's events
		}
		for _, resource := range list.APIResources {
			kinds[version.WithResource(resource.Name)] = resource.Kind
		}
	}
	return kinds, nil
}

// list returns all objects of these kinds in the namespace.
func (d *demo) list(ctx context.Context, kinds map[schema.GroupVersionResource]string) ([]key, error) {
	config := rest.CopyConfig(d.cluster.Config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // all kinds are asked for, also deprecated ones
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var all []key
	for resource, kind := range kinds {
		objects, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for i := range objects.Items {
			all = append(all, key{kind, objects.Items[i].Name})
		}
	}
	return all, nil
}
