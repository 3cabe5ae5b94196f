package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// editor returns a client of somebody who may edit the scene's namespace: what the ClusterRole
// edit is put together from, and all that there is of TrainJobs and TrainingRuntimes but the status.
func (s *scene) editor() client.Client {
	s.Helper()
	const user = "editor"
	bind := func(kind, name string) {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: strings.ReplaceAll(kind+"-"+name, ":", "-")},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		s.must(client.IgnoreAlreadyExists(s.cluster.Client.Create(s.ctx, binding)))
	}
	for _, verb := range []string{"view", "edit"} {
		var roles rbacv1.ClusterRoleList
		s.must(s.cluster.Client.List(s.ctx, &roles, client.MatchingLabels{"rbac.authorization.k8s.io/aggregate-to-" + verb: "true"}))
		if len(roles.Items) == 0 {
			s.Fatalf("there is no ClusterRole that makes up %s", verb)
		}
		for _, role := range roles.Items {
			bind("ClusterRole", role.Name)
		}
	}
	s.must(s.cluster.Client.Create(s.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "trains"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{trainer.GroupVersion.Group}, Resources: []string{"trainjobs", "trainingruntimes"}, Verbs: []string{"*"}}},
	}))
	bind("Role", "trains")
	c, err := s.cluster.ClientFor(user)
	s.must(err)
	s.eventually("the rights of the editor", func() (bool, string) {
		err := c.Create(s.ctx, s.trainJob("try"), client.DryRunAll)
		return !apierrors.IsForbidden(err), fmt.Sprint(err)
	})
	return c
}

// named is an object of another kind that needs no fields.
func (s *scene) named(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

// What decides over the TrainJobs of a namespace is not for its editors to write.
func TestSecurityEditorMayNot(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	editor := s.editor()
	s.create("job", deadline(3600))
	s.eventually("the filed snapshot", func() (bool, string) { return s.filed("job") != nil, "none" })
	policy := s.sets("p", `{"activeDeadline":{"max":"2h"}}`)
	filed := s.named(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind), s.namespace, "job")
	other := filed.DeepCopy()
	other.SetName("other")
	admission := admissionregistrationv1.SchemeGroupVersion
	core := corev1.SchemeGroupVersion
	patch := mergePatch(`{"metadata":{"labels":{"a":"b"}}}`)
	for what, try := range map[string]func() error{
		"edit a snapshot":   func() error { return editor.Patch(s.ctx, filed.DeepCopy(), patch) },
		"delete a snapshot": func() error { return editor.Delete(s.ctx, filed.DeepCopy()) },
		"make a snapshot":   func() error { return editor.Create(s.ctx, other.DeepCopy()) },
		"edit a policy":     func() error { return editor.Patch(s.ctx, policy.DeepCopy(), patch) },
		"delete a policy":   func() error { return editor.Delete(s.ctx, policy.DeepCopy()) },
		"label the namespace": func() error {
			return editor.Patch(s.ctx, s.named(core.WithKind("Namespace"), "", s.namespace), patch)
		},
		"edit a webhook": func() error {
			return editor.Patch(s.ctx, s.named(admission.WithKind("MutatingWebhookConfiguration"), "", "signalbox"), patch)
		},
		"read the webhook's key": func() error {
			return editor.Get(s.ctx, client.ObjectKey{Namespace: "signalbox-system", Name: "signalbox-webhook-cert"}, &corev1.Secret{})
		},
		"write a status": func() error {
			return editor.Status().Patch(s.ctx, s.trainJob("job"), mergePatch(`{"status":{"conditions":[]}}`))
		},
		"edit a runtime of the cluster": func() error {
			return editor.Patch(s.ctx, s.named(trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind), "", "torch-distributed"), patch)
		},
		"read a runtime elsewhere": func() error {
			return editor.Get(s.ctx, client.ObjectKey{Namespace: "default", Name: "any"}, s.named(trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind), "", ""))
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("an editor tries to %s: %v, want Forbidden", what, err)
		}
	}
	if err := editor.Get(s.ctx, client.ObjectKeyFromObject(filed), filed); err != nil {
		t.Errorf("an editor reads a snapshot: %v", err)
	}
}

// The annotations that the webhook writes stay as they are, whatever an editor sends, also where
// metadata comes with a write of the status.
func TestSecurityStampsOfAnEditor(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	editor := s.editor()
	forged := map[string]any{}
	for _, key := range v1alpha1.ProtectedAnnotations() {
		forged[key] = "2099-01-01T00:00:00Z"
	}
	job := s.trainJob("job", deadline(3600), set(forged, "metadata", "annotations"))
	s.must(editor.Create(s.ctx, job))
	created := s.get("job")
	if at := s.stamp(created); time.Until(at) > time.Minute {
		t.Errorf("created with the stamp %s", at)
	}
	s.sealed(created)
	write := s.text(map[string]any{"metadata": map[string]any{"annotations": forged}, "spec": map[string]any{"activeDeadlineSeconds": 3600}})
	s.must(editor.Patch(s.ctx, s.trainJob("job"), mergePatch(write)))
	s.must(s.cluster.Client.Status().Patch(s.ctx, s.trainJob("job"), mergePatch(write)))
	if diff := cmp.Diff(created.Annotations, s.get("job").Annotations); diff != "" {
		t.Errorf("the annotations can be forged (-created +now):\n%s", diff)
	}
}

// No write of an editor takes a TrainJob over the maximum of a policy.
func TestSecurityMaximumHolds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	editor := s.editor()
	s.sets("p", `{"activeDeadline":{"max":"1h"}}`)
	given3600 := by(3600, s.byPolicyNamed("p"))
	s.gives(given3600)
	for what, c := range map[string]change{
		"more by spec":                     deadline(3601),
		"more by annotation":               deadlineAnnotation(3601),
		"more by annotation than the spec": all(deadline(3601), deadlineAnnotation(60)),
		"none":                             noDeadline(),
		"a huge number":                    annotated(v1alpha1.AnnotationActiveDeadlineSeconds, strings.Repeat("9", 1000)),
	} {
		if err := editor.Create(s.ctx, s.trainJob("try", c)); !apierrors.IsInvalid(err) {
			t.Errorf("created with %s: %v, want Invalid", what, err)
		}
	}
	job := s.trainJob("job", suspended(), set([]any{"example.com/mine"}, "metadata", "finalizers"))
	s.must(editor.Create(s.ctx, job))
	s.Cleanup(func() {
		_ = s.cluster.Client.Patch(context.Background(), s.trainJob("job"), mergePatch(`{"metadata":{"finalizers":null}}`))
	})
	const more, annotation = `{"spec":{"activeDeadlineSeconds":7200}}`, `{"metadata":{"annotations":{"` + v1alpha1.AnnotationActiveDeadlineSeconds + `":"7200"}}}`
	for _, patch := range []string{more, annotation} {
		if err := editor.Patch(s.ctx, s.trainJob("job"), mergePatch(patch)); !apierrors.IsInvalid(err) {
			t.Errorf("patched with %s: %v, want Invalid", patch, err)
		}
	}
	unchanged := func(what string) {
		t.Helper()
		if got := given(s.get("job")); got != given3600 {
			t.Errorf("%s: the deadline is %q, want %q", what, got, given3600)
		}
	}
	s.must(editor.Patch(s.ctx, s.trainJob("job"), mergePatch(`{"spec":{"activeDeadlineSeconds":null}}`)))
	unchanged("removed")
	// Being suspended and resumed, it gets the full time again: that is what a deadline counts.
	first := s.stamp(s.resume("job"))
	s.must(editor.Patch(s.ctx, s.trainJob("job"), mergePatch(`{"spec":{"suspend":true}}`)))
	s.must(editor.Patch(s.ctx, s.trainJob("job"), mergePatch(`{"spec":{"suspend":false}}`)))
	if again := s.stamp(s.get("job")); !again.After(first) {
		t.Errorf("suspended and resumed: the stamp is %s, it was %s", again, first)
	}
	unchanged("suspended and resumed")
	s.must(editor.Delete(s.ctx, s.trainJob("job")))
	for _, patch := range []string{more, annotation} {
		s.must(editor.Patch(s.ctx, s.trainJob("job"), mergePatch(patch)))
		unchanged("held by a finalizer of one's own and patched with " + patch)
	}

	// One that another controller runs has no deadline here, and stays that controller's.
	s.must(editor.Create(s.ctx, s.trainJob("elsewhere", deadline(99999), set("kueue.x-k8s.io/multikueue", "spec", "managedBy"))))
	for _, patch := range []string{`{"spec":{"managedBy":"trainer.kubeflow.org/trainjob-controller"}}`, `{"spec":{"managedBy":null}}`} {
		if err := editor.Patch(s.ctx, s.trainJob("elsewhere"), mergePatch(patch)); !apierrors.IsInvalid(err) {
			t.Errorf("taken back with %s: %v, want Invalid", patch, err)
		}
	}
}

// What a TrainJob is deleted without goes on without it: an editor who orphans the JobSet has pods
// without a deadline, as who makes JobSets or pods has.
func TestSecurityOrphansHaveNoDeadline(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	editor := s.editor()
	// Long enough for a busy machine to have it orphaned before its deadline.
	const limit = 40
	s.must(editor.Create(s.ctx, s.trainJob("job", deadlineAnnotation(limit))))
	s.running("job")
	end := s.stamp(s.get("job")).Add(limit * time.Second)
	s.must(editor.Delete(s.ctx, s.trainJob("job"), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.eventually("the end of the TrainJob", func() (bool, string) {
		err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(s.trainJob("job")), s.trainJob("job"))
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	if now := time.Now(); !now.Before(end) {
		t.Fatalf("the TrainJob was gone %s after its deadline", now.Sub(end))
	}
	for ; time.Now().Before(end.Add(3 * time.Second)); time.Sleep(100 * time.Millisecond) {
		if s.jobSet() == nil {
			t.Fatal("the JobSet is gone")
		}
	}
}

// No reference reaches a runtime of another namespace, and none that is odd is more than refused.
func TestSecurityRuntimeOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	other, s := newScene(t), newScene(t)
	other.runtime("secret", jobSetOf(oldImage))
	// The webhook has seen it: what it knows it need not read again.
	other.create("job", onRuntime("secret"), deadline(3600))
	editor := s.editor()
	for what, ref := range map[string]map[string]any{
		"by name":              {"kind": "TrainingRuntime", "name": "secret"},
		"by a path":            {"kind": "TrainingRuntime", "name": other.namespace + "/secret"},
		"by a path upwards":    {"kind": "TrainingRuntime", "name": "../../" + other.namespace + "/trainingruntimes/secret"},
		"by an escaped path":   {"kind": "TrainingRuntime", "name": "..%2F..%2F" + other.namespace + "%2Ftrainingruntimes%2Fsecret"},
		"by a dot":             {"kind": "TrainingRuntime", "name": "."},
		"with a namespace":     {"kind": "TrainingRuntime", "name": "secret", "namespace": other.namespace},
		"as of the cluster":    {"kind": "ClusterTrainingRuntime", "name": "secret"},
		"as a Secret":          {"kind": "Secret", "apiGroup": "", "name": "signalbox-webhook-cert"},
		"as another kind":      {"kind": "TrainJob", "name": "secret"},
		"as of another group":  {"kind": "TrainingRuntime", "apiGroup": "example.com", "name": "secret"},
		"as a list of runtime": {"kind": "TrainingRuntimeList", "name": "secret"},
	} {
		for _, c := range []change{deadline(60), suspended()} {
			job := s.trainJob("try", c, set(ref, "spec", "runtimeRef"))
			err := editor.Create(s.ctx, job)
			if err == nil {
				s.must(s.cluster.Client.Delete(s.ctx, job))
			}
			switch {
			case err == nil:
				t.Errorf("%s, created: %v", what, job.GetAnnotations())
			case !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err):
				t.Errorf("%s: %v, want Invalid or Forbidden", what, err)
			}
			// Whoever else refuses it: it is not even looked for there.
			request := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: s.namespace}
			request.Object.Raw = []byte(s.text(job))
			if answer := s.directly(admission.TrainJobMutatePath, request); strings.Contains(string(answer.Patch), v1alpha1.AnnotationRuntimeSnapshot) {
				t.Errorf("%s: sealed by %s", what, answer.Patch)
			}
		}
	}
}

// directly sends the webhook a request of one's own making. It authenticates nobody.
func (s *scene) directly(path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	s.Helper()
	request.UID = "forged"
	code, text, err := s.post(path, s.review(request))
	s.must(err)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil || review.Response == nil {
		s.Fatalf("answered by %d %s", code, text)
	}
	return review.Response
}

// review is what the API server sends.
func (s *scene) review(request *admissionv1.AdmissionRequest) string {
	s.Helper()
	return s.text(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
}

// post sends a body to the webhook at this path, and returns the code and the body of its answer.
func (s *scene) post(path, body string) (int, []byte, error) {
	var hooks admissionregistrationv1.MutatingWebhookConfiguration
	if err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, &hooks); err != nil {
		return 0, nil, err
	}
	server, _, _ := strings.Cut(*hooks.Webhooks[0].ClientConfig.URL, "/mutate-")
	anybody := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	defer anybody.CloseIdleConnections()
	answer, err := anybody.Post(server+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// Who reaches the webhook's port needs no identity: with requests of one's own making one changes
// nothing, and reads runtimes and names of TrainJobs of any namespace.
func TestSecurityDirectCalls(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.runtime("train", jobSetOf(oldImage))
	s.known("train")
	s.create("job", onRuntime("train"), deadline(3600))
	s.runs("job", oldImage)
	s.settled("job")
	runtime := s.named(trainer.GroupVersion.WithKind(trainer.TrainingRuntimeKind), s.namespace, "train")
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), runtime))
	before := s.get("job")

	forged := s.trainJob("forged", onRuntime("train"))
	request := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: s.namespace}
	request.Object.Raw = []byte(s.text(forged))
	created := s.directly(admission.TrainJobMutatePath, request)
	if !created.Allowed || !strings.Contains(string(created.Patch), v1alpha1.AnnotationRuntimeSnapshot) {
		t.Errorf("a forged creation is answered by %+v, want what would be sealed", created)
	}
	request = &admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Namespace: s.namespace, Kind: metav1.GroupVersionKind{Kind: trainer.TrainingRuntimeKind}}
	request.OldObject.Raw = []byte(s.text(runtime))
	s.eventually("a refusal of the forged deletion of a runtime", func() (bool, string) {
		deleted := s.directly(admission.RuntimeValidatePath, request)
		return !deleted.Allowed && strings.Contains(deleted.Result.Message, s.namespace+"/job"), s.text(deleted)
	})

	if err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(forged), forged); !apierrors.IsNotFound(err) {
		t.Errorf("after a forged creation: %v", err)
	}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), runtime))
	// Trainer may still write its status.
	after := s.get("job")
	if diff := cmp.Diff(before.Annotations, after.Annotations); diff != "" || after.Generation != before.Generation {
		t.Errorf("the TrainJob was written: generation %d, was %d; annotations (-was +is):\n%s", after.Generation, before.Generation, diff)
	}
}
