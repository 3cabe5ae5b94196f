package event

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 500, time.FixedZone("", 3600))

// bench is an API server that takes events, and what is logged.
type bench struct {
	client.Client
	logged []string
	// fault answers a creation in place of the server; nil lets it through.
	fault func(context.Context) error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &bench{}
	b.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			var set client.CreateOptions
			set.ApplyOptions(options)
			if set.FieldManager != "signalbox" {
				t.Errorf("written by %q", set.FieldManager)
			}
			if b.fault != nil {
				return b.fault(ctx)
			}
			return c.Create(ctx, object, options...)
		},
	})
	return b
}

func (b *bench) warn(t *testing.T, about corev1.ObjectReference, reason, text, occasion string) {
	t.Helper()
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { b.logged = append(b.logged, args) }, funcr.Options{}))
	Warn(ctx, b, about, reason, text, occasion, now)
}

// events are in the order of their names.
func (b *bench) events(t *testing.T) []corev1.Event {
	t.Helper()
	list := &corev1.EventList{}
	if err := b.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

func reference(namespace, name, uid string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Namespace: namespace, Name: name, UID: types.UID(uid)}
}

func TestAbout(t *testing.T) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
	}
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod", UID: "uid"}
	if diff := cmp.Diff(want, About(pod)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarn(t *testing.T) {
	for name, tc := range map[string]struct {
		about     corev1.ObjectReference
		namespace string
	}{
		"about an object of a namespace":   {reference("ns", "job", "uid"), "ns"},
		"about an object of the cluster":   {reference("", "job", "uid"), "default"},
		"about one that was not read live": {reference("ns", "job", ""), "ns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.warn(t, tc.about, "Reason", "what happened", "once")
			got := b.events(t)
			if len(got) != 1 {
				t.Fatalf("%d events", len(got))
			}
			if !strings.HasPrefix(got[0].Name, "job.") || len(got[0].Name) != len("job.")+16 {
				t.Errorf("named %s", got[0].Name)
			}
			at := metav1.NewTime(now.Truncate(time.Second))
			want := corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: tc.namespace, Name: got[0].Name, ResourceVersion: got[0].ResourceVersion},
				InvolvedObject: tc.about,
				Type:           "Warning", Reason: "Reason", Message: "what happened", Count: 1,
				Source:         corev1.EventSource{Component: "signalbox"},
				FirstTimestamp: at, LastTimestamp: at,
			}
			if diff := cmp.Diff(want, got[0]); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if len(b.logged) != 0 {
				t.Errorf("log: %q", b.logged)
			}
		})
	}
}

// A note differs from a warning in its type alone: of the same reason and occasion there is one.
func TestNote(t *testing.T) {
	b, other := newBench(t), newBench(t)
	about := reference("ns", "job", "uid")
	b.warn(t, about, "Reason", "what happened", "once")
	for range 2 {
		// That it is there already is as good.
		if !Note(t.Context(), other, about, "Reason", "what happened", "once", now) {
			t.Error("the event is there, and said not to be")
		}
	}
	want, got := b.events(t), other.events(t)
	want[0].Type = "Normal"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Whoever remembers that an event is there must not do so of one that is not.
func TestNoteFailures(t *testing.T) {
	about := reference("ns", "job", "uid")
	b := newBench(t)
	b.fault = func(context.Context) error { return errors.New("no room") }
	if Note(t.Context(), b, about, "Reason", "what happened", "once", now) || len(b.events(t)) != 0 {
		t.Error("an event that could not be written is said to be there")
	}
	b.fault = nil
	if !Note(t.Context(), b, about, "Reason", "what happened", "once", now) || len(b.events(t)) != 1 {
		t.Error("the event is said not to be there")
	}
}

// One event for each object, reason and occasion, whoever tells of it and however often.
func TestWarnOnce(t *testing.T) {
	b := newBench(t)
	for range 3 {
		b.warn(t, reference("ns", "job", "uid"), "Reason", "what happened", "once")
	}
	b.warn(t, reference("ns", "job", "uid"), "Reason", "in other words", "once")
	if got := b.events(t); len(got) != 1 || got[0].Message != "what happened" {
		t.Errorf("%d events, want the first", len(got))
	}
	b.warn(t, reference("ns", "job", "uid"), "Reason", "what happened", "twice")
	b.warn(t, reference("ns", "job", "uid"), "Other", "what happened", "once")
	b.warn(t, reference("ns", "job", "uid of the next"), "Reason", "what happened", "once")
	b.warn(t, reference("other", "job", "uid"), "Reason", "what happened", "once")
	if got := len(b.events(t)); got != 5 {
		t.Errorf("%d events, want 5", got)
	}
	if len(b.logged) != 0 {
		t.Errorf("log: %q", b.logged)
	}
}

// The API server takes the name of the event for every name that an object can have.
func TestWarnAboutLongNames(t *testing.T) {
	for _, name := range []string{
		strings.Repeat("a", 253), strings.Repeat("a", 199) + "-" + strings.Repeat("b", 50), strings.Repeat("a", 199) + "." + strings.Repeat("b", 50),
	} {
		b := newBench(t)
		b.warn(t, reference("ns", name, "uid"), "Reason", "what happened", "once")
		got := b.events(t)
		if len(got) != 1 {
			t.Fatalf("%d events", len(got))
		}
		// The API server is not as strict with events as with other objects.
		if errs := validation.ValidateObjectMeta(&got[0].ObjectMeta, true, validation.NameIsDNSSubdomain, nil); len(errs) != 0 {
			t.Errorf("about %s: %v", name, errs)
		}
	}
}

// A text that the API server would not take is cut, between characters.
func TestWarnCutsTheText(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"as long as can be":       {strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
		"one byte more":           {strings.Repeat("x", 1001), strings.Repeat("x", 1000) + " ..."},
		"far more":                {strings.Repeat("x", 9000), strings.Repeat("x", 1000) + " ..."},
		"a character at the end":  {strings.Repeat("x", 998) + "é" + strings.Repeat("x", 9), strings.Repeat("x", 998) + "é ..."},
		"a character that is cut": {strings.Repeat("x", 999) + "é" + strings.Repeat("x", 9), strings.Repeat("x", 999) + " ..."},
		"four bytes that are cut": {strings.Repeat("x", 997) + "🚂" + strings.Repeat("x", 9), strings.Repeat("x", 997) + " ..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.warn(t, reference("ns", "job", "uid"), "Reason", tc.text, "once")
			got := b.events(t)[0].Message
			if len(got) > 1024 || !utf8.ValidString(got) || got != tc.want {
				t.Errorf("%d bytes, valid %v, ends in %q; want %q", len(got), utf8.ValidString(got), got[max(0, len(got)-12):], tc.want[max(0, len(tc.want)-12):])
			}
		})
	}
}

// An event that cannot be written is logged, and holds nothing up.
func TestWarnFailures(t *testing.T) {
	b := newBench(t)
	b.fault = func(context.Context) error { return errors.New("no room") }
	b.warn(t, reference("ns", "job", "uid"), "Reason", "what happened", "once")
	if len(b.logged) != 1 || !strings.Contains(b.logged[0], `"error"="no room"`) || !strings.Contains(b.logged[0], `"reason"="Reason" "message"="what happened"`) {
		t.Errorf("log: %q", b.logged)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.fault = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		start := time.Now()
		b.warn(t, reference("ns", "job", "uid"), "Reason", "what happened", "once")
		if took := time.Since(start); took != 3*time.Second || len(b.logged) != 1 {
			t.Errorf("took %s, log %q", took, b.logged)
		}
	})
}
