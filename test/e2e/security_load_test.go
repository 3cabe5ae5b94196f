package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// residentBound is how much memory the webhook may take under any load, in bytes: less than the
// chart's limit. Without its own limit it takes three times as much.
const residentBound = raceFactor * 450 << 20

// withArguments is a TrainJob of about this many bytes of arguments.
func withArguments(size int) change {
	args := make([]any, size/100_000)
	for i := range args {
		args[i] = strings.Repeat("x", 100_000)
	}
	return set(args, "spec", "trainer", "args")
}

// ofEmptyObjects is a TrainingRuntime with this many bytes of objects that are empty, which take
// the most memory for their size.
func (s *scene) ofEmptyObjects(size int) *unstructured.Unstructured {
	s.Helper()
	tolerations := `"tolerations":[` + strings.Repeat("{},", size/3) + `{}],`
	return s.object(trainer.TrainingRuntimeKind, "empty", strings.Replace(jobSetOf(oldImage), `"containers":`, tolerations+`"containers":`, 1))
}

// Somebody has the webhook called with the largest objects that the API server takes, many at
// once. It stays, with bounded memory, and the small TrainJobs of others are answered. The API
// server itself would not get so many through at once.
func TestSecurityLargeObjects(t *testing.T) {
	s := newScene(t)
	resident := func() float64 { return s.figure(s.cluster.Webhook, "process_resident_memory_bytes") }
	started, before := s.figure(s.cluster.Webhook, "process_start_time_seconds"), resident()
	body := func(object *unstructured.Unstructured) string {
		request := &admissionv1.AdmissionRequest{UID: "large", Operation: admissionv1.Create, Namespace: s.namespace}
		request.Object.Raw = []byte(s.text(object))
		return s.review(request)
	}
	var senders sync.WaitGroup
	var mu sync.Mutex
	answers, taken := map[string]int{}, 0
	for _, large := range []struct {
		what, path, body string
		count            int
	}{
		{"runtimes of 2.9 MB of empty objects", admission.RuntimeMutatePath + "?timeout=30s", body(s.ofEmptyObjects(2_900_000)), 10},
		{"TrainJobs of 1.4 MB", admission.TrainJobMutatePath + "?timeout=5s", body(s.trainJob("large", withArguments(1_400_000))), 40},
		{"TrainJobs of 2.9 MB", admission.TrainJobValidatePath + "?timeout=5s", body(s.trainJob("large", withArguments(2_900_000))), 40},
	} {
		for range large.count {
			senders.Go(func() {
				code, text, err := s.post(large.path, large.body)
				if err == nil && code != http.StatusOK {
					err = errors.New(string(text))
				}
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprint(large.what, ": ", code, " ", err)]++
				if code == http.StatusOK {
					taken++
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	var most float64
	var small int
	var slowest time.Duration
	for ended := false; !ended; small++ {
		select {
		case <-done:
			ended = true
		default:
		}
		start := time.Now()
		if err := s.cluster.Client.Create(s.ctx, s.trainJob("small"), client.DryRunAll); err != nil {
			t.Errorf("a small TrainJob: %v", err)
		}
		slowest, most = max(slowest, time.Since(start)), max(most, resident())
	}
	t.Logf("%d small TrainJobs, the slowest took %s; the webhook had %.0f MiB before and %.0f at most; %v",
		small, slowest, before/(1<<20), most/(1<<20), answers)
	if now := s.figure(s.cluster.Webhook, "process_start_time_seconds"); now != started {
		t.Error("the webhook was started anew")
	}
	if taken == 0 {
		t.Error("no large request was answered")
	}
	if most > residentBound {
		t.Errorf("the webhook had %.0f MiB, want at most %d", most/(1<<20), residentBound>>20)
	}
}
