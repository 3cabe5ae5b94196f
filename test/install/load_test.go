package install_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// The load: so many users, each of whom creates a TrainJob and deletes it, no more often than
// that, and what a load creates at most.
const (
	users     = 4
	loadPause = 150 * time.Millisecond
	loadLimit = 20000
)

// load is a steady stream of creations of suspended TrainJobs, each of which needs the webhook.
type load struct {
	scene  *scene
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	created int
	failed  []string
}

// load starts the load in a namespace of its own. It lasts until end, or the end of the test.
func (s *scene) load() *load {
	s.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "load-"}}
	s.must(shared.Client.Create(s.ctx, namespace))
	ctx, cancel := context.WithCancel(s.ctx)
	l := &load{scene: &scene{T: s.T, ctx: ctx, namespace: namespace.Name}, cancel: cancel}
	for i := range users {
		l.done.Go(func() { l.run(ctx, i) })
	}
	s.Cleanup(func() {
		cancel()
		l.done.Wait()
		_ = shared.Client.Delete(context.Background(), namespace)
	})
	return l
}

func (l *load) run(ctx context.Context, user int) {
	tick := time.NewTicker(loadPause)
	defer tick.Stop()
	for i := 0; i < loadLimit/users; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		job := l.scene.trainJob(fmt.Sprintf("job-%d-%d", user, i), suspended())
		began := time.Now()
		// A creation that was begun is awaited: its end would be taken for a refusal.
		err := shared.Client.Create(context.WithoutCancel(ctx), job)
		if source := job.GetAnnotations()[v1alpha1.AnnotationRuntimeSource]; err == nil && source == "" {
			err = fmt.Errorf("TrainJob %s was created without the webhook", job.GetName())
		}
		l.note(began, err)
		if err == nil {
			// What is left goes with its namespace.
			_ = shared.Client.Delete(context.WithoutCancel(ctx), job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
	}
}

func (l *load) note(began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.created++
		return
	}
	l.failed = append(l.failed, fmt.Sprintf("%s, after %s: %v", began.Format("15:04:05.000"), time.Since(began), err))
}

// count returns how many TrainJobs were created so far.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.created
}

// more waits until the load created that many more TrainJobs.
func (l *load) more(s *scene, n int) {
	s.Helper()
	before := l.count()
	s.eventually(fmt.Sprintf("%d more creations", n), func() (bool, string) {
		now := l.count()
		return now >= before+n, fmt.Sprintf("%d", now-before)
	})
}

// end ends the load, when it has created so many TrainJobs that it proves something, and fails the
// test if a creation failed.
func (l *load) end(s *scene, least int) {
	s.Helper()
	l.more(s, max(0, least-l.count()))
	l.cancel()
	l.done.Wait()
	s.Logf("%d TrainJobs were created under load", l.created)
	for i, failure := range l.failed {
		if i == 10 {
			s.Errorf("and %d more", len(l.failed)-i)
			break
		}
		s.Errorf("a creation failed at %s", failure)
	}
}

// answered returns how many requests a webhook has answered.
func (s *scene) answered(pod *cluster.Pod) (n float64) {
	s.Helper()
	response, err := http.Get(pod.Process.MetricsURL)
	s.must(err)
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	s.must(err)
	for _, metric := range families["controller_runtime_webhook_requests_total"].GetMetric() {
		n += metric.GetCounter().GetValue()
	}
	return n
}
