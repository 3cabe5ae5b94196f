package admission

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const (
	owned      = `{"metadata":{"name":"job","ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","name":"job","uid":"uid-of-job","controller":true}]}}`
	notOwned   = `{"metadata":{"name":"job"}}`
	ownedTwice = `{"metadata":{"name":"job","ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","name":"job","uid":"uid-of-another","controller":true}]}}`
	ownedElse  = `{"metadata":{"name":"job","ownerReferences":[{"apiVersion":"example.com/v1","kind":"TrainJob","name":"job","uid":"uid-of-job","controller":true}]}}`
)

func jobSetRequest(operation admissionv1.Operation, user, jobSet string) admission.Request {
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Namespace: "ns"}}
	req.UserInfo.Username = user
	switch operation {
	case admissionv1.Create:
		req.Object = runtime.RawExtension{Raw: []byte(jobSet)}
	case admissionv1.Update:
		// However the update changes the owner, the stored one counts.
		req.Object = runtime.RawExtension{Raw: []byte(notOwned)}
	}
	if operation != admissionv1.Create {
		req.OldObject = runtime.RawExtension{Raw: []byte(jobSet)}
	}
	return req
}

func jobSetValidator(t *testing.T, faults interceptor.Funcs, jobs ...client.Object) *JobSetValidator {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := trainer.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(jobs...).WithInterceptorFuncs(faults).Build()
	return &JobSetValidator{TrainJobs: store, Clock: clocktesting.NewFakePassiveClock(now), TrainerUser: trainerUser}
}

func TestJobSetValidator(t *testing.T) {
	const (
		create   = admissionv1.Create
		update   = admissionv1.Update
		deletion = admissionv1.Delete
		gc       = "system:serviceaccount:kube-system:generic-garbage-collector"
	)
	job := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Created(now.Add(-time.Minute)).Stamp(now.Add(-time.Minute))
	}
	for name, tc := range map[string]struct {
		operation admissionv1.Operation
		user      string
		jobSet    string
		job       *builder.TrainJobBuilder
		want      string
	}{
		"started for a job with time left":      {operation: create, jobSet: owned, job: job().Deadline(3600)},
		"started for a job without a deadline":  {operation: create, jobSet: owned, job: job()},
		"started for a complete job":            {operation: create, jobSet: owned, job: job().Condition("Complete", metav1.ConditionTrue, "Done", now), want: "TrainJob job is finished"},
		"started for a failed job":              {operation: create, jobSet: owned, job: job().Condition("Failed", metav1.ConditionTrue, "Crashed", now), want: "TrainJob job is finished"},
		"resumed for a failed job":              {operation: update, jobSet: owned, job: job().Condition("Failed", metav1.ConditionTrue, "Crashed", now), want: "TrainJob job is finished"},
		"started for a job past its deadline":   {operation: create, jobSet: owned, job: job().Deadline(60), want: "TrainJob job is past its deadline"},
		"resumed for a job past its deadline":   {operation: update, jobSet: owned, job: job().Deadline(60), want: "TrainJob job is past its deadline"},
		"started suspended":                     {operation: create, jobSet: owned, job: job().Suspended().Deadline(1)},
		"nobody's":                              {operation: create, jobSet: notOwned, job: job().Deadline(60)},
		"of another kind of the same name":      {operation: create, jobSet: ownedElse, job: job().Deadline(60)},
		"of an earlier namesake":                {operation: create, jobSet: ownedTwice, job: job().Deadline(60)},
		"of a job that is gone":                 {operation: create, jobSet: owned},
		"of a job managed by MultiKueue":        {operation: create, jobSet: owned, job: job().Deadline(60).ManagedBy("kueue.x-k8s.io/multikueue")},
		"deleted by Trainer an hour early":      {operation: deletion, user: trainerUser, jobSet: owned, job: job().Deadline(3660), want: "TrainJob job is not at its deadline yet"},
		"deleted by Trainer 30 s early":         {operation: deletion, user: trainerUser, jobSet: owned, job: job().Deadline(90)},
		"deleted by Trainer when it is due":     {operation: deletion, user: trainerUser, jobSet: owned, job: job().Deadline(60)},
		"deleted by Trainer, suspended":         {operation: deletion, user: trainerUser, jobSet: owned, job: job().Suspended().Deadline(3600)},
		"deleted by Trainer, finished":          {operation: deletion, user: trainerUser, jobSet: owned, job: job().Deadline(3600).Condition("Failed", metav1.ConditionTrue, "Crashed", now)},
		"deleted by Trainer, being deleted":     {operation: deletion, user: trainerUser, jobSet: owned, job: job().Deadline(3600).Deleting(now)},
		"deleted by Trainer, without deadline":  {operation: deletion, user: trainerUser, jobSet: owned, job: job()},
		"deleted by the garbage collector":      {operation: deletion, user: gc, jobSet: owned, job: job().Deadline(3600)},
		"deleted by a user":                     {operation: deletion, user: "jane", jobSet: owned, job: job().Deadline(3600)},
		"deleted by Trainer, of a job now gone": {operation: deletion, user: trainerUser, jobSet: owned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var jobs []client.Object
			if tc.job != nil {
				jobs = append(jobs, tc.job.Obj())
			}
			got := jobSetValidator(t, interceptor.Funcs{}, jobs...).Handle(context.Background(), jobSetRequest(tc.operation, tc.user, tc.jobSet))
			message := ""
			if got.Result != nil {
				message = got.Result.Message
			}
			if got.Allowed != (tc.want == "") || message != tc.want {
				t.Errorf("allowed = %v, message %q; want %q", got.Allowed, message, tc.want)
			}
		})
	}
}

func TestJobSetValidatorWithoutTrainersAccount(t *testing.T) {
	v := jobSetValidator(t, interceptor.Funcs{}, builder.TrainJob("ns", "job").Created(now).Deadline(3600).Obj())
	v.TrainerUser = ""
	if got := v.Handle(context.Background(), jobSetRequest(admissionv1.Delete, "", owned)); !got.Allowed {
		t.Errorf("denied: %v", got.Result)
	}
}

func TestJobSetValidatorFailures(t *testing.T) {
	down := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("etcd is away")
	}}
	if got := jobSetValidator(t, down).Handle(context.Background(), jobSetRequest(admissionv1.Create, "", owned)); got.Allowed || got.Result.Code != http.StatusInternalServerError {
		t.Errorf("without the API server: %+v, want 500", got.Result)
	}
	if got := jobSetValidator(t, down).Handle(context.Background(), jobSetRequest(admissionv1.Create, "", `{`)); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("no JSON: %+v, want 400", got.Result)
	}
}
