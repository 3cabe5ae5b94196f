// Package integration_test proves that Signalbox goes with each release of Trainer. The
// control plane has Trainer's and JobSet's kinds, accounts and rights but none of their
// programs: the test plays Trainer. One control plane serves all releases, whose CRDs are
// installed one after the other while Signalbox runs, as upgrades would.
package integration_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// shared is the cluster of all tests but TestDeadlineDetect, which needs none.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard()) // it gets warnings of the API server that probes bring about
	if err := load(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "read the releases of Trainer:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// tests are run with every release, the longest first.
var tests = []struct {
	name string
	test func(*scene)
}{
	{"suspend stops the deadline, resume restarts it", testSuspend},
	{"a deadline by annotation ends the job", testAnnotation},
	{"the spec field", testSpecField},
	{"patches change nothing else", testPatches},
	{"an end stays", testEndStays},
	{"the annotation is validated", testAnnotationValidated},
	{"protected annotations", testProtected},
	{"dry run", testDryRun},
	{"a policy", testPolicy},
	{"removed when finished", testTTL},
	{"limits of a later Trainer's own", testOwnLimits},
}

// TestDeadlineOnEveryTrainer upgrades Trainer from release to release.
func TestDeadlineOnEveryTrainer(t *testing.T) {
	start(t)
	through := throughUpgrades(t)
	// The cluster comes with the latest release.
	for _, r := range releases {
		if r.version == "2.3.0" {
			newScene(t, r).detects(r.knows)
		}
	}
	for _, r := range releases {
		t.Run(r.version, func(t *testing.T) {
			s := newScene(t, r)
			from := s.logged()
			before := s.install()
			s.stamped()
			t.Run("detected while running and at start", func(t *testing.T) { testDetection(s.within(t), before, from) })
			t.Run("a job from before the upgrade", func(t *testing.T) { through(s.within(t)) })
			for _, tc := range tests {
				t.Run(tc.name, func(t *testing.T) {
					t.Parallel()
					tc.test(newScene(t, r))
				})
			}
		})
	}
	t.Run("a later version of the API", testLaterVersion)
	t.Run("reinstalled", testReinstalled)
}

// start starts the shared cluster for the test.
func start(t *testing.T) {
	var err error
	shared, err = cluster.Start(t.Context(), cluster.Options{Signalbox: true, KindsOnly: true, Log: os.Stderr})
	if err != nil {
		t.Fatal("start the cluster:", err)
	}
	if asTrainer, err = shared.ClientFor(trainerUser); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, part := range []*cluster.Process{shared.Webhook, shared.Reconciler} {
				data, _ := os.ReadFile(part.LogPath)
				lines := strings.Split(strings.TrimSpace(string(data)), "\n")
				t.Logf("last lines of %s\n%s", part.Name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
			}
		}
		if err := shared.Close(); err != nil {
			t.Error("close the cluster:", err)
		}
	})
}

// throughUpgrades returns a test of a TrainJob that is made with the first release and lives
// on through all others: its deadline stays as it was, and does not move to the field.
func throughUpgrades(t *testing.T) func(*scene) {
	var namespace, stamp string
	return func(s *scene) {
		if namespace == "" {
			namespace = s.namespace
			stamp = s.create("job", deadlineAnnotation(3600)).Annotations[v1alpha1.AnnotationResumedAt]
		}
		s.namespace = namespace
		s.passes("job")
		got := s.get("job").Annotations[v1alpha1.AnnotationResumedAt]
		if stamp == "" || got != stamp {
			t.Errorf("with Trainer %s the stamp is %q, want %q", s.release.version, got, stamp)
		}
		if s.release.knows.ActiveDeadline {
			_, err := s.tryPatch("job", `{"spec":{"activeDeadlineSeconds":7200}}`)
			s.invalid(err, "spec.activeDeadlineSeconds: Invalid value: 7200: field is immutable")
		}
	}
}

// testReinstalled removes Trainer's CRD and brings it back, while Signalbox runs.
func testReinstalled(t *testing.T) {
	s := newScene(t, releases[len(releases)-1])
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: trainer.CRDName}}
	from := s.logged()
	s.must(shared.Client.Delete(s.ctx, crd))
	s.detects(trainer.Capabilities{})
	s.eventually("the end of the CRD", func() (bool, string) {
		err := shared.Client.Get(s.ctx, client.ObjectKeyFromObject(crd), crd)
		return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprint(crd.Status.Conditions)
	})
	s.must(shared.Client.Create(s.ctx, s.release.crd.DeepCopy()))
	s.served()
	s.detects(s.release.knows)
	s.said(from, trainer.Capabilities{}, s.release.knows)
	end := s.stamp(s.create("job", deadlineAnnotation(2))).Add(2 * time.Second)
	s.failsAt("job", end)
}
