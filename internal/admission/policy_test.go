package admission

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// The mutating webhook lets pass what a policy does not allow, and the validating one refuses it.
func TestDeadlineRefused(t *testing.T) {
	most, required := builder.LifecyclePolicy("max").Max(100*time.Second), builder.LifecyclePolicy("req").Required()
	const annotation = "metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]"
	for name, tc := range map[string]struct {
		policy      *builder.LifecyclePolicyBuilder
		after       string
		field, want string
		reason      metav1.CauseType
	}{
		"over a max": {most, document(nil, `"activeDeadlineSeconds":999`), "spec.activeDeadlineSeconds",
			"Invalid value: 999: must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max", metav1.CauseTypeFieldValueInvalid},
		"over a max, suspended": {most, document(nil, `"suspend":true,"activeDeadlineSeconds":101`), "spec.activeDeadlineSeconds",
			"Invalid value: 101: must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max", metav1.CauseTypeFieldValueInvalid},
		"over a max by annotation": {most, document(map[string]string{deadlineKey: "999"}, ""), annotation,
			`Invalid value: "999": must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max`, metav1.CauseTypeFieldValueInvalid},
		"over a max, said to be given": {most, document(map[string]string{givenBy: byMax}, `"activeDeadlineSeconds":101`), "spec.activeDeadlineSeconds",
			"Invalid value: 101: must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max", metav1.CauseTypeFieldValueInvalid},
		"over a max by a run policy": {most, document(nil, `"runPolicy":{"activeDeadlineSeconds":999}`), "spec.runPolicy.activeDeadlineSeconds",
			"Invalid value: 999: must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max", metav1.CauseTypeFieldValueInvalid},
		"over a max by a run policy, ours under it": {most, document(nil, `"activeDeadlineSeconds":5,"runPolicy":{"activeDeadlineSeconds":999}`), "spec.runPolicy.activeDeadlineSeconds",
			"Invalid value: 999: must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max", metav1.CauseTypeFieldValueInvalid},
		"a copy of MultiKueue over a max": {most, copied(document(nil, `"activeDeadlineSeconds":999`)), "spec.activeDeadlineSeconds",
			"Invalid value: 999: must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max", metav1.CauseTypeFieldValueInvalid},
		"opted out under a max": {most, document(map[string]string{deadlineKey: "none"}, ""), annotation,
			`Invalid value: "none": a deadline is needed: LifecyclePolicy/max allows 100 seconds (1m40s) at most`, metav1.CauseTypeFieldValueInvalid},
		"opted out where one is required": {required, document(map[string]string{deadlineKey: "none"}, ""), annotation,
			`Invalid value: "none": a deadline is needed: LifecyclePolicy/req requires one`, metav1.CauseTypeFieldValueInvalid},
		"none where one is required": {required, document(nil, ""), "spec.activeDeadlineSeconds",
			"Required value: LifecyclePolicy/req requires a deadline: set this field, or the annotation lifecycle.trainer.kubeflow.org/active-deadline-seconds, to a number of seconds", metav1.CauseTypeFieldValueRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolicyBench(torch(), tc.policy)
			// What others may still make of the TrainJob is not refused yet, nor given anything.
			first := b.asks("", tc.after)
			if !first.Allowed {
				t.Fatalf("refused by the mutating webhook: %v", first.Result)
			}
			once := apply(t, tc.after, first.Patches)
			was, is := givenIn(t, tc.after), givenIn(t, once)
			was.By = ""
			if diff := cmp.Diff(was, is); diff != "" {
				t.Errorf("given (-want +got):\n%s", diff)
			}
			got := b.judges("", once)
			want := `TrainJob.trainer.kubeflow.org "job" is invalid: ` + tc.field + ": " + tc.want
			if got.Allowed || got.Result.Code != http.StatusUnprocessableEntity || got.Result.Reason != metav1.StatusReasonInvalid || got.Result.Message != want {
				t.Fatalf("answer %+v, want 422 %q", got.Result, want)
			}
			cause := metav1.StatusCause{Type: tc.reason, Field: tc.field, Message: tc.want}
			if diff := cmp.Diff([]metav1.StatusCause{cause}, got.Result.Details.Causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			// With another controller it is none of ours.
			elsewhere := strings.Replace(tc.after, `"spec":{`, `"spec":{"managedBy":"kueue.x-k8s.io/multikueue",`, 1)
			for _, got := range []admission.Response{b.asks("", elsewhere), b.judges("", elsewhere)} {
				if !got.Allowed {
					t.Errorf("refused elsewhere: %v", got.Result)
				}
			}
			// Stored, it is left alone.
			if got := b.judges(tc.after, tc.after); !got.Allowed {
				t.Errorf("an update is refused: %v", got.Result)
			}
		})
	}
}

// What a policy does not allow comes with all other mistakes, in one answer.
func TestPolicyTellsOfAllAtOnce(t *testing.T) {
	b := newPolicyBench(torch(), builder.LifecyclePolicy("max").Max(100*time.Second))
	after := document(map[string]string{v1alpha1.AnnotationTTLSecondsAfterFinished: "1h"},
		`"activeDeadlineSeconds":999,"runtimePatches":[{"trainingRuntimeSpec":{"template":{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/x":"y"}}}}}]`)
	got := b.judges("", after)
	want := []string{
		"metadata.annotations[lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished]",
		"spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations[lifecycle.trainer.kubeflow.org/x]",
		"spec.activeDeadlineSeconds",
	}
	if got.Allowed || got.Result.Code != http.StatusUnprocessableEntity {
		t.Fatalf("answer %+v, want 422", got.Result)
	}
	var fields []string
	for _, cause := range got.Result.Details.Causes {
		fields = append(fields, cause.Field)
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// The validating webhook reads the runtime once at most, and only where a policy selects by it, or
// where a deadline is required and the TrainJob has none.
func TestPolicyReadsTheRuntimeWhereItMatters(t *testing.T) {
	p := builder.LifecyclePolicy
	most, required := p("max").Max(100*time.Second), p("req").Required()
	gpu, elsewhere := p("gpu").Max(50*time.Second).Runtimes("gpu", "yes"), p("gpu").Max(time.Second).Runtimes("gpu", "yes").Namespaces("team", "y")
	own, by := document(nil, `"activeDeadlineSeconds":5`), document(map[string]string{deadlineKey: "5"}, "")
	for name, tc := range map[string]struct {
		policies      policies
		before, after string
		want          bool
	}{
		"no policies":                          {after: document(nil, "")},
		"a max alone":                          {policies: policies{most}, after: document(nil, "")},
		"a max alone, refused":                 {policies: policies{most}, after: document(nil, `"activeDeadlineSeconds":999`)},
		"of a runtime":                         {policies: policies{most, gpu}, after: own, want: true},
		"of a runtime in another namespace":    {policies: policies{most, elsewhere}, after: own},
		"of a runtime, an update":              {policies: policies{gpu, required}, before: own, after: own},
		"of a runtime, not run by Trainer":     {policies: policies{gpu, required}, after: document(nil, `"managedBy":"kueue.x-k8s.io/multikueue"`)},
		"required":                             {policies: policies{required}, after: document(nil, ""), want: true},
		"required, its own":                    {policies: policies{required}, after: own},
		"required, its own by annotation":      {policies: policies{required}, after: by},
		"required and of a runtime":            {policies: policies{required, gpu}, after: document(nil, ""), want: true},
		"required, of no runtime":              {policies: policies{required, gpu}, after: `{"metadata":{"name":"job"},"spec":{}}`},
		"required, a runtime of an unknown":    {policies: policies{required, gpu}, after: strings.Replace(document(nil, ""), "ClusterTrainingRuntime", "Deployment", 1)},
		"required, its own, policies off here": {policies: policies{p("req").Required().Namespaces("team", "y")}, after: document(nil, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolicyBench(torch().Label("gpu", "yes").Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "9"), tc.policies...)
			b.judges(tc.before, tc.after)
			var want []string
			if tc.want {
				want = []string{"metadata of " + torchID, "all of " + torchID}
			}
			if diff := cmp.Diff(want, b.reads); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// A requirement is met by the default of the runtime, and by a deadline that Trainer looks after.
func TestPolicyRequirementIsMet(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime *builder.RuntimeBuilder
		after   string
		want    bool
	}{
		"by nothing":                     {torch(), document(nil, ""), false},
		"by no runtime":                  {nil, document(nil, suspended), false},
		"by the runtime's default":       {torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "70"), document(nil, ""), true},
		"by garbage of the runtime":      {torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "1h"), document(nil, ""), false},
		"by a run policy of the runtime": {torch().Set(int64(5), "spec", "runPolicy", "activeDeadlineSeconds"), document(nil, ""), true},
		"by a run policy":                {torch(), document(nil, `"runPolicy":{"activeDeadlineSeconds":{}}`), true},
		"by the label of a copy":         {torch(), copied(document(nil, "")), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolicyBench(tc.runtime, builder.LifecyclePolicy("req").Required())
			if got := b.judges("", tc.after); got.Allowed != tc.want {
				t.Errorf("allowed %v, want %v: %v", got.Allowed, tc.want, got.Result)
			}
		})
	}
}

// A policy with a selector of runtimes refuses on the runtimes that it selects, and on no runtime
// of which nothing is known.
func TestPolicyOfRuntimesRefuses(t *testing.T) {
	selected := builder.LifecyclePolicy("gpu").Max(time.Minute).Runtimes("gpu", "yes")
	without := builder.LifecyclePolicy("cpu").Max(time.Minute).RuntimeSelector(&metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gpu", Operator: metav1.LabelSelectorOpDoesNotExist}},
	})
	for name, tc := range map[string]struct {
		runtime *builder.RuntimeBuilder
		policy  *builder.LifecyclePolicyBuilder
		want    bool
	}{
		"selected":             {torch().Label("gpu", "yes"), selected, false},
		"not selected":         {torch().Label("gpu", "no"), selected, true},
		"gone":                 {nil, selected, true},
		"without":              {torch(), without, false},
		"not without":          {torch().Label("gpu", "yes"), without, true},
		"gone, so not without": {nil, without, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := document(nil, `"suspend":true,"activeDeadlineSeconds":61`)
			if got := newPolicyBench(tc.runtime, tc.policy).judges("", after); got.Allowed != tc.want {
				t.Errorf("allowed %v, want %v: %v", got.Allowed, tc.want, got.Result)
			}
		})
	}
}

// What cannot be read fails closed, where it can make a difference.
func TestPolicyFailures(t *testing.T) {
	broken := errors.New("etcd is away")
	gpu, required := builder.LifecyclePolicy("gpu").Max(time.Minute).Runtimes("gpu", "yes"), builder.LifecyclePolicy("req").Required()
	own := document(nil, `"activeDeadlineSeconds":5`)
	for name, tc := range map[string]struct {
		policy           *builder.LifecyclePolicyBuilder
		unlisted, unread error
		before, after    string
		want             string
	}{
		"the policies":                       {policy: gpu, unlisted: broken, after: own, want: "list LifecyclePolicies: etcd is away"},
		"the policies, an update":            {policy: gpu, unlisted: broken, before: own, after: own},
		"the policies, not run by Trainer":   {policy: gpu, unlisted: broken, after: document(nil, `"managedBy":"kueue.x-k8s.io/multikueue"`)},
		"the runtime that a policy asks for": {policy: gpu, unread: broken, after: own, want: "read runtime: etcd is away"},
		"the runtime, where it is required":  {policy: required, unread: broken, after: document(nil, ""), want: "read runtime: etcd is away"},
		"the runtime, which nobody asks for": {policy: required, unread: broken, after: own},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolicyBench(torch(), tc.policy)
			b.unlisted, b.unread = tc.unlisted, tc.unread
			got := b.judges(tc.before, tc.after)
			if got.Allowed != (tc.want == "") {
				t.Fatalf("allowed %v: %v", got.Allowed, got.Result)
			}
			if tc.want != "" && (got.Result.Code != http.StatusInternalServerError || got.Result.Message != tc.want) {
				t.Errorf("answer %+v, want 500 %q", got.Result, tc.want)
			}
		})
	}
}

// counting makes the validating webhook count, and returns what it has counted, as DECISION by WHOM.
func (b *policyBench) counting(t *testing.T) func() map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	var err error
	if b.validator.Decisions, err = policy.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	return func() map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.Metric {
				got[metric.Label[1].GetValue()+" by "+metric.Label[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
		return got
	}
}

// Every creation counts once, as what was decided of it, however often the mutating webhook is
// called; a dry run is answered alike and does not.
func TestPolicyDecisionsAreCounted(t *testing.T) {
	def, most := builder.LifecyclePolicy("def").Default(50*time.Second), builder.LifecyclePolicy("max").Max(100*time.Second)
	rise := torch().Annotation(v1alpha1.AnnotationDefaultActiveDeadlineSeconds, "70")
	opted := document(map[string]string{deadlineKey: "none"}, "")
	for name, tc := range map[string]struct {
		runtime  *builder.RuntimeBuilder
		policies policies
		after    string
		want     string
	}{
		"nobody says anything":      {torch(), nil, document(nil, ""), "none by "},
		"its own":                   {torch(), policies{def, most}, document(nil, `"activeDeadlineSeconds":100`), "own by "},
		"its own, said to be given": {torch(), policies{def, most}, document(map[string]string{givenBy: byMax}, `"activeDeadlineSeconds":5`), "own by "},
		"a policy's default":        {torch(), policies{def, most}, document(nil, ""), "default by LifecyclePolicy/def"},
		"suspended":                 {torch(), policies{def, most}, document(nil, suspended), "default by LifecyclePolicy/def"},
		"the runtime's":             {rise, policies{def, most}, document(nil, ""), "default by " + torchID},
		"the max":                   {torch(), policies{most}, document(nil, ""), "max by LifecyclePolicy/max"},
		"the max of a run policy":   {torch(), policies{def, most}, document(nil, `"runPolicy":{"activeDeadlineSeconds":5}`), "max by LifecyclePolicy/max"},
		"a run policy":              {torch(), policies{def}, document(nil, `"runPolicy":{"activeDeadlineSeconds":5}`), "own by "},
		"opted out":                 {torch(), policies{def}, opted, "opt_out by "},
		"over the max":              {torch(), policies{def, most}, document(nil, `"activeDeadlineSeconds":500`), "refused_max by LifecyclePolicy/max"},
		"opted out under a max":     {torch(), policies{def, most}, opted, "refused_none by LifecyclePolicy/max"},
		"none where required":       {torch(), policies{builder.LifecyclePolicy("req").Required()}, document(nil, ""), "refused_required by LifecyclePolicy/req"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, b := range []*policyBench{newPolicyBench(tc.runtime, tc.policies...), newPolicyBench(tc.runtime, tc.policies...).old()} {
				counted := b.counting(t)
				once := tc.after
				for range 2 {
					once = apply(t, once, b.asks("", once).Patches)
				}
				if got := counted(); len(got) != 0 {
					t.Errorf("the mutating webhook counts %v", got)
				}
				dry := sealRequest("", once)
				dry.DryRun = ptr.To(true)
				one := b.validator.Handle(t.Context(), dry)
				if got := counted(); len(got) != 0 {
					t.Errorf("a dry run counts %v", got)
				}
				if diff := cmp.Diff(b.judges("", once), one); diff != "" {
					t.Errorf("answers (-real +dry):\n%s", diff)
				}
				// These decide nothing.
				b.judges(once, once)
				b.judges("", strings.Replace(once, `"spec":{`, `"spec":{"managedBy":"kueue.x-k8s.io/multikueue",`, 1))
				if diff := cmp.Diff(map[string]float64{tc.want: 1}, counted()); diff != "" {
					t.Errorf("counted (-want +got):\n%s", diff)
				}
			}
		})
	}
}
