package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	signalbox "github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

const (
	// loadRuntime is the size of the runtime that the TrainJobs are sealed on, loadTrainJob about that
	// of a TrainJob, both in bytes of JSON.
	loadRuntime, loadTrainJob = 2000, 2000
	// loadName names what the load needs.
	loadName = "load"
)

// loadConnections is how many requests are under way at the same time, each on its own connection.
var loadConnections = []int{1, 4, 16, 64}

// loadStep is what was measured with one webhook and one number of connections.
type loadStep struct {
	path        string
	connections int
	took        time.Duration
	// cpu is the processor time of the webhook, reads how often it read from the API server.
	cpu, reads float64
	latencies  figures.Samples
}

func (s *loadStep) perSecond() float64     { return float64(len(s.latencies)) / s.took.Seconds() }
func (s *loadStep) perCoreSecond() float64 { return float64(len(s.latencies)) / s.cpu }

// loadMemory is the resident memory of the webhook in bytes, every second since the load began.
type loadMemory struct {
	seconds, bytes []float64
	// warm and end are which of them were taken once it was warm, and when the load ended.
	warm, end int
}

// load measures how many requests one replica of the webhook answers, without an API server in
// front of it: as fast as it answers, as the API server does through a Service (HTTP/1.1, over
// connections that stay).
func load(ctx context.Context, o options) (report *figures.Report, err error) {
	warm, mutating, validating := 8*time.Second, 12*time.Second, 4*time.Second
	if o.short {
		warm, mutating, validating = time.Second, time.Second, time.Second
	}
	c, err := cluster.Start(ctx, cluster.Options{KindsOnly: true, Signalbox: true, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: loadName}}
	if err := errors.Join(c.Client.Create(ctx, namespace), c.Client.Create(ctx, runtimeOf(loadName, loadRuntime))); err != nil {
		return nil, err
	}
	sender, err := newSender(ctx, c)
	if err != nil {
		return nil, err
	}
	defer sender.http.CloseIdleConnections()
	memory, stop := sender.watchMemory(ctx)
	defer func() { _ = stop() }()
	run := func(path string, connections int, d time.Duration) (*loadStep, error) {
		step, err := sender.step(ctx, path, connections, d)
		if err == nil {
			fmt.Fprintf(os.Stderr, "%s over %d connections: %.0f a second, %.0f for a second of CPU\n", path, connections, step.perSecond(), step.perCoreSecond())
		}
		return step, err
	}
	if _, err := run(signalbox.TrainJobMutatePath, loadConnections[len(loadConnections)-1], warm); err != nil {
		return nil, err
	}
	memory.mark(&memory.warm)
	var steps []*loadStep
	for _, path := range []string{signalbox.TrainJobValidatePath, signalbox.TrainJobMutatePath} {
		d := mutating
		if path == signalbox.TrainJobValidatePath {
			d = validating
		}
		for _, connections := range loadConnections {
			step, err := run(path, connections, d)
			if err != nil {
				return nil, err
			}
			steps = append(steps, step)
		}
	}
	memory.mark(&memory.end)
	if err := stop(); err != nil {
		return nil, err
	}
	return loadReport(steps, &memory.loadMemory), nil
}

// sender sends requests to the webhook.
type sender struct {
	http    *http.Client
	webhook *cluster.Process
	server  string
	body    []byte
}

func newSender(ctx context.Context, c *cluster.Cluster) (*sender, error) {
	hooks := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: "signalbox"}, hooks); err != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	config := hooks.Webhooks[0].ClientConfig
	server, _, _ := strings.Cut(*config.URL, "/mutate-")
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(config.CABundle) {
		return nil, errors.New("the webhook configuration has no CA")
	}
	most := loadConnections[len(loadConnections)-1]
	s := &sender{webhook: c.Webhook, server: server, http: &http.Client{Transport: &http.Transport{
		// Without ForceAttemptHTTP2 it is HTTP/1.1.
		TLSClientConfig: &tls.Config{RootCAs: authorities}, MaxIdleConns: most, MaxIdleConnsPerHost: most, DisableCompression: true,
	}}}
	var err error
	s.body, err = loadReview()
	return s, err
}

// loadReview is what the API server sends when somebody creates a TrainJob that starts at once.
func loadReview() ([]byte, error) {
	job := trainJob(loadName, "job", loadName, map[string]any{"suspend": false, "managedBy": trainer.ControllerName, "activeDeadlineSeconds": int64(3600)})
	job.SetUID("9a3c9f5c-5f3e-4c0a-8d57-0d7b5a1f7f10")
	job.SetCreationTimestamp(metav1.Now())
	job.SetGeneration(1)
	job.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: trainer.GroupVersion.String(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{".":{},"f:runtimeRef":{},"f:trainer":{".":{},"f:args":{},"f:numNodes":{}}}}`),
	}})
	// What is left is arguments of the training.
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	var args []any
	for i := range max(0, loadTrainJob-len(text)) / 20 {
		args = append(args, fmt.Sprintf("--setting-%05d=1", i))
	}
	job.Object["spec"].(map[string]any)["trainer"].(map[string]any)["args"] = args
	if text, err = json.Marshal(job); err != nil {
		return nil, err
	}
	resource := metav1.GroupVersionResource{Group: trainer.GroupVersion.Group, Version: trainer.GroupVersion.Version, Resource: "trainjobs"}
	kind := metav1.GroupVersionKind{Group: trainer.GroupVersion.Group, Version: trainer.GroupVersion.Version, Kind: trainer.TrainJobKind}
	no := false
	request := &admissionv1.AdmissionRequest{
		UID: "2c3f5b9e-5d0b-4f7e-9a34-7c1d6f1f8a22", Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
		Namespace: loadName, Name: "job", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: text}, DryRun: &no,
		Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-create"}`)},
	}
	request.UserInfo.Username, request.UserInfo.Groups = "jane", []string{"system:authenticated"}
	return json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
}

// post sends the request to the webhook at this path and returns the answer.
func (s *sender) post(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.server+path+"?timeout=5s", bytes.NewReader(s.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered by %d %s", answer.StatusCode, text)
	}
	return text, err
}

// prove checks that the webhook does what is to be measured: it lets the TrainJob pass, and seals
// it where it mutates.
func (s *sender) prove(ctx context.Context, path string) error {
	text, err := s.post(ctx, path)
	if err != nil {
		return err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil || review.Response == nil || !review.Response.Allowed ||
		strings.Contains(string(review.Response.Patch), v1alpha1.AnnotationRuntimeSnapshot) != (path == signalbox.TrainJobMutatePath) {
		return fmt.Errorf("%s answered %s", path, text)
	}
	return nil
}

// step sends requests over this many connections for this long.
func (s *sender) step(ctx context.Context, path string, connections int, d time.Duration) (*loadStep, error) {
	if err := s.prove(ctx, path); err != nil {
		return nil, err
	}
	found := &loadStep{path: path, connections: connections}
	cpu, reads, err := s.spent(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	group, sending := errgroup.WithContext(ctx)
	began := time.Now()
	for range connections {
		group.Go(func() error {
			var own figures.Samples
			for sent := time.Now(); sent.Sub(began) < d; {
				text, err := s.post(sending, path)
				if err == nil && !bytes.Contains(text, []byte(`"allowed":true`)) {
					err = fmt.Errorf("answered %s", text)
				}
				if err != nil {
					return err
				}
				now := time.Now()
				own, sent = append(own, now.Sub(sent)), now
			}
			mu.Lock()
			defer mu.Unlock()
			found.latencies = append(found.latencies, own...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("%s over %d connections: %w", path, connections, err)
	}
	found.took = time.Since(began)
	cpuAfter, readsAfter, err := s.spent(ctx)
	found.cpu, found.reads = cpuAfter-cpu, readsAfter-reads
	return found, err
}

// spent reads how much CPU, in seconds, the webhook has taken, and how often it has read from the
// API server.
func (s *sender) spent(ctx context.Context) (cpu, reads float64, err error) {
	if cpu, err = figure(ctx, s.webhook.MetricsURL, "process_cpu_seconds_total"); err != nil {
		return 0, 0, err
	}
	reads, err = figure(ctx, s.webhook.MetricsURL, "rest_client_requests_total", "method", "GET")
	return cpu, reads, err
}

// memoryWatch fills a loadMemory.
type memoryWatch struct {
	mu sync.Mutex
	loadMemory
}

// mark notes that the next second's figure is the one.
func (w *memoryWatch) mark(which *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*which = len(w.bytes)
}

// watchMemory reads the memory of the webhook every second until stop is called, which reads it once
// more.
func (s *sender) watchMemory(ctx context.Context) (watched *memoryWatch, stop func() error) {
	watched = &memoryWatch{}
	began := time.Now()
	look := func(ctx context.Context) error {
		bytes, err := figure(ctx, s.webhook.MetricsURL, "process_resident_memory_bytes")
		if err != nil {
			return err
		}
		watched.mu.Lock()
		defer watched.mu.Unlock()
		watched.seconds, watched.bytes = append(watched.seconds, time.Since(began).Seconds()), append(watched.bytes, bytes)
		return nil
	}
	watching, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for {
			select {
			case <-watching.Done():
				done <- nil
				return
			case <-every.C:
			}
			if err := look(watching); err != nil && watching.Err() == nil {
				done <- err
				return
			}
		}
	}()
	return watched, sync.OnceValue(func() error {
		cancel()
		if err := <-done; err != nil {
			return err
		}
		return look(ctx)
	})
}
