package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// auditorBench is an auditor on a fake API server.
type auditorBench struct {
	*Auditor
	t     *testing.T
	store client.WithWatch
	// writes counts the events that are sent, tells what is logged of runtimes.
	writes int
	tells  []string
	// unreadable and unwritable are what the API server answers, if they are set.
	unreadable, unwritable error
}

func newAuditorBench(t *testing.T, kind string, runtimes ...*builder.RuntimeBuilder) *auditorBench {
	t.Helper()
	metric, err := NewAuditMetric(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	b := &auditorBench{t: t}
	store := fake.NewClientBuilder().WithScheme(newScheme(t))
	for _, runtime := range runtimes {
		store.WithObjects(runtime.Obj())
	}
	b.store = store.Build()
	faulty := interceptor.NewClient(b.store, interceptor.Funcs{
		Get: func(ctx context.Context, store client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if b.unreadable != nil {
				return b.unreadable
			}
			return store.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, store client.WithWatch, object client.Object, options ...client.CreateOption) error {
			b.writes++
			if b.unwritable != nil {
				return b.unwritable
			}
			return store.Create(ctx, object, options...)
		},
	})
	b.Auditor = &Auditor{Kind: kind, Cache: faulty, Client: faulty, Clock: clocktesting.NewFakePassiveClock(time.Unix(1_770_000_000, 0)), Metric: metric}
	return b
}

func (b *auditorBench) look(namespace, name string) error {
	b.t.Helper()
	logger := funcr.New(func(_, args string) { b.tells = append(b.tells, args) }, funcr.Options{})
	ctx := log.IntoContext(b.t.Context(), logger)
	result, err := b.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	if result != (reconcile.Result{}) {
		b.t.Errorf("Reconcile = %v, want to wait for an event", result)
	}
	return err
}

func (b *auditorBench) looks(namespace, name string) {
	b.t.Helper()
	if err := b.look(namespace, name); err != nil {
		b.t.Fatal(err)
	}
}

// update stores a runtime in place of the one of its name.
func (b *auditorBench) update(runtime *builder.RuntimeBuilder) {
	b.t.Helper()
	object := runtime.Obj()
	stored := trainer.NewRuntime(b.Kind)
	if err := b.store.Get(b.t.Context(), client.ObjectKeyFromObject(object), stored); err != nil {
		b.t.Fatal(err)
	}
	object.SetResourceVersion(stored.GetResourceVersion())
	if err := b.store.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

func (b *auditorBench) counts(want float64) {
	b.t.Helper()
	if got := testutil.ToFloat64(b.Metric.WithLabelValues(b.Kind)); got != want {
		b.t.Errorf("signalbox_runtimes_with_clocks{kind=%q} = %v, want %v", b.Kind, got, want)
	}
}

func (b *auditorBench) events() []corev1.Event {
	b.t.Helper()
	list := &corev1.EventList{}
	if err := b.store.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// withClock gives the JobSet template of a runtime a TTL.
func withClock(b *builder.RuntimeBuilder, seconds int64) *builder.RuntimeBuilder {
	return b.Set(seconds, "spec", "template", "spec", "ttlSecondsAfterFinished")
}

func textOf(seconds int64) string {
	return fmt.Sprintf("spec.template.spec.ttlSecondsAfterFinished: Invalid value: %d: %s", seconds, secondTTL)
}

func TestAuditor(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime                   *builder.RuntimeBuilder
		namespace, eventNamespace string
	}{
		"a runtime of the cluster":   {builder.ClusterTrainingRuntime("torch"), "", "default"},
		"a runtime of a namespace":   {builder.TrainingRuntime("ns", "torch"), "ns", "ns"},
		"one that Trainer overlooks": {builder.ClusterTrainingRuntime("torch").Label("trainer.kubeflow.org/webhook-validation", "disabled"), "", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := tc.runtime.Obj().GetKind()
			b := newAuditorBench(t, kind, withClock(tc.runtime, 60))
			for range 3 {
				b.looks(tc.namespace, "torch")
				b.counts(1)
			}
			want := []corev1.Event{{
				InvolvedObject: corev1.ObjectReference{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: kind, Namespace: tc.namespace, Name: "torch", UID: tc.runtime.Obj().GetUID()},
				Type:           "Warning", Reason: "SecondClock", Message: textOf(60), Count: 1,
				Source:         corev1.EventSource{Component: "signalbox"},
				FirstTimestamp: metav1.Unix(1_770_000_000, 0), LastTimestamp: metav1.Unix(1_770_000_000, 0),
			}}
			got := b.events()
			for i := range got {
				if got[i].Namespace != tc.eventNamespace || !strings.HasPrefix(got[i].Name, "torch.") {
					t.Errorf("event %s/%s", got[i].Namespace, got[i].Name)
				}
				got[i].ObjectMeta = metav1.ObjectMeta{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			// It is a level: each look tells in the log.
			if len(b.tells) != 3 || !strings.Contains(b.tells[0], `"msg"="a stored runtime is not as it should be"`) ||
				!strings.Contains(b.tells[0], `"kind"="`+kind+`" "reason"="SecondClock"`) || !strings.Contains(b.tells[0], `"fields"="`+textOf(60)) {
				t.Errorf("log: %q", b.tells)
			}
		})
	}
}

// A default that is none is told as well, and is no clock to be counted.
func TestAuditorOfDefaults(t *testing.T) {
	const text = `metadata.annotations[lifecycle.trainer.kubeflow.org/default-active-deadline-seconds]: Invalid value: "8h": must be a whole number of seconds from 1 to 4294967295`
	b := newAuditorBench(t, cluster, builder.ClusterTrainingRuntime("torch").
		Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "8h").
		Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "0"))
	for range 2 {
		b.looks("", "torch")
		b.counts(0)
	}
	got := b.events()
	if len(got) != 1 || got[0].Type != "Warning" || got[0].Reason != "InvalidDefault" || got[0].Message != text {
		t.Errorf("events %v, want one: %s", got, text)
	}
	if len(b.tells) != 2 || !strings.Contains(b.tells[0], `"reason"="InvalidDefault" "fields"="metadata.annotations[`) {
		t.Errorf("log: %q", b.tells)
	}

	// With a clock beside it, there is an event for each.
	b.update(withClock(builder.ClusterTrainingRuntime("torch"), 60).Annotation(v1alpha1.AnnotationDefaultTTLSecondsAfterFinished, "-1"))
	b.looks("", "torch")
	b.counts(1)
	reasons := map[string]int{}
	for _, event := range b.events() {
		reasons[event.Reason]++
	}
	if diff := cmp.Diff(map[string]int{"InvalidDefault": 2, "SecondClock": 1}, reasons); diff != "" {
		t.Errorf("events by reason (-want +got):\n%s", diff)
	}
}

// The metric follows the runtimes up and down; each state of one gets its event.
func TestAuditorFollows(t *testing.T) {
	first, second, good := builder.TrainingRuntime("a", "torch"), builder.TrainingRuntime("b", "torch"), builder.TrainingRuntime("a", "good")
	b := newAuditorBench(t, namespaced, withClock(first, 60), withClock(second.UID("other"), 60), good)
	b.counts(0)
	b.looks("a", "good")
	b.counts(0)
	b.looks("a", "torch")
	b.counts(1)
	b.looks("b", "torch")
	b.counts(2)
	if got := len(b.events()); got != 2 {
		t.Errorf("%d events, want one each", got)
	}

	b.update(withClock(builder.TrainingRuntime("a", "torch"), 61))
	b.looks("a", "torch")
	b.counts(2)
	if got := b.events(); len(got) != 3 || got[0].Message == got[1].Message {
		t.Errorf("%d events, want one more for what has changed", len(got))
	}

	b.update(builder.TrainingRuntime("a", "torch"))
	b.looks("a", "torch")
	b.counts(1)

	if err := b.store.Delete(t.Context(), second.Obj()); err != nil {
		t.Fatal(err)
	}
	b.looks("b", "torch")
	b.looks("b", "torch")
	b.counts(0)
	if got := len(b.events()); got != 3 {
		t.Errorf("%d events at the end, want 3", got)
	}
	if kinds := testutil.CollectAndCount(b.Metric); kinds != 1 {
		t.Errorf("%d series, want 1", kinds)
	}
}

// One that is being deleted is no longer counted, and nothing is told of it.
func TestAuditorOfOneBeingDeleted(t *testing.T) {
	runtime := withClock(builder.ClusterTrainingRuntime("torch"), 60)
	b := newAuditorBench(t, cluster, runtime)
	b.looks("", "torch")
	b.counts(1)
	held := trainer.NewRuntime(b.Kind)
	if err := b.store.Get(t.Context(), client.ObjectKey{Name: "torch"}, held); err != nil {
		t.Fatal(err)
	}
	held.SetFinalizers([]string{"example.com/keep"})
	if err := errors.Join(b.store.Update(t.Context(), held), b.store.Delete(t.Context(), held)); err != nil {
		t.Fatal(err)
	}
	b.looks("", "torch")
	b.counts(0)
	if b.writes != 1 {
		t.Errorf("%d events, want 1", b.writes)
	}
}

func TestAuditorFailures(t *testing.T) {
	b := newAuditorBench(t, cluster, withClock(builder.ClusterTrainingRuntime("torch"), 60))
	b.unreadable = errors.New("no cache")
	if err := b.look("", "torch"); !errors.Is(err, b.unreadable) {
		t.Errorf("Reconcile = %v", err)
	}
	b.counts(0)
	b.unreadable, b.unwritable = nil, errors.New("no events")
	b.looks("", "torch") // an event holds nothing up
	b.counts(1)
	b.unreadable = errors.New("no cache")
	if err := b.look("", "torch"); err == nil {
		t.Error("no error")
	}
	b.counts(1)
}

// A runtime without a spec, which no API server stores, does no harm.
func TestAuditorOfOddShapes(t *testing.T) {
	for _, spec := range []any{nil, "x", []any{}, map[string]any{"template": "x"}} {
		b := newAuditorBench(t, cluster)
		object := builder.ClusterTrainingRuntime("torch").Without("spec").Obj()
		if spec != nil {
			if err := unstructured.SetNestedField(object.Object, spec, "spec"); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.store.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		b.looks("", "torch")
		b.counts(0)
		if len(b.events()) != 0 {
			t.Errorf("spec %v: events", spec)
		}
	}
}

// Both kinds are in one metric, which can be registered once.
func TestAuditMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	metric, err := NewAuditMetric(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{cluster, namespaced} {
		auditor := &Auditor{Kind: kind, Metric: metric}
		auditor.count(client.ObjectKey{Name: "a"}, true)
		auditor.count(client.ObjectKey{Name: "b"}, true)
		auditor.count(client.ObjectKey{Name: "b"}, kind == cluster)
	}
	want := `# HELP signalbox_runtimes_with_clocks Stored runtimes that set activeDeadlineSeconds or ttlSecondsAfterFinished, by kind.
# TYPE signalbox_runtimes_with_clocks gauge
signalbox_runtimes_with_clocks{kind="ClusterTrainingRuntime"} 2
signalbox_runtimes_with_clocks{kind="TrainingRuntime"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "signalbox_runtimes_with_clocks"); err != nil {
		t.Error(err)
	}
	if _, err := NewAuditMetric(registry); err == nil {
		t.Error("registered twice")
	}
}
