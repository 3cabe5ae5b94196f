package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// laterInstalled knows a kind from an instant on.
type laterInstalled struct {
	meta.RESTMapper
	kind string
	from time.Time
}

func (m *laterInstalled) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind != (schema.GroupKind{Group: v1alpha1.Group, Kind: m.kind}) || time.Now().Before(m.from) {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{}, nil
}

// What needs a kind is set up once it is installed, and not when the process ends before.
func TestWhenInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		want := errors.New("of the setup")
		w := &whenInstalled{
			mapper: &laterInstalled{kind: v1alpha1.LifecyclePolicyKind, from: began.Add(betweenLooks + time.Second)},
			kind:   v1alpha1.LifecyclePolicyKind,
			setup:  func() error { return want },
		}
		if err := w.Start(t.Context()); !errors.Is(err, want) || time.Since(began) != 2*betweenLooks {
			t.Errorf("ended with %v after %s; want what the setup says, after %s", err, time.Since(began), 2*betweenLooks)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		w := &whenInstalled{mapper: &laterInstalled{}, kind: v1alpha1.LifecyclePolicyKind, setup: func() error { t.Error("set up"); return nil }}
		if err := w.Start(ctx); err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}
