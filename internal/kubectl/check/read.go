package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

const (
	// patience is how long one object may take: what hangs must not keep the rest back.
	patience = 15 * time.Second
	// atOnce is how many reads are made at once.
	atOnce = 8
	// renewal is how long a Lease that looks stale is looked at for a renewal, which comes every 2 s.
	renewal = 5 * time.Second
	// betweenLooks is how often it is looked at meanwhile.
	betweenLooks = 500 * time.Millisecond
)

// source is where facts come from.
type source struct {
	client.Reader
	Discovery discovery.DiscoveryInterface
	Clock     clock.PassiveClock
	// Namespace is where Signalbox is taken to be, if its webhook configurations do not tell.
	Namespace string
	// Renewal is how long a Lease that looks stale is looked at for a renewal.
	Renewal time.Duration
	// Skew tells how far the clock of the API server is ahead.
	Skew func(context.Context) (time.Duration, error)
	// Each lists all objects of a kind that are selected, in pages, and calls again whenever it begins
	// anew.
	Each func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selectors kubectl.Selectors, again func(), f func(*unstructured.Unstructured) error) (string, error)
}

// read reads all facts of a cluster. The error is that it cannot be reached.
func (s *source) read(ctx context.Context) (*Facts, error) {
	version, err := s.Discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	facts := &Facts{
		Namespace: s.Namespace, Version: version.GitVersion,
		CRDs: map[string]Seen[*apiextensionsv1.CustomResourceDefinition]{}, Runtimes: map[string]Seen[Audit]{},
	}
	s.readAround(ctx, facts)
	if namespace, _, found := service(facts); found {
		facts.Namespace = namespace
	}
	s.readOwn(ctx, facts)
	s.readServing(ctx, facts)
	return facts, ctx.Err()
}

// readAround reads what is there whether Signalbox is installed or not.
func (s *source) readAround(ctx context.Context, facts *Facts) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	run := func(f func()) { group.Go(func() error { f(); return nil }) }
	run(func() { facts.Served = s.served(ctx) })
	run(func() {
		facts.Mutating = get(ctx, s, &admissionregistrationv1.MutatingWebhookConfiguration{}, "", kubectl.ConfigurationName)
	})
	run(func() {
		facts.Validating = get(ctx, s, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", kubectl.ConfigurationName)
	})
	wanted := definitions()
	crds := make([]Seen[*apiextensionsv1.CustomResourceDefinition], len(wanted))
	for i, d := range wanted {
		run(func() { crds[i] = get(ctx, s, &apiextensionsv1.CustomResourceDefinition{}, "", d.Name) })
	}
	audits := make([]Seen[Audit], len(runtimeKinds))
	for i, kind := range runtimeKinds {
		run(func() { audits[i] = s.audit(ctx, kind) })
	}
	run(func() { facts.Policies = list[v1alpha1.LifecyclePolicy](ctx, s, policyKind, "", "", nil) })
	run(func() { facts.Namespaces = s.namespaces(ctx) })
	run(func() {
		facts.Trainers = list(ctx, s, deploymentKind, "", "app.kubernetes.io/part-of=kubeflow,app.kubernetes.io/component=manager", isTrainer)
	})
	run(func() { facts.Kueues = list(ctx, s, deploymentKind, "", "control-plane=controller-manager", isKueue) })
	_ = group.Wait() // what fails is in the facts
	for i, d := range wanted {
		facts.CRDs[d.Name] = crds[i]
	}
	for i, kind := range runtimeKinds {
		facts.Runtimes[kind] = audits[i]
	}
}

// readOwn reads the parts of Signalbox in its namespace, and last the Lease, so that Now is the
// instant at which that was so.
func (s *source) readOwn(ctx context.Context, facts *Facts) {
	facts.Webhook = get(ctx, s, &appsv1.Deployment{}, facts.Namespace, webhookName)
	facts.Reconciler = get(ctx, s, &appsv1.Deployment{}, facts.Namespace, reconcilerName)
	// Each answer until here has made the difference of the clocks more exact.
	facts.Skew = attempt(ctx, "the date of its answers", s.Skew)
	facts.Lease = get(ctx, s, &coordinationv1.Lease{}, facts.Namespace, reconcilerName)
	facts.Now = s.now(facts)
	if !isInstalled(facts) || !facts.Lease.There() || !stale(facts.Lease.Value, facts.Now) {
		return
	}
	// Either nobody renews it, or the clock of who does is behind.
	_ = wait.PollUntilContextTimeout(ctx, betweenLooks, s.Renewal, false, func(ctx context.Context) (bool, error) {
		again := get(ctx, s, &coordinationv1.Lease{}, facts.Namespace, reconcilerName)
		if !again.There() {
			return false, nil
		}
		facts.Later, facts.LaterAt = again.Value, s.now(facts)
		return !renewedAt(again.Value).Equal(renewedAt(facts.Lease.Value)), nil
	})
}

// now returns the instant by the clock of the API server, where that could be told.
func (s *source) now(facts *Facts) time.Time { return s.Clock.Now().Add(facts.Skew.Value) }

// The kinds that are listed.
var (
	policyKind     = v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind)
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	sliceKind      = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
	namespaceKind  = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// attempt makes a read, which bounds its time itself. what names it.
func attempt[T any](ctx context.Context, what string, read func(context.Context) (T, error)) Seen[T] {
	value, err := read(ctx)
	switch {
	case err == nil:
		return Seen[T]{Value: value}
	case kubectl.NotInstalled(err):
		return Seen[T]{Missing: true}
	}
	return Seen[T]{Unread: kubectl.Why(what, err)}
}

// get reads one object.
func get[T client.Object](ctx context.Context, s *source, object T, namespace, name string) Seen[T] {
	kind := fmt.Sprintf("%T", object)
	what := fmt.Sprintf("%s %s", kind[strings.LastIndex(kind, ".")+1:], name)
	return attempt(ctx, what, func(ctx context.Context) (T, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return object, s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
}

// list reads the objects of a kind for which keep is true, which is nil for all.
func list[T any](ctx context.Context, s *source, gvk schema.GroupVersionKind, namespace, selector string, keep func(*T) bool) Seen[[]T] {
	return attempt(ctx, plurals(gvk.Kind), func(ctx context.Context) ([]T, error) {
		var found []T
		again := func() { found = nil }
		_, err := s.Each(ctx, gvk, namespace, kubectl.Selectors{Label: selector}, again, func(object *unstructured.Unstructured) error {
			var typed T
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed)
			if err == nil && (keep == nil || keep(&typed)) {
				found = append(found, typed)
			}
			return err
		})
		return found, err
	})
}

// plurals returns the plural of a kind.
func plurals(kind string) string { return strings.TrimPrefix(plural(0, kind), "0 ") }

// audit looks at all runtimes of a kind, one page at a time.
func (s *source) audit(ctx context.Context, kind string) Seen[Audit] {
	return attempt(ctx, plurals(kind)+" of all namespaces", func(ctx context.Context) (Audit, error) {
		audit := Audit{}
		again := func() { clear(audit) }
		_, err := s.Each(ctx, trainer.GroupVersion.WithKind(kind), "", kubectl.Selectors{}, again, func(runtime *unstructured.Unstructured) error {
			audit.add(runtime)
			return nil
		})
		return audit, err
	})
}

// namespaces reads the labels of all namespaces.
func (s *source) namespaces(ctx context.Context) Seen[map[string]map[string]string] {
	return attempt(ctx, "namespaces", func(ctx context.Context) (map[string]map[string]string, error) {
		found := map[string]map[string]string{}
		again := func() { clear(found) }
		_, err := s.Each(ctx, namespaceKind, "", kubectl.Selectors{}, again, func(namespace *unstructured.Unstructured) error {
			found[namespace.GetName()] = namespace.GetLabels()
			return nil
		})
		return found, err
	})
}

// served asks which versions are served of the kinds that are looked for. What an API server of others
// does not tell is none of them.
func (s *source) served(ctx context.Context) Seen[map[string][]string] {
	return attempt(ctx, "what the API server serves", func(context.Context) (map[string][]string, error) {
		found := map[string][]string{}
		_, lists, err := s.Discovery.ServerGroupsAndResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
			return nil, err
		}
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				continue
			}
			for _, resource := range list.APIResources {
				if !strings.Contains(resource.Name, "/") {
					key := gv.Group + "/" + resource.Kind
					found[key] = append(found[key], gv.Version)
				}
			}
		}
		return found, nil
	})
}
