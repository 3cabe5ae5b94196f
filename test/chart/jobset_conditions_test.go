package chart_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/signalbox-dev/signalbox/internal/admission"
)

var jobSets = resource{
	kind: schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}, name: "jobsets",
}

const (
	trainerUser    = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"
	reconcilerUser = "system:serviceaccount:" + namespace + ":signalbox-reconciler"
)

// ofTrainJob is the reference to the TrainJob that controls a JobSet.
var ofTrainJob = owner("trainer.kubeflow.org/v1alpha1", "TrainJob", `,"controller":true`)

func owner(apiVersion, kind, more string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":"job","uid":"1"%s}`, apiVersion, kind, more)
}

// jobSet is a JobSet with this spec and these owners.
func jobSet(spec string, owners ...string) string {
	return `{"metadata":{"ownerReferences":[` + strings.Join(owners, ",") + `]},"spec":` + spec + `}`
}

func TestJobSetConditionsOnStarts(t *testing.T) {
	conditions := matcher(t, admission.JobSetValidatePath)
	for name, tc := range map[string]struct {
		// Specs; before is empty on CREATE.
		before, after string
		want          bool
	}{
		"created active":               {after: `{"suspend":false}`, want: true},
		"created without suspend":      {after: `{}`, want: true},
		"created suspended":            {after: `{"suspend":true}`, want: true},
		"resumed by false":             {before: `{"suspend":true}`, after: `{"suspend":false}`, want: true},
		"resumed by absence":           {before: `{"suspend":true}`, after: `{}`, want: true},
		"resumed by null":              {before: `{"suspend":true}`, after: `{"suspend":null}`, want: true},
		"resumed by a null spec":       {before: `{"suspend":true}`, after: `null`, want: true},
		"suspended from false":         {before: `{"suspend":false}`, after: `{"suspend":true}`},
		"suspended from absence":       {before: `{}`, after: `{"suspend":true}`},
		"suspended from null":          {before: `{"suspend":null}`, after: `{"suspend":true}`},
		"suspend goes to false":        {before: `{}`, after: `{"suspend":false}`},
		"suspend goes to null":         {before: `{"suspend":false}`, after: `{"suspend":null}`},
		"changed while active":         {before: `{"suspend":false}`, after: `{"suspend":false,"ttlSecondsAfterFinished":1}`},
		"changed while suspended":      {before: `{"suspend":true}`, after: `{"suspend":true,"ttlSecondsAfterFinished":1}`},
		"suspend is no boolean":        {before: `{"suspend":"yes"}`, after: `{"suspend":"no"}`},
		"the spec is null":             {before: `null`, after: `null`},
		"the spec goes, not suspended": {before: `{}`, after: `null`},
	} {
		t.Run(name, func(t *testing.T) {
			req := request{after: jobSet(tc.after, ofTrainJob), user: trainerUser}
			if tc.before != "" {
				req.before = jobSet(tc.before, ofTrainJob)
			}
			checkMatch(t, conditions, jobSets, req, tc.want)
			// An update that changes the owner with the same stroke is the stored owner's.
			if tc.before != "" {
				req.after = jobSet(tc.after)
				checkMatch(t, conditions, jobSets, req, tc.want)
				// One that nobody owned is that of the TrainJob that takes it over.
				taken := request{before: jobSet(tc.before), after: jobSet(tc.after, ofTrainJob), user: trainerUser}
				checkMatch(t, conditions, jobSets, taken, tc.want)
			}
			// Whose it is decides before what happens to it.
			other := owner("example.com/v1", "Workflow", `,"controller":true`)
			req.after = jobSet(tc.after, other)
			if tc.before != "" {
				req.before = jobSet(tc.before, other)
			}
			checkMatch(t, conditions, jobSets, req, false)
		})
	}
}

// TestJobSetConditionsOnOwners asks for each operation that the webhook is called for.
func TestJobSetConditionsOnOwners(t *testing.T) {
	conditions := matcher(t, admission.JobSetValidatePath)
	other := owner("batch/v1", "Job", "")
	for name, tc := range map[string]struct {
		owners []string
		want   bool
	}{
		"its controller is a TrainJob":               {owners: []string{ofTrainJob}, want: true},
		"of a version to come":                       {owners: []string{owner("trainer.kubeflow.org/v1", "TrainJob", `,"controller":true`)}, want: true},
		"its controller is the second of its owners": {owners: []string{other, ofTrainJob}, want: true},
		"its controller is the first of its owners":  {owners: []string{ofTrainJob, other}, want: true},
		"nobody owns it":                             {},
		"a TrainJob owns it, not as controller":      {owners: []string{owner("trainer.kubeflow.org/v1alpha1", "TrainJob", `,"controller":false`)}},
		"a TrainJob owns it, controller is absent":   {owners: []string{owner("trainer.kubeflow.org/v1alpha1", "TrainJob", "")}},
		"a TrainJob owns it, controller is null":     {owners: []string{owner("trainer.kubeflow.org/v1alpha1", "TrainJob", `,"controller":null`)}},
		"another controls it, a TrainJob owns it": {owners: []string{
			owner("trainer.kubeflow.org/v1alpha1", "TrainJob", ""), owner("batch/v1", "Job", `,"controller":true`),
		}},
		"its controller is of another kind":  {owners: []string{owner("trainer.kubeflow.org/v1alpha1", "OptimizationJob", `,"controller":true`)}},
		"its controller is of another group": {owners: []string{owner("kubeflow.org/v1", "TrainJob", `,"controller":true`)}},
		"its controller's group only begins so": {owners: []string{
			owner("trainer.kubeflow.org.example/v1", "TrainJob", `,"controller":true`),
		}},
		"its owner has no field at all, which the API server refuses": {owners: []string{`{}`}},
	} {
		for operation, req := range map[string]request{
			"CREATE": {after: jobSet(`{}`, tc.owners...), user: trainerUser},
			"UPDATE": {before: jobSet(`{"suspend":true}`, tc.owners...), after: jobSet(`{}`, tc.owners...), user: trainerUser},
			"DELETE": {before: jobSet(`{}`, tc.owners...), user: trainerUser},
		} {
			t.Run(name+", "+operation, func(t *testing.T) {
				checkMatch(t, conditions, jobSets, req, tc.want)
			})
		}
	}
	t.Run("no metadata", func(t *testing.T) {
		checkMatch(t, conditions, jobSets, request{after: `{}`}, false)
		checkMatch(t, conditions, jobSets, request{before: `{}`, after: `{}`}, false)
		checkMatch(t, conditions, jobSets, request{before: `{}`, user: trainerUser}, false)
	})
}

// TestJobSetConditionsOnDeletions checks that nobody's deletions wait for the webhook but
// those of Trainer's controller, and these only when its early deadlines are corrected.
func TestJobSetConditionsOnDeletions(t *testing.T) {
	const elsewhere = "system:serviceaccount:team-a:my-trainer.v2"
	users := []string{
		trainerUser, elsewhere, reconcilerUser,
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager", "system:admin", "kubernetes-admin", "",
		"kubeflow-trainer-controller-manager", "kubeflow-system/kubeflow-trainer-controller-manager", trainerUser + "2",
	}
	for name, tc := range map[string]struct {
		values []string
		want   string
	}{
		"default values":           {want: trainerUser},
		"an account that is given": {values: []string{"trainer.serviceAccount=team-a/my-trainer.v2"}, want: elsewhere},
		"early deadlines are kept": {values: []string{"trainer.correctEarlyDeadlines=false"}, want: "nobody"},
		"kept, and an account is given": {
			values: []string{"trainer.correctEarlyDeadlines=false", "trainer.serviceAccount=team-a/my-trainer.v2"},
			want:   "nobody",
		},
	} {
		conditions := matcher(t, admission.JobSetValidatePath, tc.values...)
		for _, user := range users {
			for state, spec := range map[string]string{"active": `{}`, "suspended": `{"suspend":true}`} {
				t.Run(name+", "+state+", by "+user, func(t *testing.T) {
					checkMatch(t, conditions, jobSets, request{before: jobSet(spec, ofTrainJob), user: user}, user == tc.want)
				})
			}
		}
	}
}
