package check

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

const (
	// injected is on the webhook configurations where cert-manager gives them the CA, and names the
	// Certificate as NAMESPACE/NAME.
	injected = "cert-manager.io/inject-ca-from"
	// endMetric is the metric of the webhook that tells the end of the certificate that it serves.
	endMetric = "signalbox_certificate_expiry_timestamp_seconds"
	// mostMetrics bounds, in bytes, what is read of the metrics of a pod.
	mostMetrics = 4 << 20
	// unreached is how the API server says that nothing answered it.
	unreached = "error trying to reach service"
)

// certificateKind is cert-manager's.
var certificateKind = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}

// readServing reads what is known of the webhook that serves: which pods are ready, whether it can be
// reached, and its certificate.
func (s *source) readServing(ctx context.Context, facts *Facts) {
	namespace, name, found := service(facts)
	if !found || !mayBe(facts) {
		return
	}
	facts.Slices = list[discoveryv1.EndpointSlice](ctx, s, sliceKind, namespace, discoveryv1.LabelServiceName+"="+name, nil)
	// Where no pod is ready there is nobody to answer.
	if !facts.Slices.There() || ready(facts.Slices.Value) > 0 {
		facts.Answer = s.reach(ctx, namespace, name, port(facts))
	}
	facts.Certificate = s.certificate(ctx, facts)
}

// port is the port of the Service that the API server calls.
func port(facts *Facts) int32 {
	for _, hook := range all(facts) {
		if service := hook.ClientConfig.Service; service != nil {
			return ptr.Deref(service.Port, 443)
		}
	}
	return 443
}

// rest returns a client for any path of the API server; nil where there is none, as in tests.
func (s *source) rest() rest.Interface {
	client := s.Discovery.RESTClient()
	if concrete, ok := client.(*rest.RESTClient); ok && concrete == nil {
		return nil
	}
	return client
}

// reach has the API server get a page of the webhook that is not there: any answer of the webhook
// will do, and its log says nothing of it.
func (s *source) reach(ctx context.Context, namespace, name string, port int32) Reached {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.rest() == nil {
		return Reached{}
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/services/https:%s:%d/proxy/", namespace, name, port)
	err := s.rest().Get().AbsPath(path).Do(ctx).Error()
	code := int32(http.StatusOK)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = status.Status().Code
	}
	switch {
	case err == nil:
		return Reached{Tried: true}
	case apierrors.IsServiceUnavailable(err) && strings.Contains(err.Error(), unreached), code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		return Reached{Tried: true, Failure: strings.TrimPrefix(err.Error(), unreached+": ")}
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && !apierrors.IsServiceUnavailable(err):
		return Reached{Tried: true}
	case apierrors.IsForbidden(err):
		return Reached{}
	}
	return Reached{Untold: kubectl.Why("the webhook's answer by way of the Service "+name, err)}
}

// certificate reads what is known of the certificate: from its Secret, or else from who else tells.
func (s *source) certificate(ctx context.Context, facts *Facts) Certificate {
	// Who else may make it is seen in the Deployment.
	known := Certificate{Own: facts.Webhook.There(), Secret: ownSecret}
	if facts.Webhook.There() {
		if _, files := value(facts.Webhook, "--cert-dir="); files {
			known.Own = false
			for _, volume := range facts.Webhook.Value.Spec.Template.Spec.Volumes {
				if volume.Secret != nil {
					known.Secret = volume.Secret.SecretName
				}
			}
		} else if name, found := value(facts.Webhook, "--cert-secret="); found {
			known.Secret = name
		}
	}
	order := cmp.Or(annotation(facts.Mutating, injected), annotation(facts.Validating, injected))
	if order != "" {
		known.Own = false
	}
	secret := get(ctx, s, &corev1.Secret{}, facts.Namespace, known.Secret)
	known.Content = Seen[[]byte]{Missing: secret.Missing, Unread: secret.Unread}
	if secret.There() {
		known.Content.Value = secret.Value.Data[corev1.TLSCertKey]
		if facts.Webhook.There() {
			return known
		}
	}
	known.Ends = s.ends(ctx, facts)
	if namespace, name, found := strings.Cut(order, "/"); found {
		known.Order = s.order(ctx, namespace, name)
	}
	return known
}

// annotation returns the value of an annotation; "" for none.
func annotation[T metav1.Object](seen Seen[T], key string) string {
	if !seen.There() {
		return ""
	}
	return seen.Value.GetAnnotations()[key]
}

// order returns the end that cert-manager tells of a Certificate; the zero time for none.
func (s *source) order(ctx context.Context, namespace, name string) time.Time {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(certificateKind)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return time.Time{}
	}
	text, _, _ := unstructured.NestedString(object.Object, "status", "notAfter")
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return end
}

// ends reads the metrics of the replicas that are ready, as long as that is allowed.
func (s *source) ends(ctx context.Context, facts *Facts) []time.Time {
	if !facts.Slices.There() || !facts.Webhook.There() || s.rest() == nil {
		return nil
	}
	metrics := int32(0)
	for _, container := range facts.Webhook.Value.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == "metrics" {
				metrics = port.ContainerPort
			}
		}
	}
	if metrics == 0 {
		return nil
	}
	var ends []time.Time
	for _, slice := range facts.Slices.Value {
		for _, endpoint := range slice.Endpoints {
			if endpoint.TargetRef == nil || !ptr.Deref(endpoint.Conditions.Ready, true) {
				continue
			}
			end, err := s.end(ctx, facts.Namespace, endpoint.TargetRef.Name, metrics)
			if apierrors.IsForbidden(err) {
				return ends
			}
			if err == nil && !end.IsZero() {
				ends = append(ends, end)
			}
		}
	}
	return ends
}

// end reads from the metrics of a pod when its certificate ends; the zero time where they do not tell.
func (s *source) end(ctx context.Context, namespace, pod string, port int32) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", namespace, pod, port)
	body, err := s.rest().Get().AbsPath(path).Stream(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer body.Close()
	return endIn(io.LimitReader(body, mostMetrics)), nil
}

// endIn finds the end of the certificate in metrics, as text; the zero time where it is not there.
func endIn(metrics io.Reader) time.Time {
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		text, found := strings.CutPrefix(lines.Text(), endMetric+" ")
		if !found {
			continue
		}
		seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > 1<<40 {
			return time.Time{}
		}
		return time.Unix(int64(seconds), 0).UTC()
	}
	return time.Time{}
}
