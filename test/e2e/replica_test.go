package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of two reconcilers one acts. The other takes over when it goes: at once when it says so,
// after the lease has run out when it crashed.
func TestDeadlineSecondReconcilerTakesOver(t *testing.T) {
	s := newScene(t)
	second := shared.Replica(shared.Reconciler, "signalbox-reconciler-1")
	s.must(second.Start(s.ctx))
	t.Cleanup(func() {
		// The first one leads again for the tests that follow.
		_ = second.Stop(context.Background())
		if !shared.Reconciler.Running() {
			s.must(shared.Reconciler.Start(context.Background()))
		}
	})
	end := s.stamp(s.create("stopped", deadlineAnnotation(6))).Add(6 * time.Second)
	if looks := s.figure(second, "controller_runtime_reconcile_total", "controller", "deadline"); looks != 0 {
		t.Errorf("the second looked at %v TrainJobs beside the first", looks)
	}
	s.must(shared.Reconciler.Stop(s.ctx))
	if late := s.failsAt("stopped", end); late > 5*time.Second {
		t.Errorf("failed %s after its deadline though the first had said that it goes", late)
	}

	s.must(shared.Reconciler.Start(s.ctx))
	end = s.stamp(s.create("crashed", deadlineAnnotation(6))).Add(6 * time.Second)
	second.Kill()
	s.failsAt("crashed", end)
}

// The webhook makes its own certificate in an empty Secret, with the rights of the chart;
// a second replica serves the same one.
func TestCertificateSelfManaged(t *testing.T) {
	s := newScene(t)
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: "signalbox"}
	read := func() {
		s.must(s.cluster.Client.Get(context.Background(), key, mutating))
		s.must(s.cluster.Client.Get(context.Background(), key, validating))
	}
	read()
	before, validatingBefore := mutating.DeepCopy().Webhooks, validating.DeepCopy().Webhooks
	t.Cleanup(func() {
		// The cluster's own webhook serves a certificate of the test's CA.
		read()
		mutating.Webhooks, validating.Webhooks = before, validatingBefore
		s.must(s.cluster.Client.Update(context.Background(), mutating))
		s.must(s.cluster.Client.Update(context.Background(), validating))
		s.eventually("the webhook of the cluster", func() (bool, string) {
			err := s.cluster.Client.Create(context.Background(), s.trainJob("probe"), client.DryRunAll)
			return err == nil, fmt.Sprint(err)
		})
	})
	var served []string
	for _, pod := range []string{"signalbox-webhook-1", "signalbox-webhook-2"} {
		replica, address := shared.WebhookReplica(pod)
		s.must(replica.Start(s.ctx))
		t.Cleanup(func() { _ = replica.Stop(context.Background()) })
		read()
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(mutating.Webhooks[0].ClientConfig.CABundle) {
			t.Fatal("ready without a CA in the mutating configuration")
		}
		if !bytes.Equal(mutating.Webhooks[0].ClientConfig.CABundle, validating.Webhooks[0].ClientConfig.CABundle) {
			t.Fatal("the validating configuration has another CA than the mutating one")
		}
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "signalbox-webhook.signalbox-system.svc"})
		s.must(err)
		served = append(served, string(connection.ConnectionState().PeerCertificates[0].Raw))
		s.must(connection.Close())
	}
	if served[0] != served[1] {
		t.Error("the replicas serve different certificates")
	}
}
