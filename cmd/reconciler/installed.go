package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// betweenLooks is how often it is looked whether a kind is installed.
const betweenLooks = 5 * time.Second

// whenInstalled sets up what needs a kind of Signalbox's own as soon as that is installed. A
// controller that watches a kind that is not there ends the process after some time: deadlines
// must not depend on it.
type whenInstalled struct {
	mapper meta.RESTMapper
	kind   string
	setup  func() error
}

// addWhenInstalled adds to the manager what is set up once the kind is installed.
func addWhenInstalled(mgr ctrl.Manager, kind string, setup func() error) error {
	return mgr.Add(&whenInstalled{mapper: mgr.GetRESTMapper(), kind: kind, setup: setup})
}

// Start waits for the kind. An error of the API server counts as not knowing yet.
func (w *whenInstalled) Start(ctx context.Context) error {
	kind := schema.GroupKind{Group: v1alpha1.Group, Kind: w.kind}
	said := false
	err := wait.PollUntilContextCancel(ctx, betweenLooks, true, func(ctx context.Context) (bool, error) {
		_, err := w.mapper.RESTMapping(kind, v1alpha1.GroupVersion.Version)
		if err != nil && !said {
			said = true
			log.FromContext(ctx).Error(err, "a kind of Signalbox's own is not installed; what needs it waits", "kind", w.kind)
		}
		return err == nil, nil
	})
	if err != nil {
		// The process ends.
		return nil
	}
	return w.setup()
}

// NeedLeaderElection is false: a replica that waits for its turn gets ready, too.
func (w *whenInstalled) NeedLeaderElection() bool { return false }
