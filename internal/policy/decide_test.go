package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const annotationField = "metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]"

// decided is a decision with its refusal as text.
type decided struct {
	What, By string
	Deadline time.Duration
	Refusal  string
}

func decidedOf(d Decision) decided {
	got := decided{What: d.What, By: d.By, Deadline: d.Deadline}
	if d.Refusal != nil {
		got.Refusal = d.Refusal.Error()
	}
	return got
}

// runtimeWith are the settings of a runtime with this default.
func runtimeWith(value string) trainer.RuntimeSettings {
	return trainer.RuntimeSettings{
		Name:        "ClusterTrainingRuntime/torch",
		Annotations: map[string]string{v1alpha1.AnnotationDefaultActiveDeadlineSeconds: value},
	}
}

func TestDecide(t *testing.T) {
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	const (
		hundred  = 100 * time.Second
		byTorch  = "ClusterTrainingRuntime/torch"
		overMax  = "must be less than or equal to 100 (1m40s), the maximum of LifecyclePolicy/max"
		required = "spec.activeDeadlineSeconds: Required value: LifecyclePolicy/req requires a deadline: set this field, or the annotation " +
			"lifecycle.trainer.kubeflow.org/active-deadline-seconds, to a number of seconds"
	)
	max100 := Rules{Max: Limit{hundred, "max"}}
	default50 := Rules{Default: Limit{50 * time.Second, "def"}}
	required1 := Rules{Required: "req"}
	all := Rules{Default: default50.Default, Max: max100.Max, Required: "req"}
	own := decided{What: Own}
	limited := decided{What: Limited, By: "LifecyclePolicy/max", Deadline: hundred}
	defaulted := decided{What: Defaulted, By: "LifecyclePolicy/def", Deadline: 50 * time.Second}
	ofTorch := decided{What: Defaulted, By: byTorch, Deadline: 70 * time.Second}
	over := func(path, value string) decided {
		return decided{What: OverMax, By: "LifecyclePolicy/max", Refusal: path + ": Invalid value: " + value + ": " + overMax}
	}
	noneUnderMax := decided{What: NotNone, By: "LifecyclePolicy/max",
		Refusal: annotationField + `: Invalid value: "none": a deadline is needed: LifecyclePolicy/max allows 100 seconds (1m40s) at most`}
	noneRequired := decided{What: NotNone, By: "LifecyclePolicy/req",
		Refusal: annotationField + `: Invalid value: "none": a deadline is needed: LifecyclePolicy/req requires one`}
	setting := func(seconds int64) *trainer.Setting { return &trainer.Setting{Seconds: &seconds} }
	unreadable := &trainer.Setting{}
	for name, tc := range map[string]struct {
		job     *builder.TrainJobBuilder
		runtime trainer.RuntimeSettings
		rules   Rules
		want    decided
	}{
		"nobody says anything":                  {job: job(), want: decided{What: Unlimited}},
		"its own, no rules":                     {job: job().Deadline(4294967295), want: own},
		"its own under the max":                 {job: job().Deadline(99), rules: all, runtime: runtimeWith("5"), want: own},
		"its own at the max":                    {job: job().Deadline(100), rules: all, want: own},
		"its own one over":                      {job: job().Deadline(101), rules: all, want: over("spec.activeDeadlineSeconds", "101")},
		"its own that overflows":                {job: job().Deadline(9223372036854775807), rules: max100, want: over("spec.activeDeadlineSeconds", "9223372036854775807")},
		"its own zero, left for validation":     {job: job().Deadline(0), rules: all, want: own},
		"its own negative, left for validation": {job: job().Deadline(-1), rules: all, want: own},
		"its own over a default alone":          {job: job().Deadline(999), rules: default50, runtime: runtimeWith("5"), want: own},
		"its own where one is required":         {job: job().Deadline(999), rules: required1, want: own},

		"by annotation":                    {job: job().DeadlineAnnotation("100"), rules: all, want: own},
		"by annotation, one over":          {job: job().DeadlineAnnotation("101"), rules: all, want: over(annotationField, `"101"`)},
		"by annotation, the most":          {job: job().DeadlineAnnotation("4294967295"), want: own},
		"by annotation, garbage":           {job: job().DeadlineAnnotation("8h"), rules: all, want: own},
		"by annotation, empty":             {job: job().DeadlineAnnotation(""), rules: all, want: own},
		"by annotation, out of bounds":     {job: job().DeadlineAnnotation("4294967296"), rules: all, want: own},
		"by annotation, None in capitals":  {job: job().DeadlineAnnotation("None"), rules: all, want: own},
		"the field counts, not annotation": {job: job().Deadline(100).DeadlineAnnotation("999"), rules: all, want: own},
		"the field counts, not the none":   {job: job().Deadline(100).DeadlineAnnotation("none"), rules: all, want: own},

		"opts out of nothing":             {job: job().DeadlineAnnotation("none"), want: decided{What: OptedOut}},
		"opts out of a policy's default":  {job: job().DeadlineAnnotation("none"), rules: default50, want: decided{What: OptedOut}},
		"opts out of a runtime's default": {job: job().DeadlineAnnotation("none"), runtime: runtimeWith("5"), want: decided{What: OptedOut}},
		"opts out where a max applies": {
			job: job().DeadlineAnnotation("none"), rules: all,
			want: noneUnderMax,
		},
		"opts out where one is required": {
			job: job().DeadlineAnnotation("none"), rules: required1,
			want: noneRequired,
		},
		"opts out where one is required and a default is there": {
			job: job().DeadlineAnnotation("none"), rules: Rules{Required: "req", Default: default50.Default},
			want: noneRequired,
		},

		"a policy's default":               {job: job(), rules: default50, want: defaulted},
		"a policy's default under a max":   {job: job(), rules: all, want: defaulted},
		"a policy's default at the max":    {job: job(), rules: Rules{Default: Limit{hundred, "def"}, Max: max100.Max}, want: decided{What: Defaulted, By: "LifecyclePolicy/def", Deadline: hundred}},
		"a policy's default over the max":  {job: job(), rules: Rules{Default: Limit{time.Hour, "def"}, Max: max100.Max}, want: limited},
		"a max alone":                      {job: job(), rules: max100, want: limited},
		"a runtime's default":              {job: job(), runtime: runtimeWith("70"), want: ofTorch},
		"a runtime's before a policy's":    {job: job(), runtime: runtimeWith("70"), rules: all, want: ofTorch},
		"a runtime's over the max":         {job: job(), runtime: runtimeWith("101"), rules: all, want: limited},
		"a runtime's at the max":           {job: job(), runtime: runtimeWith("100"), rules: all, want: decided{What: Defaulted, By: byTorch, Deadline: hundred}},
		"a runtime's where required":       {job: job(), runtime: runtimeWith("70"), rules: required1, want: ofTorch},
		"a runtime's garbage":              {job: job(), runtime: runtimeWith("1h"), rules: default50, want: defaulted},
		"a runtime's zero":                 {job: job(), runtime: runtimeWith("0"), rules: max100, want: limited},
		"a runtime's none":                 {job: job(), runtime: runtimeWith("none"), want: decided{What: Unlimited}},
		"a runtime's garbage where one is": {job: job(), runtime: runtimeWith(""), rules: required1, want: decided{What: Missing, By: "LifecyclePolicy/req", Refusal: required}},

		"required, and a default": {job: job(), rules: Rules{Required: "req", Default: default50.Default}, want: defaulted},
		"required, and none":      {job: job(), rules: required1, want: decided{What: Missing, By: "LifecyclePolicy/req", Refusal: required}},
		"required, and a max": {
			job: job(), rules: Rules{Required: "req", Max: max100.Max},
			want: decided{What: Missing, By: "LifecyclePolicy/req", Refusal: required + " up to 100 (1m40s), the maximum of LifecyclePolicy/max"},
		},

		"a copy gets no default":              {job: job().CopyOfMultiKueue(), rules: default50, runtime: runtimeWith("5"), want: decided{What: Unlimited}},
		"a copy needs none":                   {job: job().CopyOfMultiKueue(), rules: required1, want: decided{What: Unlimited}},
		"a copy gets the max":                 {job: job().CopyOfMultiKueue(), rules: all, runtime: runtimeWith("5"), want: limited},
		"a copy over the max":                 {job: job().CopyOfMultiKueue().Deadline(101), rules: all, want: over("spec.activeDeadlineSeconds", "101")},
		"a copy opts out of a requirement":    {job: job().CopyOfMultiKueue().DeadlineAnnotation("none"), rules: required1, want: decided{What: OptedOut}},
		"a copy opts out where a max applies": {job: job().CopyOfMultiKueue().DeadlineAnnotation("none"), rules: max100, want: noneUnderMax},

		"Trainer's own, no rules":                         {job: job().RunPolicy(setting(100), nil), want: own},
		"Trainer's own gets the max beside it":            {job: job().RunPolicy(setting(5), nil), rules: max100, want: limited},
		"Trainer's own at the max":                        {job: job().RunPolicy(setting(100), nil), rules: all, runtime: runtimeWith("5"), want: limited},
		"Trainer's own over the max":                      {job: job().RunPolicy(setting(101), nil), rules: all, want: over("spec.runPolicy.activeDeadlineSeconds", "101")},
		"Trainer's own over the max, ours under it":       {job: job().RunPolicy(setting(101), nil).Deadline(5), rules: all, want: over("spec.runPolicy.activeDeadlineSeconds", "101")},
		"Trainer's own over the max, opted out of ours":   {job: job().RunPolicy(setting(101), nil).DeadlineAnnotation("none"), rules: all, want: over("spec.runPolicy.activeDeadlineSeconds", "101")},
		"Trainer's own over the max, a copy":              {job: job().RunPolicy(setting(101), nil).CopyOfMultiKueue(), rules: all, want: over("spec.runPolicy.activeDeadlineSeconds", "101")},
		"Trainer's own of zero":                           {job: job().RunPolicy(setting(0), nil), rules: max100, want: limited},
		"Trainer's own that cannot be read":               {job: job().RunPolicy(unreadable, nil), rules: all, runtime: runtimeWith("5"), want: limited},
		"Trainer's own that cannot be read, no max":       {job: job().RunPolicy(unreadable, nil), rules: Rules{Default: all.Default, Required: "req"}, runtime: runtimeWith("5"), want: own},
		"Trainer's own gets no default":                   {job: job().RunPolicy(setting(100), nil), rules: default50, runtime: runtimeWith("5"), want: own},
		"Trainer's own, opted out":                        {job: job().RunPolicy(setting(5), nil).DeadlineAnnotation("none"), rules: required1, want: decided{What: OptedOut}},
		"the runtime has its, opted out":                  {job: job().DeadlineAnnotation("none"), runtime: ownRuntime(), rules: required1, want: decided{What: OptedOut}},
		"Trainer's own where required":                    {job: job().RunPolicy(setting(5), nil), rules: required1, want: own},
		"Trainer's own beside the annotation":             {job: job().RunPolicy(setting(5), nil).DeadlineAnnotation("100"), rules: all, want: own},
		"Trainer's own beside the annotation over":        {job: job().RunPolicy(setting(5), nil).DeadlineAnnotation("101"), rules: all, want: over(annotationField, `"101"`)},
		"Trainer's own beside the field":                  {job: job().RunPolicy(setting(5), nil).Deadline(100), rules: all, want: own},
		"Trainer's own beside the field over":             {job: job().RunPolicy(setting(5), nil).Deadline(101), rules: all, want: over("spec.activeDeadlineSeconds", "101")},
		"Trainer's own that cannot be read, beside a few": {job: job().RunPolicy(unreadable, nil).DeadlineAnnotation("101"), rules: all, want: over(annotationField, `"101"`)},
		"Trainer's own, and opts out of ours":             {job: job().RunPolicy(setting(5), nil).DeadlineAnnotation("none"), rules: default50, want: decided{What: OptedOut}},
		"Trainer's own, and opts out under a max":         {job: job().RunPolicy(setting(5), nil).DeadlineAnnotation("none"), rules: max100, want: noneUnderMax},
		"a run policy without a deadline":                 {job: job().RunPolicy(nil, setting(5)), rules: default50, want: defaulted},

		"the runtime has Trainer's own":            {job: job(), runtime: ownRuntime(), rules: default50, want: decided{What: Unlimited}},
		"the runtime has Trainer's own, required":  {job: job(), runtime: ownRuntime(), rules: required1, want: decided{What: Unlimited}},
		"the runtime has Trainer's own, and a max": {job: job(), runtime: ownRuntime(), rules: all, want: limited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := tc.job.Obj()
			if diff := cmp.Diff(tc.want, decidedOf(Decide(j, tc.runtime, tc.rules))); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.job.Obj(), j); diff != "" {
				t.Errorf("the TrainJob changed (-want +got):\n%s", diff)
			}
		})
	}
}

// ownRuntime are the settings of a runtime that has a deadline of a later Trainer, beside a
// default of ours.
func ownRuntime() trainer.RuntimeSettings {
	settings := runtimeWith("5")
	settings.OwnDeadline = true
	return settings
}

// The policy that is named is the one whose limit counts, whichever selects too.
func TestDecideNamesThePolicy(t *testing.T) {
	p := builder.LifecyclePolicy
	policies := objs(
		p("z-wide").Max(time.Hour).Default(time.Hour),
		p("strict").Max(time.Minute).Namespaces("team", "x"),
		p("default-b").Default(2*time.Minute),
		p("default-a").Default(2*time.Minute).Required(),
		p("elsewhere").Max(time.Second).Namespaces("team", "y"),
	)
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		team string
		want decided
	}{
		"in the team, without": {job: builder.TrainJob("ns", "job"), team: "x", want: decided{What: Limited, By: "LifecyclePolicy/strict", Deadline: time.Minute}},
		"outside, without":     {job: builder.TrainJob("ns", "job"), want: decided{What: Defaulted, By: "LifecyclePolicy/default-a", Deadline: 2 * time.Minute}},
		"in the team, with more": {
			job: builder.TrainJob("ns", "job").Deadline(61), team: "x",
			want: decided{What: OverMax, By: "LifecyclePolicy/strict",
				Refusal: "spec.activeDeadlineSeconds: Invalid value: 61: must be less than or equal to 60 (1m0s), the maximum of LifecyclePolicy/strict"},
		},
		"outside, with more": {
			job: builder.TrainJob("ns", "job").Deadline(3601),
			want: decided{What: OverMax, By: "LifecyclePolicy/z-wide",
				Refusal: "spec.activeDeadlineSeconds: Invalid value: 3601: must be less than or equal to 3600 (1h0m0s), the maximum of LifecyclePolicy/z-wide"},
		},
		"elsewhere, without": {job: builder.TrainJob("ns", "job"), team: "y", want: decided{What: Limited, By: "LifecyclePolicy/elsewhere", Deadline: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := strictest(t, policies, map[string]string{"team": tc.team}, unknown)
			if diff := cmp.Diff(tc.want, decidedOf(Decide(tc.job.Obj(), trainer.RuntimeSettings{}, rules))); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
		})
	}
}

// Deciding again on what was decided keeps it, and refuses nothing that was given.
func TestDecideIsStable(t *testing.T) {
	for name, rules := range map[string]Rules{
		"default": {Default: Limit{time.Minute, "a"}},
		"max":     {Max: Limit{time.Minute, "a"}},
		"all":     {Default: Limit{time.Hour, "a"}, Max: Limit{time.Minute, "b"}, Required: "c"},
	} {
		job := builder.TrainJob("ns", "job").Obj()
		first := Decide(job, trainer.RuntimeSettings{}, rules)
		job.Spec.ActiveDeadlineSeconds = ptr.To(int64(first.Deadline / time.Second))
		if diff := cmp.Diff(decided{What: Own}, decidedOf(Decide(job, trainer.RuntimeSettings{}, rules))); diff != "" {
			t.Errorf("%s, decided again (-want +got):\n%s", name, diff)
		}
	}
}

// Deciding again on a run policy that got the maximum beside it keeps that, wherever it stands.
func TestDecideIsStableBesideARunPolicy(t *testing.T) {
	rules := Rules{Default: Limit{time.Second, "a"}, Max: Limit{time.Minute, "b"}, Required: "c"}
	for name, own := range map[string]*trainer.Setting{"readable": {Seconds: ptr.To[int64](5)}, "unreadable": {}} {
		job := builder.TrainJob("ns", "job").RunPolicy(own, nil)
		first := Decide(job.Obj(), trainer.RuntimeSettings{}, rules)
		if diff := cmp.Diff(decided{What: Limited, By: "LifecyclePolicy/b", Deadline: time.Minute}, decidedOf(first)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		job.DeadlineAnnotation(fmt.Sprint(int64(first.Deadline / time.Second)))
		if diff := cmp.Diff(decided{What: Own}, decidedOf(Decide(job.Obj(), trainer.RuntimeSettings{}, rules))); diff != "" {
			t.Errorf("%s, decided again (-want +got):\n%s", name, diff)
		}
	}
}

// Others may take out what was given; under a max that must not be.
func TestJudgeSaysWhatIsNeeded(t *testing.T) {
	const want = "spec.activeDeadlineSeconds: Required value: a deadline is needed: LifecyclePolicy/max allows 100 seconds (1m40s) at most"
	got := Judge(builder.TrainJob("ns", "job").Obj(), trainer.RuntimeSettings{}, Rules{Max: Limit{100 * time.Second, "max"}})
	if got.Refusal == nil || got.Refusal.Error() != want {
		t.Errorf("refusal %v, want %s", got.Refusal, want)
	}
}

// Only where a deadline is required, and the TrainJob has none, can its runtime meet that.
func TestAsksRuntime(t *testing.T) {
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	required := Rules{Required: "req", Max: Limit{100 * time.Second, "max"}}
	for name, tc := range map[string]struct {
		job   *builder.TrainJobBuilder
		rules Rules
		want  bool
	}{
		"none":                    {job(), required, true},
		"opted out":               {job().DeadlineAnnotation("none"), required, true},
		"none is required":        {job(), Rules{Default: required.Max, Max: required.Max}, false},
		"its own":                 {job().Deadline(5), required, false},
		"its own by annotation":   {job().DeadlineAnnotation("5"), required, false},
		"a copy of MultiKueue":    {job().CopyOfMultiKueue(), required, false},
		"Trainer's by run policy": {job().RunPolicy(&trainer.Setting{}, nil), required, false},
	} {
		if got := AsksRuntime(tc.job.Obj(), tc.rules); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// What was given counts as given, by whoever gave it, and all else as what it is.
func TestJudge(t *testing.T) {
	given := func(by string) *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Annotation(v1alpha1.AnnotationActiveDeadlineSource, by)
	}
	max100 := Rules{Max: Limit{100 * time.Second, "max"}}
	all := Rules{Default: Limit{50 * time.Second, "def"}, Max: max100.Max, Required: "req"}
	const byMax, byDef, byTorch = "LifecyclePolicy/max", "LifecyclePolicy/def", "ClusterTrainingRuntime/torch"
	limited := Decision{What: Limited, By: byMax}
	unreadable := &trainer.Setting{}
	for name, tc := range map[string]struct {
		job   *builder.TrainJobBuilder
		rules Rules
		want  Decision
	}{
		"its own":                               {builder.TrainJob("ns", "job").Deadline(100), all, Decision{What: Own}},
		"its own by annotation":                 {builder.TrainJob("ns", "job").DeadlineAnnotation("100"), all, Decision{What: Own}},
		"its own, no rules":                     {builder.TrainJob("ns", "job").Deadline(100), Rules{}, Decision{What: Own}},
		"none, and no rules":                    {builder.TrainJob("ns", "job"), Rules{}, Decision{What: Unlimited}},
		"opted out":                             {builder.TrainJob("ns", "job").DeadlineAnnotation("none"), Rules{}, Decision{What: OptedOut}},
		"a policy's default":                    {given(byDef).Deadline(50), all, Decision{What: Defaulted, By: byDef}},
		"a policy's default, by annotation":     {given(byDef).DeadlineAnnotation("50"), all, Decision{What: Defaulted, By: byDef}},
		"a policy's default, no max":            {given(byDef).Deadline(50), Rules{Default: all.Default}, Decision{What: Defaulted, By: byDef}},
		"a runtime's":                           {given(byTorch).Deadline(70), all, Decision{What: Defaulted, By: byTorch}},
		"a runtime's, as long as the max":       {given(byTorch).Deadline(100), all, Decision{What: Defaulted, By: byTorch}},
		"the max":                               {given(byMax).Deadline(100), max100, limited},
		"the max, by annotation":                {given(byMax).DeadlineAnnotation("100"), all, limited},
		"the field counts, not the annotation":  {given(byMax).Deadline(100).DeadlineAnnotation("5"), all, limited},
		"the max, beside a run policy":          {given(byMax).RunPolicy(unreadable, nil).DeadlineAnnotation("100"), all, limited},
		"the default of a policy with a max":    {given(byMax).Deadline(50), all, Decision{What: Defaulted, By: byMax}},
		"the max was longer when it was given":  {given(byMax).Deadline(99), max100, Decision{What: Defaulted, By: byMax}},
		"the max is shorter than what is given": {given(byMax).Deadline(101), max100, Decision{What: OverMax, By: byMax}},
		"what was given is taken out":           {given(byMax), max100, Decision{What: OverMax, By: byMax}},
		"a default is taken out, under a max":   {builder.TrainJob("ns", "job"), Rules{Default: all.Default, Max: all.Max}, Decision{What: OverMax, By: byMax}},
		"a default has come meanwhile":          {builder.TrainJob("ns", "job"), Rules{Default: all.Default}, Decision{What: Defaulted, By: byDef, Deadline: 50 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := tc.job.Obj()
			got := Judge(job, trainer.RuntimeSettings{}, tc.rules)
			got.Refusal = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.job.Obj(), job); diff != "" {
				t.Errorf("the TrainJob changed (-want +got):\n%s", diff)
			}
		})
	}
}
