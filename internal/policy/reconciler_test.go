package policy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/builder"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// policyBench is a reconciler on a fake API server.
type policyBench struct {
	*Reconciler
	t     *testing.T
	store client.WithWatch
	clock *clocktesting.FakePassiveClock
	// patches are the status writes that were sent, as JSON.
	patches []string
	// unlisted and unwritable are the answers to a list of namespaces and to a status write, if
	// they are set.
	unlisted, unwritable error
}

func newPolicyBench(t *testing.T, objects ...client.Object) *policyBench {
	t.Helper()
	b := &policyBench{t: t, clock: clocktesting.NewFakePassiveClock(now)}
	b.store = fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(builder.Copies(objects)...).WithStatusSubresource(&v1alpha1.LifecyclePolicy{}).Build()
	faulty := interceptor.NewClient(b.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			// As a cache does.
			object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.LifecyclePolicyKind))
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, namespaces := list.(*metav1.PartialObjectMetadataList); namespaces && b.unlisted != nil {
				return b.unlisted
			}
			return c.List(ctx, list, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			data, err := patch.Data(object)
			if err != nil {
				return err
			}
			var set client.SubResourcePatchOptions
			set.ApplyOptions(options)
			if subresource != "status" || set.FieldManager != "signalbox" {
				t.Errorf("%s written by %q", subresource, set.FieldManager)
			}
			b.patches = append(b.patches, string(data))
			if b.unwritable != nil {
				return b.unwritable
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
	b.Reconciler = &Reconciler{Client: faulty, Clock: b.clock}
	return b
}

func (b *policyBench) look() error {
	b.t.Helper()
	result, err := b.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if result != (reconcile.Result{}) {
		b.t.Errorf("Reconcile = %v, want to wait for an event", result)
	}
	return err
}

func (b *policyBench) looks() {
	b.t.Helper()
	if err := b.look(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *policyBench) stored() *v1alpha1.LifecyclePolicy {
	b.t.Helper()
	policy := &v1alpha1.LifecyclePolicy{}
	if err := b.store.Get(b.t.Context(), client.ObjectKey{Name: "a"}, policy); err != nil {
		b.t.Fatal(err)
	}
	return policy
}

func (b *policyBench) wants(want v1alpha1.LifecyclePolicyStatus) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.stored().Status, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
		b.t.Errorf("status (-want +got):\n%s", diff)
	}
}

func (b *policyBench) events() []corev1.Event {
	b.t.Helper()
	list := &corev1.EventList{}
	if err := b.store.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// inForce is the status of a policy that counts.
func inForce(generation int64, namespaces int32, since time.Time) v1alpha1.LifecyclePolicyStatus {
	return v1alpha1.LifecyclePolicyStatus{
		ObservedGeneration: generation, MatchingNamespaces: ptr.To(namespaces),
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "InForce", Message: "counts for new TrainJobs, and for how long finished ones stay",
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(since),
		}},
	}
}

const wrongOperator = `selects nothing: spec.namespaceSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`

func invalid(generation int64, since time.Time) v1alpha1.LifecyclePolicyStatus {
	status := inForce(generation, 0, since)
	status.Conditions[0].Status, status.Conditions[0].Reason, status.Conditions[0].Message = metav1.ConditionFalse, "InvalidSelector", wrongOperator
	return status
}

func TestReconcile(t *testing.T) {
	namespaces := []client.Object{namespaceOf("one", labels.Set{"team": "x"}), namespaceOf("two", labels.Set{"team": "x"}), namespaceOf("three", nil)}
	for name, tc := range map[string]struct {
		policy *builder.LifecyclePolicyBuilder
		want   v1alpha1.LifecyclePolicyStatus
	}{
		"all namespaces":          {builder.LifecyclePolicy("a").Max(time.Hour), inForce(1, 3, now)},
		"an empty selector":       {builder.LifecyclePolicy("a").NamespaceSelector(&metav1.LabelSelector{}), inForce(1, 3, now)},
		"some":                    {builder.LifecyclePolicy("a").Namespaces("team", "x").Generation(7), inForce(7, 2, now)},
		"none":                    {builder.LifecyclePolicy("a").Namespaces("team", "y"), inForce(1, 0, now)},
		"runtimes do not matter":  {builder.LifecyclePolicy("a").Runtimes("gpu", "yes"), inForce(1, 3, now)},
		"a selector is not valid": {builder.LifecyclePolicy("a").NamespaceSelector(selector("team", "Near")).Generation(2), invalid(2, now)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolicyBench(t, append(namespaces, tc.policy.Obj())...)
			b.looks()
			b.wants(tc.want)
			if len(b.patches) != 1 {
				t.Errorf("%d writes, want 1", len(b.patches))
			}
			// Later, with nothing new, nothing is written.
			version := b.stored().ResourceVersion
			b.clock.SetTime(now.Add(time.Hour))
			b.looks()
			b.wants(tc.want)
			if len(b.patches) != 1 || b.stored().ResourceVersion != version {
				t.Errorf("%d writes after another look, want 1", len(b.patches))
			}
		})
	}
}

// A selector of runtimes that is not valid takes a policy out of force as well.
func TestReconcileOfAnInvalidRuntimeSelector(t *testing.T) {
	b := newPolicyBench(t, namespaceOf("one", nil), builder.LifecyclePolicy("a").RuntimeSelector(selector("gpu", metav1.LabelSelectorOpIn)).Obj())
	b.looks()
	status := b.stored().Status
	if *status.MatchingNamespaces != 0 || status.Conditions[0].Reason != "InvalidSelector" ||
		!strings.HasPrefix(status.Conditions[0].Message, "selects nothing: spec.runtimeSelector.matchExpressions[0].values: Required value") {
		t.Errorf("status %+v", status)
	}
}

// The status follows the policy and the namespaces; what stays as it is keeps its time.
func TestReconcileFollows(t *testing.T) {
	b := newPolicyBench(t, namespaceOf("one", labels.Set{"team": "x"}), builder.LifecyclePolicy("a").Namespaces("team", "x").Obj())
	b.looks()
	b.wants(inForce(1, 1, now))

	if err := b.store.Create(t.Context(), namespaceOf("two", labels.Set{"team": "x"})); err != nil {
		t.Fatal(err)
	}
	b.clock.SetTime(now.Add(time.Minute))
	b.looks()
	b.wants(inForce(1, 2, now))

	update := func(selector *metav1.LabelSelector) {
		t.Helper()
		policy := b.stored()
		policy.Spec.NamespaceSelector = selector
		policy.Generation++
		if err := b.store.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
	}
	update(selector("team", "Near"))
	b.looks()
	generation := b.stored().Generation
	b.wants(invalid(generation, now.Add(time.Minute)))

	b.clock.SetTime(now.Add(2 * time.Minute))
	update(nil)
	b.looks()
	b.wants(inForce(b.stored().Generation, 2, now.Add(2*time.Minute)))
	if len(b.patches) != 4 {
		t.Errorf("%d writes, want 4", len(b.patches))
	}
}

// What others keep in the status stays.
func TestReconcileKeepsOtherConditions(t *testing.T) {
	policy := builder.LifecyclePolicy("a").Obj()
	other := metav1.Condition{Type: "Approved", Status: metav1.ConditionTrue, Reason: "Yes", LastTransitionTime: metav1.NewTime(now)}
	policy.Status.Conditions = []metav1.Condition{other}
	b := newPolicyBench(t, policy)
	b.looks()
	want := inForce(1, 0, now)
	want.Conditions = slices.Insert(want.Conditions, 0, other)
	b.wants(want)
}

func TestReconcileTellsOfAnInvalidSelector(t *testing.T) {
	policy := builder.LifecyclePolicy("a").NamespaceSelector(selector("team", "Near")).Obj()
	b := newPolicyBench(t, policy)
	for range 3 {
		b.looks()
	}
	got := b.events()
	if len(got) != 1 || got[0].Namespace != "default" || !strings.HasPrefix(got[0].Name, "a.") {
		t.Fatalf("events %v", got)
	}
	got[0].ObjectMeta = metav1.ObjectMeta{}
	want := corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "lifecycle.trainer.kubeflow.org/v1alpha1", Kind: "LifecyclePolicy", Name: "a", UID: policy.UID},
		Type:           "Warning", Reason: "InvalidSelector", Message: wrongOperator, Count: 1,
		Source:         corev1.EventSource{Component: "signalbox"},
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
	}
	if diff := cmp.Diff(want, got[0], cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if b := newPolicyBench(t, builder.LifecyclePolicy("a").Obj()); b.look() != nil || len(b.events()) != 0 {
		t.Errorf("events of one that is in force: %v", b.events())
	}
}

// One that is being deleted, or gone, is left alone.
func TestReconcileLeavesAlone(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"being deleted": {builder.LifecyclePolicy("a").NamespaceSelector(selector("team", "Near")).Deleting(now).Obj()},
		"gone":          {builder.LifecyclePolicy("b").Obj()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolicyBench(t, objects...)
			b.looks()
			if len(b.patches) != 0 || len(b.events()) != 0 {
				t.Errorf("writes %q, events %v", b.patches, b.events())
			}
		})
	}
}

// The status is written only onto the state of the policy that was looked at.
func TestReconcileSendsTheResourceVersion(t *testing.T) {
	b := newPolicyBench(t, builder.LifecyclePolicy("a").Obj())
	version := b.stored().ResourceVersion
	b.looks()
	var patch struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(b.patches[0]), &patch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"resourceVersion": version}, patch.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestReconcileFailures(t *testing.T) {
	policies := schema.GroupResource{Group: v1alpha1.Group, Resource: "lifecyclepolicies"}
	broken := errors.New("etcd is away")
	for name, tc := range map[string]struct {
		unlisted, unwritable error
		want                 string
	}{
		"namespaces cannot be listed": {unlisted: broken, want: "list namespaces: etcd is away"},
		"the status cannot be written": {
			unwritable: broken, want: "write the status of a LifecyclePolicy: etcd is away",
		},
		"written meanwhile": {
			unwritable: apierrors.NewConflict(policies, "a", broken),
			want:       `write the status of a LifecyclePolicy: Operation cannot be fulfilled on lifecyclepolicies.lifecycle.trainer.kubeflow.org "a": etcd is away`,
		},
		"gone meanwhile": {unwritable: apierrors.NewNotFound(policies, "a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolicyBench(t, builder.LifecyclePolicy("a").Obj())
			b.unlisted, b.unwritable = tc.unlisted, tc.unwritable
			err := b.look()
			if got := text(err); got != tc.want {
				t.Errorf("Reconcile = %q, want %q", got, tc.want)
			}
			if b.unlisted, b.unwritable = nil, nil; tc.want != "" {
				b.looks()
				b.wants(inForce(1, 0, now))
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A change of the namespaces asks for all policies.
func TestAll(t *testing.T) {
	b := newPolicyBench(t, builder.LifecyclePolicy("a").Obj(), builder.LifecyclePolicy("b").Obj())
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "a"}}, {NamespacedName: client.ObjectKey{Name: "b"}}}
	if diff := cmp.Diff(want, b.all(t.Context(), namespaceOf("one", nil))); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := newPolicyBench(t).all(t.Context(), nil); len(got) != 0 {
		t.Errorf("requests without policies: %v", got)
	}
}
