package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

const policyName = "signalbox-runtime-clocks"

// policy renders the admission policy of the chart and its binding.
func (s *scene) policy() []*unstructured.Unstructured {
	s.Helper()
	root, err := binaries.Root()
	s.must(err)
	version, err := binaries.Version(root, "k8s.io/kubernetes")
	s.must(err)
	out, err := binaries.Helm(s.ctx, root, io.Discard, "template", "signalbox", "charts/signalbox", "--namespace", "signalbox-system", "--kube-version", version, "--set", "runtimes.admissionPolicy=true")
	s.must(err)
	var objects []*unstructured.Unstructured
	for decoder := kyaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else {
			s.must(err)
		}
		if kind := object.GetKind(); kind == "ValidatingAdmissionPolicy" || kind == "ValidatingAdmissionPolicyBinding" {
			objects = append(objects, object)
		}
	}
	if len(objects) != 2 {
		s.Fatalf("the chart has %d objects of a policy", len(objects))
	}
	return objects
}

// byPolicy tells whether an error is a refusal of the policy, and fails the test for another
// one.
func (s *scene) byPolicy(err error) bool {
	s.Helper()
	if err == nil {
		return false
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policyName+"' with binding '"+policyName+"' denied request: ") {
		s.Fatalf("refused with %v", err)
	}
	return true
}

// laterJobSet gives runtimes the deadline of the whole JobSet that a later JobSet brings,
// until the test ends.
func (s *scene) laterJobSet() {
	s.Helper()
	const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec/properties/activeDeadlineSeconds"
	change := func(s *scene, patch string, want bool) {
		s.Helper()
		for kind, name := range map[string]string{namespaced: "trainingruntimes.trainer.kubeflow.org", cluster_: "clustertrainingruntimes.trainer.kubeflow.org"} {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
			s.must(s.cluster.Client.Patch(s.ctx, crd, client.RawPatch(types.JSONPatchType, []byte(patch))))
			s.eventually(fmt.Sprintf("the field of a %s: %v", kind, want), func() (bool, string) {
				// Strictly, one that does not know the field refuses it, before all else.
				err := s.cluster.Client.Create(s.ctx, s.object(kind, "probe", jobSetWith(onJob, replicatedJob("a", "", ""))), client.DryRunAll, client.FieldValidation("Strict"))
				return want != (err != nil && strings.Contains(err.Error(), "unknown field")), fmt.Sprint(err)
			})
		}
	}
	s.Cleanup(func() { change(s.afterwards(), fmt.Sprintf(`[{"op":"remove","path":%q}]`, path), false) })
	change(s, fmt.Sprintf(`[{"op":"add","path":%q,"value":{"type":"integer","format":"int64"}}]`, path), true)
}

// laterCases and laterEdits are about the deadline of the whole JobSet.
func laterCases() map[string]clockCase {
	const field = "spec.template.spec.activeDeadlineSeconds"
	return map[string]clockCase{
		"on the JobSet":          {jobSetWith(onJob, replicatedJob("a", "", "")), []string{field}},
		"on the JobSet and more": {jobSetWith(onJob+ttl, replicatedJob("a", "", onPod)), []string{field, "spec.template.spec.ttlSecondsAfterFinished", "spec.template.spec.replicatedJobs[0].template.spec.template.spec.activeDeadlineSeconds"}},
		"null on the JobSet":     {jobSetWith(`"activeDeadlineSeconds":null,`, replicatedJob("a", "", "")), nil},
	}
}

func laterEdits() map[string]clockEdit {
	const field = "spec.template.spec.activeDeadlineSeconds"
	return map[string]clockEdit{
		"another image, with a deadline of the JobSet": {jobSetWith(onJob, replicatedJob("a", "", "")), strings.ReplaceAll(jobSetWith(onJob, replicatedJob("a", "", "")), oldImage, newImage), nil},
		"a deadline of the JobSet changes":             {jobSetWith(onJob, replicatedJob("a", "", "")), jobSetWith(`"activeDeadlineSeconds":6,`, replicatedJob("a", "", "")), []string{field}},
		"it moves from a Job to the JobSet":            {jobSetWith("", replicatedJob("a", onJob, "")), jobSetWith(onJob, replicatedJob("a", "", "")), []string{field}},
	}
}

// The API server refuses by the policy what the webhook refuses, and nothing else: the same
// table of runtimes and of edits as there, on a cluster without the webhook.
func TestGuardPolicyAgreesWithTheWebhook(t *testing.T) {
	s := newSceneOn(t, stock)
	s.laterJobSet()
	cases, edits := clockCases(), clockEdits()
	for name, tc := range laterCases() {
		cases[name] = tc
	}
	for name, edit := range laterEdits() {
		edits[name] = edit
	}
	stored := map[string]map[string]*unstructured.Unstructured{}
	for _, kind := range []string{namespaced, cluster_} {
		stored[kind] = map[string]*unstructured.Unstructured{}
		i := 0
		for name, edit := range edits {
			i++
			stored[kind][name] = s.stored(s.object(kind, fmt.Sprintf("edit-%d", i), edit.before))
		}
	}
	leaving := s.object(namespaced, "leaving", jobSetWith("", replicatedJob("a", "", "")))
	leaving.SetFinalizers([]string{"example.com/keep"})
	s.stored(leaving)
	s.must(s.remove(leaving))

	for _, object := range s.policy() {
		s.must(s.cluster.Client.Create(s.ctx, object))
		s.Cleanup(func() {
			if err := s.cluster.Client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
	s.eventually("the policy to be enforced", func() (bool, string) {
		err := s.cluster.Client.Create(s.ctx, s.object(namespaced, "probe", cases["on the Job template"].jobSet), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), policyName), fmt.Sprint(err)
	})
	// Other tests need bad runtimes on this cluster.
	s.Cleanup(func() {
		s := s.afterwards()
		for _, object := range s.policy() {
			s.must(client.IgnoreNotFound(s.cluster.Client.Delete(s.ctx, object)))
		}
		s.eventually("the end of the policy", func() (bool, string) {
			err := s.cluster.Client.Create(s.ctx, s.object(cluster_, "probe", cases["on the Job template"].jobSet), client.DryRunAll)
			return err == nil, fmt.Sprint(err)
		})
	})

	for _, kind := range []string{namespaced, cluster_} {
		for name, tc := range cases {
			plain := s.object(kind, "new", tc.jobSet)
			overlooked := plain.DeepCopy()
			overlooked.SetLabels(map[string]string{unvalidated: "disabled"})
			good := s.stored(s.object(kind, "good", jobSetWith("", replicatedJob("z", "", ""))))
			for what, err := range map[string]error{
				"created":                       s.cluster.Client.Create(s.ctx, plain, client.DryRunAll),
				"created where Trainer is told": s.cluster.Client.Create(s.ctx, overlooked, client.DryRunAll),
				"edited":                        s.reshape(good, tc.jobSet, client.DryRunAll),
			} {
				if refused := s.byPolicy(err); refused != (len(tc.clocks) > 0) {
					t.Errorf("%s with %q, %s: refused is %v, by the webhook %v: %v", kind, name, what, refused, len(tc.clocks) > 0, err)
				} else if refused {
					s.says(err, tc.clocks)
				}
			}
			s.must(s.remove(good))
		}
		for name, edit := range edits {
			runtime := stored[kind][name]
			s.must(s.patchAny(bare(runtime), `{"metadata":{"labels":{"team":"x"}}}`))
			err := s.reshape(runtime, edit.after)
			if refused := s.byPolicy(err); refused != (len(edit.clocks) > 0) {
				t.Errorf("%s edited, %q: refused is %v, by the webhook %v: %v", kind, name, refused, len(edit.clocks) > 0, err)
			} else if refused {
				s.says(err, edit.clocks)
			}
		}
	}
	// What is on its way out is left alone, as by the webhook.
	s.must(s.reshape(leaving, cases["several at once"].jobSet))
	s.must(s.patchAny(bare(leaving), `{"metadata":{"finalizers":null}}`))
	for name, runtime := range stored[namespaced] {
		if err := s.remove(runtime); err != nil {
			t.Errorf("%s: deleted with %v", name, err)
		}
	}
	s.prints(`The trainingruntimes "mine" is invalid: : ValidatingAdmissionPolicy '`+policyName+`' with binding '`+policyName+`' denied request: `+
		"spec.template.spec.replicatedJobs[0].template.spec.activeDeadlineSeconds: "+secondClock+"\n",
		s.kubectl(s.text(s.object(namespaced, "mine", jobSetWith("", replicatedJob("node", onJob, "")))), "apply", "--filename", "-"))
}

// says checks that a refusal of the policy names the first field and how many more there are.
func (s *scene) says(err error, fields []string) {
	s.Helper()
	text := secondClock
	if strings.HasSuffix(fields[0], ".ttlSecondsAfterFinished") {
		text = secondTTL
	}
	want := fields[0] + ": " + text
	if len(fields) > 1 {
		want += fmt.Sprintf(" (and %d more)", len(fields)-1)
	}
	if !strings.HasSuffix(err.Error(), "denied request: "+want) {
		s.Errorf("the policy says %v, want %s", err, want)
	}
}

// The same of the webhook, where the API knows a deadline of the whole JobSet.
func TestGuardClocksOfALaterJobSet(t *testing.T) {
	s := newScene(t)
	s.laterJobSet()
	for _, kind := range []string{namespaced, cluster_} {
		for name, tc := range laterCases() {
			err := s.cluster.Client.Create(s.ctx, s.object(kind, "new", tc.jobSet), client.DryRunAll)
			if diff := cmp.Diff(tc.clocks, s.causes(err)); diff != "" {
				t.Errorf("%s with %q: fields (-want +got):\n%s", kind, name, diff)
			}
		}
	}
	back := s.away(shared.Webhook)
	stored := map[string]*unstructured.Unstructured{}
	for name, edit := range laterEdits() {
		stored[name] = s.stored(s.object(namespaced, fmt.Sprintf("edit-%d", len(stored)), edit.before))
	}
	back()
	for name, edit := range laterEdits() {
		if diff := cmp.Diff(edit.clocks, s.causes(s.reshape(stored[name], edit.after))); diff != "" {
			t.Errorf("%q: fields (-want +got):\n%s", name, diff)
		}
	}
}
