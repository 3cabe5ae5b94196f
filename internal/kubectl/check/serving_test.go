package check

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// answers serves these answers, of which each starts with its code, by path.
func answers(t *testing.T, by map[string]string) *source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := by[r.URL.Path]
		if !found {
			t.Errorf("a request for %s", r.URL.Path)
		}
		kind, body, _ := strings.Cut(answer, " ")
		code := map[string]int{"200": 200, "403": 403, "404": 404, "500": 500, "502": 502, "503": 503, "504": 504}[kind]
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		} else {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &source{Discovery: client, Namespace: system}
}

func TestReach(t *testing.T) {
	const path = "/api/v1/namespaces/signalbox-system/services/https:signalbox-webhook:443/proxy/"
	for name, tc := range map[string]struct {
		answer string
		want   Reached
	}{
		"the webhook knows no such page": {"404 404 page not found\n", Reached{Tried: true}},
		"it has one":                     {"200 hello", Reached{Tried: true}},
		"it is at a loss":                {"500 oops", Reached{Tried: true}},
		"the API server does not reach it": {
			`503 {"kind":"Status","apiVersion":"v1","status":"Failure","message":"error trying to reach service: dial tcp 10.0.0.1:9443: i/o timeout","reason":"ServiceUnavailable","code":503}`,
			Reached{Tried: true, Failure: "dial tcp 10.0.0.1:9443: i/o timeout"},
		},
		"no right": {
			`403 {"kind":"Status","apiVersion":"v1","status":"Failure","message":"services \"https:signalbox-webhook:443\" is forbidden","reason":"Forbidden","code":403}`,
			Reached{},
		},
		"nobody says who was not reached": {
			`503 {"kind":"Status","apiVersion":"v1","status":"Failure","message":"no endpoints available for service \"https:signalbox-webhook:443\"","reason":"ServiceUnavailable","code":503}`,
			Reached{Untold: `cannot read the webhook's answer by way of the Service signalbox-webhook: no endpoints available for service "https:signalbox-webhook:443"`},
		},
		"an API server in trouble": {
			`500 {"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcd is away","reason":"InternalError","code":500}`,
			Reached{Untold: "cannot read the webhook's answer by way of the Service signalbox-webhook: etcd is away"},
		},
		"a bad gateway": {
			`502 {"kind":"Status","apiVersion":"v1","status":"Failure","message":"dial tcp","code":502}`,
			Reached{Tried: true, Failure: "dial tcp"},
		},
		"a gateway that has waited": {
			`504 {"kind":"Status","apiVersion":"v1","status":"Failure","message":"i/o timeout","reason":"Timeout","code":504}`,
			Reached{Tried: true, Failure: "i/o timeout"},
		},
		"no such Service": {
			`404 {"kind":"Status","apiVersion":"v1","status":"Failure","message":"services \"signalbox-webhook\" not found","reason":"NotFound","code":404}`,
			Reached{Untold: "the webhook's answer by way of the Service signalbox-webhook: not found"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answers(t, map[string]string{path: tc.answer}).reach(t.Context(), system, "signalbox-webhook", 443); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	pod := func(n string) string {
		return "/api/v1/namespaces/signalbox-system/pods/webhook-" + n + ":8080/proxy/metrics"
	}
	const forbidden = `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	for name, tc := range map[string]struct {
		answers map[string]string
		want    []time.Time
	}{
		"both tell": {
			map[string]string{pod("1"): "200 # HELP\nsignalbox_certificate_expiry_timestamp_seconds 1.7e+09\n", pod("2"): "200 signalbox_certificate_expiry_timestamp_seconds 1800000000\n"},
			[]time.Time{time.Unix(1700000000, 0).UTC(), time.Unix(1800000000, 0).UTC()},
		},
		"one does not answer, the other has none": {map[string]string{pod("1"): "503 away", pod("2"): "200 up 1\n"}, nil},
		"no right, asked once":                    {map[string]string{pod("1"): forbidden}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			facts := &Facts{Namespace: system, Webhook: seen(&appsv1.Deployment{})}
			facts.Webhook.Value.Spec.Template.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "webhook", ContainerPort: 9443}, {Name: "metrics", ContainerPort: 8080}}}}
			facts.Slices = seen([]discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Name: "webhook-1"}},
				{Addresses: []string{"10.0.0.2"}, TargetRef: &corev1.ObjectReference{Name: "webhook-2"}},
			}}})
			got := answers(t, tc.answers).ends(t.Context(), facts)
			if len(got) != len(tc.want) {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
			for i := range got {
				if !got[i].Equal(tc.want[i]) {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			}
		})
	}
}

func TestEndIn(t *testing.T) {
	for metrics, want := range map[string]int64{
		"": 0, "signalbox_certificate_expiry_timestamp_seconds_total 5\n": 0,
		"signalbox_certificate_expiry_timestamp_seconds NaN\n": 0, "signalbox_certificate_expiry_timestamp_seconds -1\n": 0,
		"signalbox_certificate_expiry_timestamp_seconds 1e300\n": 0, "signalbox_certificate_expiry_timestamp_seconds x\n": 0,
		"a 1\nsignalbox_certificate_expiry_timestamp_seconds 1.8e+09\nb 2\n": 1800000000,
	} {
		got := endIn(strings.NewReader(metrics))
		if want == 0 && !got.IsZero() || want != 0 && got.Unix() != want {
			t.Errorf("in %q: %v, want %d", metrics, got, want)
		}
	}
}

func TestCertificateOf(t *testing.T) {
	for name, tc := range map[string]struct {
		args       []string
		annotation string
		volume     string
		own        bool
		secret     string
	}{
		"its own":                    {args: []string{"--cert-secret=signalbox-webhook-cert"}, own: true, secret: "signalbox-webhook-cert"},
		"that of a Secret":           {args: []string{"--cert-dir=/certificate"}, volume: "mine", secret: "mine"},
		"cert-manager's":             {args: []string{"--cert-dir=/certificate"}, volume: "signalbox-webhook-tls", annotation: "signalbox-system/signalbox-webhook", secret: "signalbox-webhook-tls"},
		"the Deployment is not read": {secret: "signalbox-webhook-cert"},
		"without a flag":             {own: true, secret: "signalbox-webhook-cert"},
	} {
		t.Run(name, func(t *testing.T) {
			ca := newAuthority(t, now.AddDate(1, 0, 0))
			facts := right(ca, nil)
			facts.Webhook = seen(deployed(system, "signalbox-webhook", "signalbox-webhook", 2, tc.args...))
			if tc.volume != "" {
				facts.Webhook.Value.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: tc.volume}}}}
			}
			facts.Mutating.Value.Annotations = map[string]string{injected: tc.annotation}
			if name == "the Deployment is not read" {
				facts.Webhook = unread[*appsv1.Deployment]()
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: tc.secret}, Data: map[string][]byte{"tls.crt": []byte("it"), "tls.key": []byte("key")}}
			got := (&source{Reader: fakeOf(t, secret)}).certificate(t.Context(), facts)
			if got.Own != tc.own || got.Secret != tc.secret || string(got.Content.Value) != "it" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
