package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster"
)

// setFailurePolicy sets the policy of the webhooks of these names.
func (s *scene) setFailurePolicy(policy admissionregistrationv1.FailurePolicyType, names ...string) {
	s.Helper()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.must(s.cluster.Client.Get(context.Background(), client.ObjectKey{Name: "signalbox"}, mutating))
	s.must(s.cluster.Client.Get(context.Background(), client.ObjectKey{Name: "signalbox"}, validating))
	for i := range mutating.Webhooks {
		if named(mutating.Webhooks[i].Name, names) {
			mutating.Webhooks[i].FailurePolicy = &policy
		}
	}
	for i := range validating.Webhooks {
		if named(validating.Webhooks[i].Name, names) {
			validating.Webhooks[i].FailurePolicy = &policy
		}
	}
	s.must(s.cluster.Client.Update(context.Background(), mutating))
	s.must(s.cluster.Client.Update(context.Background(), validating))
}

// named tells whether the webhook has one of the short names.
func named(webhook string, names []string) bool {
	return slices.Contains(names, strings.TrimSuffix(webhook, ".lifecycle.trainer.kubeflow.org"))
}

// ignored lets pass, while no webhook answers, what needs the webhooks of these names, until the
// test ends.
func (s *scene) ignored(names ...string) {
	s.Helper()
	s.Cleanup(func() { s.afterwards().setFailurePolicy(admissionregistrationv1.Fail, names...) })
	s.setFailurePolicy(admissionregistrationv1.Ignore, names...)
}

// crashed kills a part, which is away until the returned function is called or the test ends.
func (s *scene) crashed(part *cluster.Process) (back func()) {
	s.Helper()
	part.Kill()
	back = sync.OnceFunc(func() { s.must(part.Start(context.Background())) })
	s.Cleanup(back)
	return back
}

// notCalling tells whether a request was refused since the API server got no answer from the
// webhook of this short name: as it is when the webhook is away, and by a text that names it.
func notCalling(err error, hook string) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(),
		fmt.Sprintf(`failed calling webhook "%s.lifecycle.trainer.kubeflow.org": failed to call webhook: Post "https://`, hook))
}

// apiServerFigure is a metric of the API server, as figure reads it.
func (s *scene) apiServerFigure(name string, labels ...string) float64 {
	s.Helper()
	transport, err := rest.HTTPClientFor(s.cluster.Config)
	s.must(err)
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.cluster.Config.Host+"/metrics", nil)
	s.must(err)
	response, err := transport.Do(request)
	s.must(err)
	defer func() { _ = response.Body.Close() }()
	return s.sum(response.Body, name, labels)
}
