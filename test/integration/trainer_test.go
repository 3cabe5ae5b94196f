package integration_test

import (
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// trainerUser is the account of Trainer's controller in every release.
const trainerUser = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"

// asTrainer has the identity and the rights of Trainer's controller.
var asTrainer client.Client

// pass plays one look of the release's controller at a TrainJob, in the order of its source:
// it clears Failed, applies the JobSet, tells whether the TrainJob is suspended and writes
// the status. Where stock does the next step after a failed one, so does this.
func (s *scene) pass(name string) error {
	s.Helper()
	object := s.object(name)
	job := s.view(object)
	if s.release.restsWhenFinished && job.Terminal() {
		return nil
	}
	conditions := slices.Clone(job.Status.Conditions)
	if !s.release.keepsDeadline || !job.DeadlineExceeded() {
		meta.RemoveStatusCondition(&conditions, trainer.ConditionFailed)
	}
	var err error
	if finished := (trainer.TrainJob{Status: trainer.TrainJobStatus{Conditions: conditions}}); !finished.Terminal() {
		err = s.apply(job)
	}
	switch {
	case !job.Active():
		setCondition(&conditions, trainer.ConditionSuspended, metav1.ConditionTrue, "Suspended")
	case meta.IsStatusConditionTrue(conditions, trainer.ConditionSuspended):
		setCondition(&conditions, trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed")
	}
	if equality.Semantic.DeepEqual(conditions, job.Status.Conditions) {
		return err
	}
	return errors.Join(err, s.report(object, conditions, nil))
}

// passes plays looks until one succeeds: the ConfigMap may come between Trainer's look and its
// write, which then fails.
func (s *scene) passes(name string) {
	s.Helper()
	s.eventually("a pass of Trainer", func() (bool, string) {
		err := s.pass(name)
		return err == nil, fmt.Sprint(err)
	})
}

func setCondition(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "as Trainer says"})
}

// report writes the conditions and other fields of the status the way that the release does:
// all of it by PUT, or what is new by a merge patch, which knows of no other writer. object
// is the TrainJob as Trainer has it, and is as stored afterwards.
func (s *scene) report(object *unstructured.Unstructured, conditions []metav1.Condition, fields map[string]any) error {
	s.Helper()
	before := object.DeepCopy()
	status, _, err := unstructured.NestedMap(object.Object, "status")
	s.must(err)
	if status == nil {
		status = map[string]any{}
	}
	for field, value := range fields {
		status[field] = value
	}
	delete(status, "conditions")
	if len(conditions) > 0 {
		status["conditions"] = untyped(conditions)
	}
	object.Object["status"] = status
	if s.release.updates {
		return asTrainer.Status().Update(s.ctx, object)
	}
	return asTrainer.Status().Patch(s.ctx, object, client.MergeFrom(before))
}

// apply applies the JobSet of a TrainJob as Trainer does.
func (s *scene) apply(job *trainer.TrainJob) error {
	s.Helper()
	annotations, err := s.template(job)
	if err != nil {
		return err
	}
	return s.applyWith(job, annotations)
}

// applyWith applies the JobSet with these annotations.
func (s *scene) applyWith(job *trainer.TrainJob, annotations map[string]string) error {
	s.Helper()
	jobSet := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"suspend": !job.Active(),
		"replicatedJobs": []any{map[string]any{
			"name": "node",
			"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "node", "image": "example.com/image"}},
			}}}},
		}},
	}}}
	jobSet.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	jobSet.SetNamespace(job.Namespace)
	jobSet.SetName(job.Name)
	jobSet.SetAnnotations(annotations)
	jobSet.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, job.GroupVersionKind())})
	return asTrainer.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(jobSet), client.FieldOwner("trainer"), client.ForceOwnership)
}

// run makes the Job that JobSet would make of the TrainJob's JobSet. Nobody runs it; it is
// there to be collected.
func (s *scene) run(name string) {
	s.Helper()
	jobSet := s.jobSet(name)
	if jobSet == nil {
		s.Fatalf("TrainJob %s has no JobSet", name)
	}
	s.must(shared.Client.Create(s.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name + "-node-0",
			Labels:          map[string]string{trainer.LabelJobSetName: name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(jobSet, trainer.JobSetGroupVersionKind)},
		},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "node", Image: "example.com/image"}},
			}},
		},
	}))
}
