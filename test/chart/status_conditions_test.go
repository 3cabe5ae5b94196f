package chart_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-dev/signalbox/internal/admission"
)

var trainJobStatus = resource{kind: trainJobs.kind, name: trainJobs.name, subresource: "status"}

// Conditions as they are stored.
var (
	suspended = condition("Suspended", "True", "Suspended", "m")
	resumed   = condition("Suspended", "False", "Resumed", "m")
	complete  = condition("Complete", "True", "AllJobsCompleted", "m")
	failed    = condition("Failed", "True", "FailedJobs", "m")
	exceeded  = condition("Failed", "True", "DeadlineExceeded", "m")
)

func condition(kind, status, reason, message string) string {
	return fmt.Sprintf(`{"type":%q,"status":%q,"reason":%q,"message":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}`,
		kind, status, reason, message)
}

func status(conditions ...string) string {
	return `{"status":{"conditions":[` + strings.Join(conditions, ",") + `]}}`
}

func TestStatusConditions(t *testing.T) {
	conditions := matcher(t, admission.TrainJobStatusPath)
	for name, tc := range map[string]struct {
		before, after string
		want          bool
	}{
		"nothing on both sides":        {before: `{}`, after: `{}`},
		"the status comes":             {before: `{}`, after: `{"status":{}}`},
		"the status goes":              {before: `{"status":{}}`, after: `{}`},
		"the status becomes null":      {before: `{"status":{}}`, after: `{"status":null}`},
		"empty conditions come":        {before: `{}`, after: status()},
		"the first condition comes":    {before: `{}`, after: status(suspended)},
		"a job is resumed":             {before: status(suspended), after: status(resumed)},
		"a job is suspended":           {before: status(resumed), after: status(suspended)},
		"all conditions go":            {before: status(resumed), after: status()},
		"another condition comes":      {before: status(resumed), after: status(resumed, condition("Other", "True", "DeadlineExceeded", "m"))},
		"the status of its jobs":       {before: `{"status":{"jobsStatus":[{"name":"node","ready":0}]}}`, after: `{"status":{"jobsStatus":[{"name":"node","ready":1}]}}`},
		"the first Complete comes":     {before: status(resumed), after: status(resumed, complete)},
		"the first Failed comes":       {before: status(resumed), after: status(resumed, failed)},
		"Failed that is not True":      {before: status(resumed), after: status(condition("Failed", "False", "DeadlineExceeded", "m"))},
		"Failed that is not True goes": {before: status(condition("Failed", "False", "Other", "m")), after: status()},
		"Failed becomes True":          {before: status(condition("Failed", "False", "Other", "m")), after: status(failed)},

		"Complete stays":                         {before: status(complete), after: status(complete)},
		"Failed stays":                           {before: status(failed), after: status(failed)},
		"Failed by a deadline stays":             {before: status(exceeded), after: status(exceeded)},
		"Failed by a deadline stays, others go":  {before: status(resumed, exceeded), after: status(exceeded)},
		"Failed by a deadline stays, moved":      {before: status(resumed, exceeded), after: status(exceeded, suspended)},
		"Complete stays, Failed is not True":     {before: status(complete), after: status(complete, condition("Failed", "False", "Other", "m"))},
		"the status of the jobs of a failed one": {before: status(failed), after: `{"status":{"conditions":[` + failed + `],"jobsStatus":[]}}`},

		"Complete is dropped":                            {before: status(resumed, complete), after: status(resumed), want: true},
		"Failed is dropped":                              {before: status(resumed, failed), after: status(resumed), want: true},
		"Failed by a deadline is dropped":                {before: status(exceeded), after: status(), want: true},
		"Failed is dropped with all conditions":          {before: status(failed), after: `{"status":{"jobsStatus":[]}}`, want: true},
		"Failed is dropped with the status":              {before: status(failed), after: `{}`, want: true},
		"Failed is dropped by a null status":             {before: status(failed), after: `{"status":null}`, want: true},
		"Failed is dropped, a broken one comes":          {before: status(failed), after: status(`{}`), want: true},
		"Failed turns to Complete":                       {before: status(failed), after: status(complete), want: true},
		"Failed turns to Failed by a deadline":           {before: status(failed), after: status(exceeded), want: true},
		"Failed by a deadline turns to Failed":           {before: status(exceeded), after: status(failed), want: true},
		"Failed comes beside Complete":                   {before: status(complete), after: status(complete, failed), want: true},
		"Complete comes beside Failed":                   {before: status(failed), after: status(failed, complete), want: true},
		"Complete and Failed come together":              {before: status(resumed), after: status(complete, failed), want: true},
		"Complete and Failed are stored":                 {before: status(complete, failed), after: status(complete, failed), want: true},
		"Failed by a deadline comes":                     {before: status(resumed), after: status(resumed, exceeded), want: true},
		"Failed by a deadline comes as the first":        {before: `{}`, after: status(exceeded), want: true},
		"Failed by a deadline comes beside a broken one": {before: `{}`, after: status(`{}`, exceeded), want: true},

		"conditions without a type":   {before: status(resumed), after: status(`{"status":"True","reason":"DeadlineExceeded"}`)},
		"conditions without a status": {before: status(resumed), after: status(`{"type":"Failed","reason":"DeadlineExceeded"}`)},
		"conditions without a reason": {before: status(resumed), after: status(`{"type":"Failed","status":"True"}`)},
		"stored without a type":       {before: status(`{"status":"True"}`), after: status(resumed)},
		"stored without a status":     {before: status(`{"type":"Failed"}`), after: status(resumed)},
	} {
		t.Run(name, func(t *testing.T) {
			checkMatch(t, conditions, trainJobStatus, request{before: tc.before, after: tc.after, user: trainerUser}, tc.want)
		})
	}
}

// TestStatusConditionsOnADeadlineByOthers sets an end by a deadline as others than Trainer do,
// the reconciler among them: that is not asked about, so that it needs no webhook.
func TestStatusConditionsOnADeadlineByOthers(t *testing.T) {
	comes := request{before: status(resumed), after: status(resumed, exceeded)}
	for name, tc := range map[string]struct {
		values []string
		user   string
		want   bool
	}{
		"Trainer":                        {user: trainerUser, want: true},
		"the reconciler":                 {user: "system:serviceaccount:" + namespace + ":signalbox-reconciler"},
		"nobody":                         {},
		"Trainer, which is trusted":      {values: []string{"trainer.correctEarlyDeadlines=false"}, user: trainerUser},
		"Trainer by another account":     {values: []string{"trainer.serviceAccount=a/b"}, user: "system:serviceaccount:a:b", want: true},
		"who would be Trainer elsewhere": {values: []string{"trainer.serviceAccount=a/b"}, user: trainerUser},
	} {
		t.Run(name, func(t *testing.T) {
			req := comes
			req.user = tc.user
			conditions := matcher(t, admission.TrainJobStatusPath, tc.values...)
			checkMatch(t, conditions, trainJobStatus, req, tc.want)
			req.before, req.after = status(failed), status(exceeded)
			checkMatch(t, conditions, trainJobStatus, req, true)
		})
	}
}

// TestStatusConditionsOnAlteredEnds changes each field of a stored end in turn.
func TestStatusConditionsOnAlteredEnds(t *testing.T) {
	conditions := matcher(t, admission.TrainJobStatusPath)
	for _, end := range []string{complete, failed, exceeded} {
		for name, change := range map[string][2]string{
			"another type":          {`"type":"`, `"type":"Not`},
			"another status":        {`"status":"True"`, `"status":"False"`},
			"an unknown status":     {`"status":"True"`, `"status":"Unknown"`},
			"another reason":        {`"reason":"`, `"reason":"Not`},
			"another message":       {`"message":"m"`, `"message":"n"`},
			"another time":          {`00:00:00Z`, `00:00:01Z`},
			"an observedGeneration": {`{`, `{"observedGeneration":1,`},
			"no reason":             {`"reason":`, `"other":`},
			"no message":            {`"message":"m",`, ``},
			"no time":               {`,"lastTransitionTime":"2026-01-01T00:00:00Z"`, ``},
		} {
			t.Run(end+" with "+name, func(t *testing.T) {
				altered := strings.Replace(end, change[0], change[1], 1)
				if altered == end {
					t.Fatal("nothing is altered")
				}
				checkMatch(t, conditions, trainJobStatus, request{before: status(resumed, end), after: status(resumed, altered), user: "someone"}, true)
			})
		}
	}
}

// TestStatusConditionsAreAffordable writes the largest statuses that an API server would
// store. An evaluation that costs too much is an error, by which the write would be refused. Old
// versions of Trainer have no limit to the number of conditions but the size of an object.
func TestStatusConditionsAreAffordable(t *testing.T) {
	conditions := matcher(t, admission.TrainJobStatusPath)
	var long, many []string
	for i := range 7 {
		long = append(long, condition(fmt.Sprint("Long", i), "True", "Other", strings.Repeat("x", 32<<10)))
	}
	for i := range 15000 {
		many = append(many, condition(fmt.Sprint("T", i), "True", "r", ""))
	}
	for name, others := range map[string][]string{"long conditions": long, "many conditions": many} {
		for change, tc := range map[string]struct{ before, after string }{
			"Failed is dropped":          {before: status(append(others, failed)...), after: status(others...)},
			"Failed is altered":          {before: status(append(others, failed)...), after: status(append(others, exceeded)...)},
			"Failed by a deadline comes": {before: status(others...), after: status(append(others, exceeded)...)},
		} {
			t.Run(name+", "+change, func(t *testing.T) {
				checkMatch(t, conditions, trainJobStatus, request{before: tc.before, after: tc.after, user: trainerUser}, true)
			})
		}
	}
}

// TestStatusConditionsOnAnotherShape writes what the API server refuses afterwards by the
// schema of TrainJobs. Some of it cannot be read at all, so that the write passes the webhook
// or is refused at once, as its failurePolicy says: it is refused anyway.
func TestStatusConditionsOnAnotherShape(t *testing.T) {
	conditions := matcher(t, admission.TrainJobStatusPath)
	for name, tc := range map[string]struct {
		after     string
		wantError bool
	}{
		"a status that is a text":        {after: `{"status":"Failed"}`},
		"a status that is a list":        {after: `{"status":["Failed"]}`, wantError: true},
		"conditions that are no objects": {after: status(`"Failed"`, `1`, `null`)},
		"conditions that are lists":      {after: status(`[]`), wantError: true},
		"fields of other types":          {after: status(`{"type":1,"status":true,"reason":{}}`)},
		"conditions that are an object":  {after: `{"status":{"conditions":` + exceeded + `}}`},
		"conditions that are a text":     {after: `{"status":{"conditions":"Failed"}}`, wantError: true},
		"conditions that are a number":   {after: `{"status":{"conditions":1}}`, wantError: true},
		// The API server takes a null out before admission, since the schema allows none.
		"conditions that are null": {after: `{"status":{"conditions":null}}`, wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := match(t, conditions, trainJobStatus, request{before: status(resumed), after: tc.after, user: trainerUser})
			if got.Matches || (got.Error != nil) != tc.wantError {
				t.Errorf("webhook called: %t, error %v; want no call, error: %t", got.Matches, got.Error, tc.wantError)
			}
		})
	}
}
