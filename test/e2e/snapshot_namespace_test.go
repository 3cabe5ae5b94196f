package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A namespace with all that belongs to snapshots goes when it is deleted, whether the webhook
// is there or not, and the reconciler has no trouble with it.
func TestSnapshotNamespaceGoes(t *testing.T) {
	for name, withWebhook := range map[string]bool{"with the webhook": true, "without the webhook": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.runtime("train", jobSetOf(oldImage))
			s.known("train")
			for _, name := range []string{"running", "paused", "again"} {
				s.create(name, onRuntime("train"))
			}
			s.create("queued", suspended(), onRuntime("train"))
			for _, name := range []string{"running", "paused", "again"} {
				s.runs(name, oldImage)
				job := s.get(name)
				s.inOrder(job, s.sealed(job))
			}
			s.suspend("paused")
			s.noPods("paused")
			// One is on its way to another content when it ends.
			s.edit("train", newImage)
			s.suspend("again")
			s.noPods("again")
			s.resume("again")
			s.resume("queued")
			if !withWebhook {
				s.away(shared.Webhook)
			}

			before := len(s.logged(shared.Reconciler, `"level":"ERROR"`, s.namespace))
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
			s.must(s.cluster.Client.Delete(s.ctx, namespace))
			s.eventually("the end of the namespace", func() (bool, string) {
				err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(namespace), namespace)
				return apierrors.IsNotFound(err), s.text(namespace.Status)
			})
			for _, line := range s.logged(shared.Reconciler, `"level":"ERROR"`, s.namespace)[before:] {
				t.Errorf("the reconciler logs an error: %s", line)
			}
		})
	}
}
