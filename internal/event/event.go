// Package event writes events that tell of something once, over restarts and replicas.
package event

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// aside is how long the request may take: an event must not eat the time of what it tells of.
const aside = 3 * time.Second

// maxText bounds the text of an event; the API server takes no more than 1024 bytes.
const maxText = 1000

// maxPrefix bounds what of an object's name is in the name of its events.
const maxPrefix = 200

// About names an object as an event does. The kind must be set on it.
func About(object client.Object) corev1.ObjectReference {
	gvk := object.GetObjectKind().GroupVersionKind()
	return corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

// Warn writes a warning event about the object, once for each reason and occasion: its name
// follows from these, so that a second look, a restart or another replica finds it there. It is
// a core/v1 event with a first time stamp, since the Python SDK drops others; one about an
// object without a namespace is in the namespace default, where kubectl looks for it. An event
// that cannot be written is logged and holds nothing up.
func Warn(ctx context.Context, c client.Client, about corev1.ObjectReference, reason, text, occasion string, now time.Time) {
	write(ctx, c, about, corev1.EventTypeWarning, reason, text, occasion, now)
}

// Note writes an event as Warn does, of something that is as it should be. It tells whether the
// event is there.
func Note(ctx context.Context, c client.Client, about corev1.ObjectReference, reason, text, occasion string, now time.Time) bool {
	return write(ctx, c, about, corev1.EventTypeNormal, reason, text, occasion, now)
}

func write(ctx context.Context, c client.Client, about corev1.ObjectReference, kind, reason, text, occasion string, now time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	hash := fnv.New64a()
	fmt.Fprint(hash, about.UID, occasion, reason)
	if len(text) > maxText {
		end := maxText
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + " ..."
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	// The name goes on after a dot, before which a name may not end otherwise.
	prefix := strings.TrimRight(about.Name[:min(len(about.Name), maxPrefix)], "-.")
	at := metav1.NewTime(now)
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%016x", prefix, hash.Sum64())},
		InvolvedObject: about,
		Type:           kind, Reason: reason, Message: text,
		Source:         corev1.EventSource{Component: v1alpha1.FieldManager},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	err := c.Create(ctx, event, client.FieldOwner(v1alpha1.FieldManager))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		log.FromContext(ctx).Error(err, "could not write an event", "reason", reason, "message", text)
		return false
	}
	return true
}
