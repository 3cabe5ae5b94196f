package install_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Every feature is turned off, and its rights with it, then on again: deadlines hold all the while,
// and nothing asks for what it may not.
func TestInstallFeatures(t *testing.T) {
	const limit = time.Second
	s := newScene(t, helm4)
	var off []string
	for _, value := range []string{"snapshots.enabled", "policies.enabled", "ttl.enabled", "runtimes.guard"} {
		off = append(off, "--set", value+"=false")
	}
	s.install(chart, off...)
	job := s.create("off", deadline(limit), set("0", "metadata", "annotations", v1alpha1.AnnotationTTLSecondsAfterFinished))
	if job.Annotations[v1alpha1.AnnotationRuntimeSource] != "" {
		t.Error("without snapshots a TrainJob is sealed")
	}
	s.failsAt("off", s.start(job).Add(limit))
	s.create("running")
	s.runs("running", true)
	if err := s.clock(); err != nil {
		t.Errorf("without the guard a clock is refused: %v", err)
	}
	s.allowed()
	if s.get("off").UID != job.UID {
		t.Error("without TTL a finished TrainJob was removed")
	}

	// With what is off by default, as far as its kinds are there.
	on := []string{"--reset-values"}
	for _, value := range []string{
		"runtimes.admissionPolicy=true", "networkPolicy.enabled=true", "networkPolicy.webhookFrom={10.0.0.0/8}",
		"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring", "metrics.service.enabled=true",
		"metrics.grafanaDashboard.enabled=true", "webhook.priorityClassName=system-cluster-critical", "imagePullSecrets={registry}",
	} {
		on = append(on, "--set", value)
	}
	s.upgrade(chart, on...)
	s.accepted()
	s.eventually("the end of the pods that go", func() (bool, string) {
		var pods corev1.PodList
		s.must(shared.Client.List(s.ctx, &pods, client.InNamespace(systemNamespace)))
		return len(pods.Items) == 4, fmt.Sprintf("%d pods", len(pods.Items))
	})
	s.disappears("TrainJob off", s.trainJob("off"))
	s.works("on")
	s.runs("running", true)
	if err := s.clock(); err == nil || !strings.Contains(err.Error(), "it is a second clock") {
		t.Errorf("with the guard a clock is not refused: %v", err)
	}
	s.allowed()
}

// clock tries to set a clock in a runtime. The reconciler may write that at the same time.
func (s *scene) clock() error {
	s.Helper()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		runtime := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
		s.must(shared.Client.Get(s.ctx, client.ObjectKey{Name: "torch-distributed"}, runtime))
		jobs, _, err := unstructured.NestedSlice(runtime.Object, "spec", "template", "spec", "replicatedJobs")
		s.must(err)
		s.must(unstructured.SetNestedField(jobs[0].(map[string]any), int64(5), "template", "spec", "activeDeadlineSeconds"))
		s.must(unstructured.SetNestedSlice(runtime.Object, jobs, "spec", "template", "spec", "replicatedJobs"))
		return shared.Client.Update(s.ctx, runtime, client.DryRunAll)
	})
}

// allowed checks that no pod was refused what it asked the API server for.
func (s *scene) allowed() {
	s.Helper()
	for _, component := range []string{"webhook", "reconciler"} {
		for _, pod := range shared.Pods(component) {
			log, err := os.ReadFile(pod.Process.LogPath)
			s.must(err)
			for line := range strings.Lines(string(log)) {
				if strings.Contains(line, "forbidden") {
					s.Errorf("pod %s: %s", pod.Name, line)
				}
			}
		}
	}
}
