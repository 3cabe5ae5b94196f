package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatchop "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/test/builder"
)

// served is a webhook as it is served, with what the API server calls it for.
type served struct {
	path     string
	handler  http.Handler
	kind     metav1.GroupVersionKind
	resource string
}

// serve makes the seven webhooks, on an API server where there is a bit of everything. A panic
// of a handler is not caught.
func serve(t *testing.T) []served {
	t.Helper()
	bench := newPolicyBench(torch(), builder.LifecyclePolicy("max").Max(100*time.Second),
		builder.LifecyclePolicy("def").Default(time.Second).Runtimes("a", "b"))
	s := take(t, torch())
	job := builder.TrainJob("ns", "job").UID("uid-of-job").Runtime("ClusterTrainingRuntime", "torch").Created(now).Annotations(s.Pack().Seal(now)).Obj()
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	var webhooks []served
	for _, w := range []struct {
		path, group, version, kind, resource string
		handler                              admission.Handler
	}{
		{TrainJobMutatePath, "trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", bench},
		{TrainJobValidatePath, "trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", bench.validator},
		{TrainJobStatusPath, "trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", &TrainJobStatusMutator{Clock: clocktesting.NewFakePassiveClock(now), TrainerUser: trainerUser}},
		{JobSetValidatePath, "jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", jobSetValidator(t, interceptor.Funcs{}, job, builder.ConfigMap(job, text).Obj())},
		{RuntimeMutatePath, "trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes", &RuntimeMutator{}},
		{RuntimeValidatePath, "trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes", newRuntimeBench(t, namespace, mine().Obj(), user("user").Obj())},
		{WorkloadMutatePath, "kueue.x-k8s.io", "v1beta2", "Workload", "workloads", newShelfView(shelved(t, liveTorch()))},
	} {
		webhooks = append(webhooks, served{
			path: w.path, resource: w.resource, kind: metav1.GroupVersionKind{Group: w.group, Version: w.version, Kind: w.kind},
			handler: (&admission.Webhook{Handler: w.handler}).WithRecoverPanic(false),
		})
	}
	return webhooks
}

// send posts a body as the API server does, and returns the answer, which is valid whatever the
// body is: HTTP 200, an AdmissionReview with a response, which allows or says why not.
func (w served) send(t *testing.T, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, w.path, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, req)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || recorder.Code != http.StatusOK || review.Response == nil {
		t.Fatalf("%s: %q is answered by %d %q, %v", w.path, body, recorder.Code, recorder.Body, err)
	}
	answer := review.Response
	if !answer.Allowed && (answer.Result == nil || answer.Result.Code < 400 || answer.Result.Message == "") {
		t.Errorf("%s: %q is refused without a reason: %+v", w.path, body, answer.Result)
	}
	if !answer.Allowed && len(answer.Patch) > 0 {
		t.Errorf("%s: %q is refused with a patch %q", w.path, body, answer.Patch)
	}
	return answer
}

// asked is what a request is made of.
type asked struct {
	operation, object, oldObject, user, subResource string
	dryRun                                          bool
}

// review makes the body of a request. The objects come as they are, JSON or not.
func (w served) review(t testing.TB, a asked) []byte {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID: "uid-of-the-request", Kind: w.kind, Namespace: "ns", Name: "job", Operation: admissionv1.Operation(a.operation),
		Resource: metav1.GroupVersionResource{Group: w.kind.Group, Version: w.kind.Version, Resource: w.resource}, SubResource: a.subResource, DryRun: &a.dryRun,
	}
	request.UserInfo.Username = a.user
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, document := range map[string]string{`"object":`: a.object, `"oldObject":`: a.oldObject} {
		if document != "" {
			body = bytes.Replace(body, []byte(key+"null"), []byte(key+document), 1)
		}
	}
	return body
}

// check sends a request. The answer is to that very request, and a patch applies to the object and
// leaves nothing for a second one.
func (w served) check(t *testing.T, a asked) {
	t.Helper()
	body := w.review(t, a)
	answer := w.send(t, body)
	// What is no JSON, or nested deeper than the decoder goes, is no request to it.
	var review admissionv1.AdmissionReview
	if kjson.Unmarshal(body, &review) == nil && answer.UID != review.Request.UID {
		t.Errorf("%s: %+v is answered as the request %q", w.path, a, answer.UID)
	}
	if len(answer.Patch) == 0 || !isObject(a.object) || w.path == WorkloadMutatePath && !hasPodSets(a.object) {
		return
	}
	var operations []jsonpatchop.Operation
	if err := json.Unmarshal(answer.Patch, &operations); err != nil || answer.PatchType == nil || *answer.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("%s: %+v is answered by the patch %q of type %v: %v", w.path, a, answer.Patch, answer.PatchType, err)
	}
	once := a
	once.object = apply(t, a.object, operations)
	if w.path == WorkloadMutatePath && !uniqueNames(t, once.object) {
		return
	}
	if again := w.send(t, w.review(t, once)); !again.Allowed || string(again.Patch) != "" {
		if diff := cmp.Diff(decode(t, once.object), decode(t, applyRaw(t, once.object, again.Patch))); diff != "" || !again.Allowed {
			t.Errorf("%s: %+v, patched by %s, is patched again by %s, %+v", w.path, a, answer.Patch, again.Patch, again.Result)
		}
	}
}

// applyRaw applies a patch as it is sent.
func applyRaw(t *testing.T, document string, patch []byte) string {
	t.Helper()
	if len(patch) == 0 {
		return document
	}
	var operations []jsonpatchop.Operation
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatal(err)
	}
	return apply(t, document, operations)
}

// isObject tells whether this is an object as the API server sends them, which has metadata.
func isObject(document string) bool {
	var object map[string]any
	if json.Unmarshal([]byte(document), &object) != nil {
		return false
	}
	_, found := object["metadata"].(map[string]any)
	return found
}

// hasPodSets tells whether this is a Workload as the API server sends them.
func hasPodSets(document string) bool {
	var object struct {
		Spec struct {
			PodSets []any `json:"podSets"`
		} `json:"spec"`
	}
	return json.Unmarshal([]byte(document), &object) == nil && object.Spec.PodSets != nil
}

// A value of another type at any place, in the object or the stored one: no panic and a valid answer.
func TestReviewOfOddObjects(t *testing.T) {
	all := requests(t)
	for _, w := range serve(t) {
		t.Run(strings.TrimPrefix(w.path, "/"), func(t *testing.T) {
			for _, request := range all[w.path] {
				w.check(t, request)
				for _, document := range []*string{&request.object, &request.oldObject} {
					whole := *document
					if whole == "" {
						continue
					}
					for _, text := range replaced(t, whole) {
						*document = text
						w.check(t, request)
					}
					*document = whole
				}
			}
		})
	}
}

// Whatever the parts of a request are: no panic, a valid answer, and a patch that applies and is
// enough.
func FuzzReview(f *testing.F) {
	all := requests(f)
	for i, path := range paths {
		for _, a := range all[path] {
			f.Add(uint8(i), a.operation, a.object, a.oldObject, a.user, a.subResource, a.dryRun)
			// One kind of object where another is expected.
			f.Add(uint8(i+1), a.operation, a.object, a.oldObject, a.user, a.subResource, a.dryRun)
		}
		f.Add(uint8(i), "CONNECT", `null`, `null`, "", "scale", false)
		f.Add(uint8(i), "UPDATE", `{"metadata":{"annotations":{"a":"1","a":"2"}},"spec":{"suspend":true,"suspend":false}}`, `{}`, "", "", false)
		f.Add(uint8(i), "", ``, ``, "", "", true)
	}
	var webhooks []served
	f.Fuzz(func(t *testing.T, path uint8, operation, object, oldObject, user, subResource string, dryRun bool) {
		if webhooks == nil {
			webhooks = serve(t)
		}
		w := webhooks[int(path)%len(webhooks)]
		w.check(t, asked{operation: operation, object: object, oldObject: oldObject, user: user, subResource: subResource, dryRun: dryRun})
	})
}

// Whatever the body of a request is: no panic and a valid answer.
func FuzzReviewBody(f *testing.F) {
	all := requests(f)
	webhook := func(path string) served {
		return served{path: path, kind: metav1.GroupVersionKind{Group: "g", Version: "v", Kind: "Kind"}, resource: "kinds"}
	}
	for i, path := range paths {
		for _, a := range all[path] {
			body := webhook(path).review(f, a)
			f.Add(uint8(i), body)
			f.Add(uint8(i), body[:len(body)/2])
			f.Add(uint8(i), bytes.Replace(body, []byte(`admission.k8s.io/v1`), []byte(`admission.k8s.io/v1beta1`), 1))
			f.Add(uint8(i), bytes.Replace(body, []byte(`"kind":"AdmissionReview"`), []byte(`"kind":"Pod"`), 1))
			f.Add(uint8(i), bytes.Replace(body, []byte(`"uid":"uid-of-the-request"`), []byte(`"uid":5`), 1))
		}
	}
	for _, body := range append(slices.Clone(odd), deep, ``, `{`, "\x00\xff", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}`,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"operation":"UPDATE","object":null,"oldObject":null}}`,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"operation":"CREATE","operation":"DELETE","object":{},"object":[]}}`) {
		f.Add(uint8(0), []byte(body))
	}
	var webhooks []served
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		if webhooks == nil {
			webhooks = serve(t)
		}
		webhooks[int(path)%len(webhooks)].send(t, body)
	})
}

// paths are in the order of serve.
var paths = []string{TrainJobMutatePath, TrainJobValidatePath, TrainJobStatusPath, JobSetValidatePath, RuntimeMutatePath, RuntimeValidatePath, WorkloadMutatePath}
