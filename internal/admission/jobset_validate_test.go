package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
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
	store := interceptor.NewClient(stored(jobs...), faults)
	return &JobSetValidator{
		TrainJobs:      store,
		ConfigMaps:     store,
		Clock:          clocktesting.NewFakePassiveClock(now),
		KeepsSnapshots: func(context.Context) bool { return true },
		TrainerUser:    trainerUser,
	}
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

// jobSetOf is the JSON of the JobSet of the TrainJob with these annotations.
func jobSetOf(suspend string, annotations map[string]string) string {
	encoded, err := json.Marshal(annotations)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(owned, "}}") + `,"annotations":` + string(encoded) + `},"spec":{` + suspend + `}}`
}

// An active JobSet of a sealed TrainJob is built from what is sealed, or does not start.
func TestJobSetValidatorJudgesTheContent(t *testing.T) {
	sealed, other := take(t, torch()), take(t, torch().Image("image:other"))
	job := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Created(now).Runtime("ClusterTrainingRuntime", "torch").Annotations(sealed.Pack().Seal(now))
	}
	unsealed := builder.TrainJob("ns", "job").Created(now).Runtime("ClusterTrainingRuntime", "torch")
	content := func(s *snapshot.Snapshot) string {
		text, err := s.YAML()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	trainers := func(runtime *builder.RuntimeBuilder) string {
		encoded, err := json.Marshal(runtime.Obj().Object)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	config := func(text string) *builder.ConfigMapBuilder { return builder.ConfigMap(job().Obj(), text) }
	// What Trainer puts on the JobSet when it builds from a runtime, and from a snapshot.
	fromRuntime := func(revision string) map[string]string {
		return map[string]string{v1alpha1.AnnotationRuntimeRevision: revision}
	}
	fromSnapshot := map[string]string{v1alpha1.AnnotationRuntimeRevision: sealed.Revision, v1alpha1.AnnotationRuntimeSource: torchID}
	built := func(revision string) string {
		return fmt.Sprintf("TrainJob job runs on revision %s of ClusterTrainingRuntime/torch, this JobSet is built from revision %q", sealed.Revision, revision)
	}
	notHeld := fmt.Sprintf("TrainJob job runs on revision %s of ClusterTrainingRuntime/torch, which ConfigMap job-runtime-snapshot does not hold yet, or not when this JobSet was built", sealed.Revision)
	finished := job().Condition("Complete", metav1.ConditionTrue, "Done", now)
	for name, tc := range map[string]struct {
		job     *builder.TrainJobBuilder
		suspend string
		jobSet  map[string]string
		config  *builder.ConfigMapBuilder
		older   bool
		want    string
	}{
		"of the right revision":                      {job: job(), jobSet: fromRuntime(sealed.Revision)},
		"of the right revision, suspend null":        {job: job(), jobSet: fromRuntime(sealed.Revision), suspend: `"suspend":null`},
		"of another revision":                        {job: job(), jobSet: fromRuntime(other.Revision), want: built(other.Revision)},
		"of another revision, suspend false":         {job: job(), jobSet: fromRuntime(other.Revision), suspend: `"suspend":false`, want: built(other.Revision)},
		"of another revision, suspended":             {job: job(), jobSet: fromRuntime(other.Revision), suspend: `"suspend":true`},
		"without a revision":                         {job: job(), want: built("")},
		"without a revision, suspended":              {job: job(), suspend: `"suspend":true`},
		"of another revision, older Trainer":         {job: job(), jobSet: fromRuntime(other.Revision), older: true},
		"of another revision, not sealed":            {job: unsealed, jobSet: fromRuntime(other.Revision), config: config(content(other))},
		"of another revision, managed elsewhere":     {job: job().ManagedBy("kueue.x-k8s.io/multikueue"), jobSet: fromRuntime(other.Revision)},
		"of another revision, a seal that is broken": {job: job().Annotation(v1alpha1.AnnotationRuntimeSnapshot, "*"), jobSet: fromRuntime(other.Revision)},
		"of another revision, of a finished job":     {job: finished, jobSet: fromRuntime(other.Revision), want: "TrainJob job is finished"},
		"of another revision, being deleted":         {job: job().Deleting(now), jobSet: fromRuntime(other.Revision), want: built(other.Revision)},
		"the ConfigMap is Trainer's":                 {job: job(), jobSet: fromRuntime(sealed.Revision), config: config(trainers(torch().Revision(sealed.Revision)))},
		"the ConfigMap is ours":                      {job: job(), jobSet: fromSnapshot, config: config(content(sealed))},
		"the ConfigMap holds other content":          {job: job(), jobSet: fromRuntime(sealed.Revision), config: config(content(other)), want: notHeld},
		"the ConfigMap lies":                         {job: job(), jobSet: fromRuntime(sealed.Revision), config: config(trainers(torch().Image("image:other").Revision(sealed.Revision))), want: notHeld},
		"the ConfigMap is without a stamp":           {job: job(), jobSet: fromRuntime(sealed.Revision), config: config(trainers(torch())), want: notHeld},
		"the ConfigMap was corrected since":          {job: job(), jobSet: fromRuntime(sealed.Revision), config: config(content(sealed)), want: notHeld},
		"the ConfigMap was written by Trainer since": {job: job(), jobSet: fromSnapshot, config: config(trainers(torch().Revision(sealed.Revision))), want: notHeld},
		"the ConfigMap is empty":                     {job: job(), jobSet: fromSnapshot, config: config("").Emptied(), want: notHeld},
		"the ConfigMap is no YAML":                   {job: job(), jobSet: fromSnapshot, config: config("\t- {"), want: notHeld},
		"the ConfigMap is of another TrainJob":       {job: job(), jobSet: fromSnapshot, config: builder.ConfigMap(builder.TrainJob("ns", "job").UID("earlier").Obj(), content(sealed)), want: notHeld},
		"the ConfigMap is of nobody":                 {job: job(), jobSet: fromSnapshot, config: config(content(sealed)).OwnedBy(metav1.OwnerReference{}), want: notHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []client.Object{tc.job.Obj()}
			if tc.config != nil {
				objects = append(objects, tc.config.Obj())
			}
			v := jobSetValidator(t, interceptor.Funcs{}, objects...)
			v.KeepsSnapshots = func(context.Context) bool { return !tc.older }
			created := jobSetRequest(admissionv1.Create, "", jobSetOf(tc.suspend, tc.jobSet))
			// On an update, what the JobSet becomes counts, not what it was.
			updated := jobSetRequest(admissionv1.Update, "", jobSetOf(`"suspend":true`, fromRuntime("0000000000000000")))
			updated.Object.Raw = created.Object.Raw
			for _, req := range []admission.Request{created, updated} {
				got := v.Handle(t.Context(), req)
				message := ""
				if got.Result != nil {
					message = got.Result.Message
				}
				if got.Allowed != (tc.want == "") || message != tc.want || tc.want != "" && got.Result.Code != http.StatusForbidden {
					t.Errorf("%s: allowed = %v, %+v; want %q", req.Operation, got.Allowed, got.Result, tc.want)
				}
			}
		})
	}
}

// Where nothing is sealed, neither ConfigMap nor Trainer is asked for.
func TestJobSetValidatorReadsOnlyWhatItNeeds(t *testing.T) {
	sealed := take(t, torch())
	job := builder.TrainJob("ns", "job").Created(now).Runtime("ClusterTrainingRuntime", "torch")
	configMapAway := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if _, config := object.(*corev1.ConfigMap); config {
			return errors.New("etcd is away")
		}
		return c.Get(ctx, key, object, options...)
	}}
	jobSet := jobSetOf("", map[string]string{v1alpha1.AnnotationRuntimeRevision: sealed.Revision})

	v := jobSetValidator(t, configMapAway, job.Obj())
	v.KeepsSnapshots = func(context.Context) bool { t.Error("asked for Trainer"); return true }
	if got := v.Handle(t.Context(), jobSetRequest(admissionv1.Create, "", jobSet)); !got.Allowed {
		t.Errorf("not sealed: %+v", got.Result)
	}

	v = jobSetValidator(t, configMapAway, job.Annotations(sealed.Pack().Seal(now)).Obj())
	got := v.Handle(t.Context(), jobSetRequest(admissionv1.Create, "", jobSet))
	if got.Allowed || got.Result.Code != http.StatusInternalServerError || got.Result.Message != "read ConfigMap: etcd is away" {
		t.Errorf("sealed: %+v, want 500", got.Result)
	}
	if got := v.Handle(t.Context(), jobSetRequest(admissionv1.Delete, trainerUser, jobSet)); !got.Allowed {
		t.Errorf("deleted: %+v", got.Result)
	}

	broken := jobSetRequest(admissionv1.Update, "", jobSet)
	broken.Object.Raw = []byte(`{"spec":{"suspend":"no"}}`)
	if got := v.Handle(t.Context(), broken); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("no JobSet: %+v, want 400", got.Result)
	}
}

// A JobSet without an owner is that of the TrainJob that takes it over; one with an owner stays
// that one's.
func TestJobSetValidatorOfAnUpdateOfTheOwner(t *testing.T) {
	finished := builder.TrainJob("ns", "job").Created(now).Condition("Complete", metav1.ConditionTrue, "Done", now).Obj()
	for name, tc := range map[string]struct {
		before, after string
		want          bool
	}{
		"taken over":                       {before: notOwned, after: owned},
		"let go":                           {before: owned, after: notOwned},
		"kept":                             {before: owned, after: owned},
		"taken over from one that is gone": {before: ownedTwice, after: owned},
		"taken over by one that is gone":   {before: notOwned, after: ownedTwice, want: true},
		"taken over by another kind":       {before: notOwned, after: ownedElse, want: true},
		"nobody's":                         {before: notOwned, after: notOwned, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := jobSetRequest(admissionv1.Update, "", tc.before)
			req.Object.Raw = []byte(tc.after)
			if got := jobSetValidator(t, interceptor.Funcs{}, finished.DeepCopy()).Handle(t.Context(), req); got.Allowed != tc.want {
				t.Errorf("allowed = %v, want %v: %+v", got.Allowed, tc.want, got.Result)
			}
		})
	}
}
