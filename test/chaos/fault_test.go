package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// reconcilerUser is whom the chart makes the reconciler run as.
const reconcilerUser = "system:serviceaccount:signalbox-system:signalbox-reconciler"

// requests are those of an expiry that can fail, with the namespace open in the path.
var requests = map[string]struct{ method, path string }{
	"status patch":    {http.MethodPatch, "/apis/trainer.kubeflow.org/v1alpha1/namespaces/%s/trainjobs/job/status"},
	"JobSet deletion": {http.MethodDelete, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets/job"},
}

// mishaps are what can happen to such a request.
var mishaps = map[string]struct {
	do func(http.ResponseWriter, *http.Request, http.Handler)
	// done tells that the request is carried out all the same: none need follow.
	done bool
}{
	"answers 500":                {do: answers(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
	"answers 409":                {do: answers(http.StatusConflict, metav1.StatusReasonConflict)},
	"answers 504":                {do: answers(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)},
	"is never answered":          {do: silent},
	"is cut off":                 {do: cut},
	"is done and its answer cut": {do: lost, done: true},
}

// A request of an expiry that fails once is made again, until the TrainJob has failed and
// nothing of it is left.
func TestDeadlineFault(t *testing.T) {
	works(t)
	p := newProxy(t)
	useProxy(t, p)
	for request, of := range requests {
		for name, mishap := range mishaps {
			t.Run(request+" "+name, func(t *testing.T) {
				t.Parallel()
				namespace := newNamespace(t)
				f := &fault{method: of.method, path: fmt.Sprintf(of.path, namespace), do: mishap.do}
				p.inject(f)
				expires(t, namespace)
				asked, hit := p.counts(f)
				if hit != 1 || asked < 2 && !mishap.done {
					t.Errorf("the reconciler asked %d times and %d requests failed, want 1 and one more asked", asked, hit)
				}
			})
		}
	}
}

// works waits until a TrainJob gets its pods: after a test that killed parts, controllers may
// still wait before they try again.
func works(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t)
	probe := manifest(namespace, "probe", int(longLimit/time.Second), false, false)
	if err := shared.Client.Create(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a running pod of a probe", func() (bool, string) {
		found, err := children(t.Context(), namespace)
		return err == nil && running(found["probe"]), fmt.Sprint(describe(found["probe"]), err)
	})
	if err := shared.Client.Delete(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
}

// useProxy replaces the reconciler by one that reaches the API server through the proxy, for
// the length of the test.
func useProxy(t *testing.T, p *proxy) {
	t.Helper()
	if err := shared.Reconciler.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	replica := shared.Replica(shared.Reconciler, "signalbox-reconciler-proxied", "--kubeconfig="+p.kubeconfig(t, reconcilerUser))
	t.Cleanup(func() {
		if err := replica.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := shared.Reconciler.Start(context.Background()); err != nil {
			t.Error(err)
		}
		// The cluster itself looks at its first reconciler alone.
		printed, err := os.ReadFile(replica.LogPath)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(printed, []byte("WARNING: DATA RACE")) || t.Failed() {
			lines := bytes.Split(bytes.TrimSpace(printed), []byte("\n"))
			t.Errorf("the log of the reconciler ends with:\n%s", bytes.Join(lines[max(0, len(lines)-60):], []byte("\n")))
		}
	})
	if err := replica.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// expires creates a TrainJob that only Signalbox ends, and checks that it fails at its
// deadline and not before, that its children go, and that one event tells of it.
func expires(t *testing.T, namespace string) {
	t.Helper()
	// Long enough for the pods to run first, also on a busy machine.
	const limit = 25
	object := manifest(namespace, "job", limit, false, false)
	if err := shared.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	job, err := view(object)
	if err != nil {
		t.Fatal(err)
	}
	start, err := stampOf(job)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a running pod", func() (bool, string) {
		found, err := children(t.Context(), namespace)
		return err == nil && running(found["job"]), fmt.Sprint(describe(found["job"]), err)
	})
	eventually(t, "Failed", func() (bool, string) {
		if job, err = read(t.Context(), namespace, "job"); err != nil {
			return false, err.Error()
		}
		return job.DeadlineExceeded(), summary(job)
	})
	if early := time.Until(start.Add(limit * time.Second)); early > 0 {
		t.Errorf("failed %s before its deadline", early)
	}
	eventually(t, "the end of JobSet, Jobs and pods", func() (bool, string) {
		found, err := children(t.Context(), namespace)
		return err == nil && len(found["job"]) == 0, fmt.Sprint(describe(found["job"]), err)
	})
	failed := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed)
	if job, err = read(t.Context(), namespace, "job"); err != nil {
		t.Fatal(err)
	}
	if now := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionFailed); now == nil || *now != *failed {
		t.Errorf("Failed was %+v, and at the end %+v", failed, now)
	}
	oneEvent(t, job, failed.Message)
}

// oneEvent checks that exactly one event tells that the deadline was exceeded.
func oneEvent(t *testing.T, job *trainer.TrainJob, message string) {
	t.Helper()
	var events corev1.EventList
	// It is sent on its own, after what it tells of.
	eventually(t, "an event", func() (bool, string) {
		err := shared.Client.List(t.Context(), &events, client.InNamespace(job.Namespace), client.MatchingFields{"reason": trainer.ReasonDeadlineExceeded})
		return len(events.Items) > 0, fmt.Sprint(err)
	})
	if len(events.Items) != 1 {
		t.Fatalf("%d events tell of the expiry, want 1: %v", len(events.Items), events.Items)
	}
	if e := events.Items[0]; e.Message != message || e.Count != 1 || e.InvolvedObject.UID != job.UID {
		t.Errorf("the event is %+v, want one with the text %q", e, message)
	}
}

// running tells whether there are pods and all of them run.
func running(objects []client.Object) bool {
	pods := 0
	for _, object := range objects {
		pod, isPod := object.(*corev1.Pod)
		if !isPod {
			continue
		}
		if pod.Status.Phase != corev1.PodRunning {
			return false
		}
		pods++
	}
	return pods > 0
}
