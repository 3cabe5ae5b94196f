package e2e_test

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// request is what somebody asks of the API server while a part is away, as a dry run, for which
// the API server calls the same webhooks. It is made in a scene that stage has set.
type request struct {
	// hook is the short name of the webhook that is called for it, "" for none.
	hook string
	do   func(*scene) error
}

// stage sets the scene for requests: TrainJobs "active", which runs, "waiting", suspended with a
// JobSet, "ended" and "queued", which waits for room in Kueue's queue of one CPU that TrainJob
// "holder" has; the runtime "train", which "active" uses; and one of the cluster.
func (s *scene) stage() {
	s.Helper()
	s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
	s.create("holder", queued(), oneCPU())
	train := s.stored(s.object(namespaced, "train", jobSetOf(oldImage)))
	s.stored(s.object(cluster_, "train", jobSetOf(oldImage)))
	s.createOn(train, "active", deadlineAnnotation(3600), set([]any{"example.com/keep"}, "metadata", "finalizers"))
	s.create("waiting", suspended(), deadlineAnnotation(6))
	s.create("ended")
	s.running("active")
	s.running("holder")
	s.finish("ended")
	s.create("queued", queued(), oneCPU(), deadlineAnnotation(15))
	s.becomes("ended", trainer.ConditionComplete, "True/AllJobsCompleted")
	s.becomes("waiting", trainer.ConditionSuspended, "True/Suspended")
	s.eventually("a Workload that waits", func() (bool, string) { return s.workload("queued") != nil, s.children("queued") })
}

// requests are all ways to touch what Signalbox has webhooks for, and some more that it must not
// be asked about.
func requests() map[string]request {
	const (
		changed = `[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":"` + newImage + `"}]`
		early   = `{"status":{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`
		past    = `{"metadata":{"annotations":{"` + v1alpha1.AnnotationActiveDeadlineSeconds + `":"99999"}}}`
	)
	all := map[string]request{
		"a TrainJob is created":                  {"trainjob", creates(func(s *scene) client.Object { return s.trainJob("new") })},
		"a suspended TrainJob is created":        {"trainjob", creates(func(s *scene) client.Object { return s.trainJob("new", suspended()) })},
		"a TrainJob is suspended":                {"trainjob", patches("active", `{"spec":{"suspend":true}}`)},
		"a TrainJob is resumed":                  {"trainjob", patches("waiting", `{"spec":{"suspend":false}}`)},
		"a deadline is raised":                   {"trainjob", patches("active", past)},
		"a TrainJob is labelled":                 {"", patches("active", `{"metadata":{"labels":{"a":"b"},"annotations":{"team":"x"}}}`)},
		"a finalizer is dropped":                 {"", patches("active", `{"metadata":{"finalizers":null}}`)},
		"a TrainJob is deleted":                  {"", deletes("", func(s *scene) client.Object { return s.trainJob("active") })},
		"a status is written":                    {"", patchesStatus("", "active", `{"status":{"jobsStatus":[]}}`)},
		"a TrainJob completes":                   {"", patchesStatus(trainerUser, "active", strings.Replace(early, `"Failed","status":"True","reason":"DeadlineExceeded"`, `"Complete","status":"True","reason":"AllJobsCompleted"`, 1))},
		"an end is dropped":                      {"trainjob-status", patchesStatus("", "ended", `{"status":{"conditions":null}}`)},
		"Trainer ends a TrainJob early":          {"trainjob-status", patchesStatus(trainerUser, "active", early)},
		"a JobSet of a TrainJob is created":      {"jobset", creates(func(s *scene) client.Object { return s.ownedJobSet() })},
		"a JobSet of a TrainJob is resumed":      {"jobset", patchesAny(func(s *scene) client.Object { return s.jobSetNamed("waiting") }, types.MergePatchType, `{"spec":{"suspend":false}}`)},
		"Trainer deletes a JobSet":               {"jobset", deletes(trainerUser, func(s *scene) client.Object { return s.jobSetNamed("active") })},
		"a user deletes a JobSet":                {"", deletes("", func(s *scene) client.Object { return s.jobSetNamed("active") })},
		"a JobSet is suspended":                  {"", patchesAny(func(s *scene) client.Object { return s.jobSetNamed("active") }, types.MergePatchType, `{"spec":{"suspend":true}}`)},
		"Kueue asks what a TrainJob is of":       {"workload", asksAsKueue},
		"Trainer is upgraded, with its runtimes": {"runtime", upgradesTrainer},
	}
	for _, kind := range []string{namespaced, cluster_} {
		one := func(s *scene) client.Object { return bare(s.object(kind, "train", jobSetOf(oldImage))) }
		all["a "+kind+" is created"] = request{"runtime", creates(func(s *scene) client.Object { return s.object(kind, "new", jobSetOf(oldImage)) })}
		all["a "+kind+" is edited"] = request{"runtime", patchesAny(one, types.JSONPatchType, changed)}
		all["a "+kind+" is deleted"] = request{"runtime", deletes("", one)}
		all["a "+kind+" is labelled"] = request{"", patchesAny(one, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)}
	}
	// What runs the cluster, and what runs Signalbox, must come up without Signalbox.
	for _, namespace := range []string{"kube-system", "signalbox-system"} {
		for kind, object := range map[string]func(*scene) client.Object{
			"TrainJob": func(s *scene) client.Object { return s.trainJob("new") },
			"Pod": func(*scene) client.Object {
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: deployment().Spec.Template.Spec}
			},
			"runtime":    func(s *scene) client.Object { return s.object(namespaced, "new", jobSetOf(oldImage)) },
			"ConfigMap":  func(*scene) client.Object { return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}} },
			"Secret":     func(*scene) client.Object { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new"}} },
			"Deployment": func(*scene) client.Object { return deployment() },
		} {
			all["a "+kind+" is created in "+namespace] = request{"", func(s *scene) error {
				o := object(s)
				o.SetNamespace(namespace)
				return s.cluster.Client.Create(s.ctx, o, client.DryRunAll)
			}}
		}
	}
	return all
}

// asks makes all requests, each in a subtest, and checks that those with a webhook of these names
// are refused, by a text that names it, and all others pass.
func (s *scene) asks(t *testing.T, refusing ...string) {
	t.Helper()
	for what, r := range requests() {
		t.Run(what, func(t *testing.T) {
			err := r.do(s.within(t))
			if want := slices.Contains(refusing, r.hook); want && !notCalling(err, r.hook) || !want && err != nil {
				t.Errorf("refused: %v, want %t by webhook %q", err, want, r.hook)
			}
		})
	}
}

func creates(object func(*scene) client.Object) func(*scene) error {
	return func(s *scene) error { return s.cluster.Client.Create(s.ctx, object(s), client.DryRunAll) }
}

func patches(name, patch string) func(*scene) error {
	return patchesAny(func(s *scene) client.Object { return s.trainJob(name) }, types.MergePatchType, patch)
}

func patchesAny(object func(*scene) client.Object, kind types.PatchType, patch string) func(*scene) error {
	return func(s *scene) error {
		return s.cluster.Client.Patch(s.ctx, bare(object(s)), client.RawPatch(kind, []byte(patch)), client.DryRunAll)
	}
}

// patchesStatus writes the status of a TrainJob as a user, "" for the admin.
func patchesStatus(user, name, patch string) func(*scene) error {
	return func(s *scene) error {
		return s.as(user).Status().Patch(s.ctx, s.trainJob(name), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}

// deletes deletes as a user, "" for the admin.
func deletes(user string, object func(*scene) client.Object) func(*scene) error {
	return func(s *scene) error { return s.as(user).Delete(s.ctx, bare(object(s)), client.DryRunAll) }
}

// as is a client of a user, of the admin with "".
func (s *scene) as(user string) client.Client {
	s.Helper()
	if user == "" {
		return s.cluster.Client
	}
	c, err := s.cluster.ClientFor(user)
	s.must(err)
	return c
}

// ownedJobSet is a JobSet as Trainer would make it for TrainJob "active", under another name.
func (s *scene) ownedJobSet() *unstructured.Unstructured {
	s.Helper()
	is := s.jobSetNamed("active")
	jobSet := bare(is)
	jobSet.SetName("new")
	jobSet.SetOwnerReferences(is.GetOwnerReferences())
	jobSet.SetAnnotations(is.GetAnnotations())
	jobSet.Object["spec"] = is.Object["spec"]
	return jobSet
}

// asksAsKueue creates a Workload of TrainJob "queued" as a dry run, by which Kueue finds out what
// the API server makes of it.
func asksAsKueue(s *scene) error {
	workload := bare(s.workload("queued"))
	workload.Object["spec"] = s.workload("queued").Object["spec"]
	workload.SetName("queued")
	return s.as("system:serviceaccount:kueue-system:kueue-controller-manager").Create(s.ctx, workload, client.DryRunAll)
}

// upgradesTrainer applies Trainer's own runtimes as its next release may bring them.
func upgradesTrainer(s *scene) error {
	root, err := binaries.Root()
	s.must(err)
	dirs, err := binaries.ModuleDirs(s.ctx, root, io.Discard, binaries.TrainerModule)
	s.must(err)
	applied := 0
	for _, objects := range runtimesIn(s.T, filepath.Join(dirs[binaries.TrainerModule], "manifests", "base", "runtimes")) {
		for _, runtime := range objects {
			jobs, _, err := unstructured.NestedSlice(runtime.Object, "spec", "template", "spec", "replicatedJobs")
			s.must(err)
			for _, job := range jobs {
				set("next", "template", "metadata", "labels", "example.com/release")(&unstructured.Unstructured{Object: job.(map[string]any)})
			}
			s.must(unstructured.SetNestedSlice(runtime.Object, jobs, "spec", "template", "spec", "replicatedJobs"))
			if err := s.cluster.Client.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(runtime), client.FieldOwner("kubectl"), client.ForceOwnership, client.DryRunAll); err != nil {
				return err
			}
			applied++
		}
	}
	if applied == 0 {
		s.Fatal("there are no runtimes: it shows nothing")
	}
	return nil
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "new"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "new", Image: "example.com/new"}}},
		},
	}}
}
