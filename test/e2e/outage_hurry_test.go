package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// The commands by which docs/operations.md has Signalbox switched off without Helm do what it says,
// while no webhook answers.
func TestOutageSwitchedOffInAHurry(t *testing.T) {
	s := newScene(t)
	commands := s.documented("### Without Helm")
	if len(commands) != 3 {
		t.Fatalf("%d commands are documented, want 3: %q", len(commands), commands)
	}
	s.keepsConfigurations()
	s.crashed(shared.Webhook)
	if err := s.cluster.Client.Create(s.ctx, s.trainJob("refused")); !notCalling(err, "trainjob") {
		t.Fatalf("created without the webhook: %v", err)
	}

	s.shell(commands[0])
	s.starts("ignored")
	for _, policy := range s.failurePolicies() {
		if policy != admissionregistrationv1.Ignore {
			t.Errorf("a webhook has failurePolicy %s", policy)
		}
	}

	s.shell(commands[1])
	for _, configuration := range []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}} {
		if err := s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, configuration); !apierrors.IsNotFound(err) {
			t.Errorf("the configuration is there: %v", err)
		}
	}
	s.starts("unasked")

	reconciler := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: "signalbox-system", Name: "signalbox-reconciler"}
	s.must(s.cluster.Client.Get(s.ctx, key, reconciler))
	replicas := *reconciler.Spec.Replicas
	s.shell(commands[2])
	s.must(s.cluster.Client.Get(s.ctx, key, reconciler))
	if *reconciler.Spec.Replicas != 0 || replicas == 0 {
		t.Errorf("the reconciler has %d replicas, had %d", *reconciler.Spec.Replicas, replicas)
	}
	s.must(s.cluster.Client.Patch(s.ctx, reconciler, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
}

// starts waits until a TrainJob can be created without Signalbox, and until it runs.
func (s *scene) starts(name string) {
	s.Helper()
	s.eventually("a creation without the webhook", func() (bool, string) {
		err := s.cluster.Client.Create(s.ctx, s.trainJob(name))
		return err == nil, fmt.Sprint(err)
	})
	s.running(name)
	if job := s.get(name); job.Annotations[v1alpha1.AnnotationResumedAt] != "" {
		s.Errorf("TrainJob %s is stamped: %v", name, job.Annotations)
	}
}

// failurePolicies are those of all webhooks.
func (s *scene) failurePolicies() []admissionregistrationv1.FailurePolicyType {
	s.Helper()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, mutating))
	s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, validating))
	var policies []admissionregistrationv1.FailurePolicyType
	for _, webhook := range mutating.Webhooks {
		policies = append(policies, *webhook.FailurePolicy)
	}
	for _, webhook := range validating.Webhooks {
		policies = append(policies, *webhook.FailurePolicy)
	}
	return policies
}

// keepsConfigurations puts the webhook configurations back as they are now when the test ends.
func (s *scene) keepsConfigurations() {
	s.Helper()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.Cleanup(func() {
		s := s.afterwards()
		s.eventually("the webhooks of Signalbox", func() (bool, string) {
			probe := s.trainJob("probe")
			err := s.cluster.Client.Create(s.ctx, probe, client.DryRunAll)
			return err == nil && probe.GetAnnotations()[v1alpha1.AnnotationRuntimeSnapshot] != "", fmt.Sprint(err)
		})
	})
	for _, configuration := range []client.Object{mutating, validating} {
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKey{Name: "signalbox"}, configuration))
		s.Cleanup(func() {
			s := s.afterwards()
			s.must(client.IgnoreNotFound(s.cluster.Client.Delete(s.ctx, configuration.DeepCopyObject().(client.Object))))
			configuration.SetResourceVersion("")
			configuration.SetUID("")
			s.must(s.cluster.Client.Create(s.ctx, configuration))
		})
	}
}

// documented are the commands for kubectl in a section of docs/operations.md.
func (s *scene) documented(section string) []string {
	s.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	s.must(err)
	_, rest, found := strings.Cut(string(text), "\n"+section+"\n")
	if !found {
		s.Fatalf("there is no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(rest, -1) {
		if command := strings.TrimSpace(block[1]); strings.HasPrefix(command, "kubectl ") {
			commands = append(commands, command)
		}
	}
	return commands
}

// shell runs a command with the cluster's kubectl and all rights.
func (s *scene) shell(command string) {
	s.Helper()
	run := exec.CommandContext(s.ctx, "bash", "-e", "-o", "pipefail", "-c", command)
	run.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig, "PATH="+filepath.Dir(s.cluster.Kubectl)+":"+os.Getenv("PATH"),
		"KUBECACHEDIR="+filepath.Join(s.cluster.Dir, "kubectl-cache"))
	out, err := run.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s", command, err, out)
	}
}
