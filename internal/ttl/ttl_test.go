package ttl

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// finishedAt is when the TrainJobs of these tests finished.
var finishedAt = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return finishedAt.Add(time.Duration(seconds * float64(time.Second)))
}

const annotated = "annotation lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished"

func running() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }

func complete() *builder.TrainJobBuilder {
	return running().Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", finishedAt)
}

func failed() *builder.TrainJobBuilder {
	return running().Condition(trainer.ConditionFailed, metav1.ConditionTrue, "Crashed", finishedAt)
}

// limit is a limit of this many seconds.
func limit(seconds int, by string) *Limit {
	return &Limit{After: time.Duration(seconds) * time.Second, By: by}
}

// waiting and due are the decisions on a limit of this many seconds.
func waiting(seconds int, by string, rest time.Duration) Decision {
	decision := due(seconds, by)
	decision.State, decision.RequeueAfter = Waiting, rest
	return decision
}

func due(seconds int, by string) Decision {
	after := time.Duration(seconds) * time.Second
	return Decision{State: Due, Finished: finishedAt, After: after, Expires: finishedAt.Add(after), By: by}
}

// with are the rules with a change.
func with(rules Rules, change func(*Rules)) Rules {
	change(&rules)
	return rules
}

func TestEvaluate(t *testing.T) {
	const (
		yes = metav1.ConditionTrue
		day = 86400
	)
	setting := &trainer.Setting{}
	runtime := Rules{Runtime: limit(60, "ClusterTrainingRuntime/torch")}
	defaults := Rules{Succeeded: limit(60, "LifecyclePolicy/s"), Failed: limit(120, "LifecyclePolicy/f")}
	most := Rules{Max: limit(100, "LifecyclePolicy/m")}
	all := Rules{Runtime: limit(60, "TrainingRuntime/torch"), Succeeded: limit(61, "LifecyclePolicy/s"), Failed: limit(62, "LifecyclePolicy/f"), Max: limit(100, "LifecyclePolicy/m")}
	cut := Rules{Runtime: limit(101, "TrainingRuntime/torch"), Succeeded: limit(102, "LifecyclePolicy/s"), Failed: limit(103, "LifecyclePolicy/f"), Max: limit(100, "LifecyclePolicy/m")}
	for name, tc := range map[string]struct {
		job   *builder.TrainJobBuilder
		rules Rules
		now   time.Time
		want  Decision
	}{
		"nobody says anything":                     {job: complete(), now: at(1e9)},
		"waiting asks for the exact rest":          {job: complete().TTL("60"), now: at(10.75), want: waiting(60, annotated, 49250*time.Millisecond)},
		"a nanosecond before, for a nanosecond":    {job: complete().TTL("60"), now: at(60).Add(-1), want: waiting(60, annotated, 1)},
		"at equality it is due":                    {job: complete().TTL("60"), now: at(60), want: due(60, annotated)},
		"long after it is due":                     {job: complete().TTL("60"), now: at(1e9), want: due(60, annotated)},
		"finished in the future, by another clock": {job: complete().TTL("60"), now: at(-30), want: waiting(60, annotated, 90*time.Second)},
		"at once, finished in the future":          {job: complete().TTL("0"), now: at(-30), want: waiting(0, annotated, 30*time.Second)},

		"not finished":               {job: running().TTL("0"), rules: all, now: at(1e9)},
		"not certain to be finished": {job: running().TTL("0").Condition(trainer.ConditionComplete, metav1.ConditionUnknown, "Lost", finishedAt), rules: all, now: at(1e9)},
		"not failed":                 {job: running().TTL("0").Condition(trainer.ConditionFailed, metav1.ConditionFalse, "Fine", finishedAt), rules: all, now: at(1e9)},
		"finished nobody knows when": {job: running().TTL("0").Condition(trainer.ConditionComplete, yes, "Done", time.Time{}), rules: all, now: at(1e9)},
		"suspended":                  {job: complete().TTL("0").Suspended(), rules: all, now: at(1e9)},
		"suspend false":              {job: complete().TTL("0").Suspend(false), now: at(0), want: due(0, annotated)},
		"was suspended once":         {job: running().Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", at(-60)).Condition(trainer.ConditionComplete, yes, "Done", finishedAt).TTL("5"), now: at(5), want: due(5, annotated)},
		"being deleted":              {job: complete().TTL("0").Deleting(at(1)), rules: all, now: at(1e9)},
		"managed by MultiKueue":      {job: complete().TTL("0").ManagedBy("kueue.x-k8s.io/multikueue"), rules: all, now: at(1e9)},
		"managed by Trainer by name": {job: complete().TTL("5").ManagedBy(trainer.ControllerName), now: at(5), want: due(5, annotated)},
		"removed by Trainer itself":  {job: complete().TTL("0").RunPolicy(nil, setting), rules: Rules{Runtime: runtime.Runtime, Succeeded: defaults.Succeeded}, now: at(1e9)},
		"removed by Trainer, failed": {job: failed().RunPolicy(nil, setting), rules: defaults, now: at(1e9)},
		"by Trainer, under a max":    {job: complete().TTL("0").RunPolicy(nil, setting), rules: all, now: at(99), want: waiting(100, "LifecyclePolicy/m", time.Second)},
		"by Trainer, at a max":       {job: complete().RunPolicy(nil, setting), rules: all, now: at(100), want: due(100, "LifecyclePolicy/m")},
		"by Trainer, out, at a max":  {job: failed().TTL("none").RunPolicy(nil, setting), rules: all, now: at(100), want: due(100, "LifecyclePolicy/m")},
		"a run policy of a deadline": {job: complete().TTL("0").RunPolicy(setting, nil), now: at(0), want: due(0, annotated)},
		"the runtime has Trainer's":  {job: complete().TTL("0"), rules: with(all, func(r *Rules) { r.Max, r.OwnTTL = nil, true }), now: at(1e9)},
		"the runtime's, under a max": {job: complete().TTL("0"), rules: with(all, func(r *Rules) { r.OwnTTL = true }), now: at(99), want: waiting(100, "LifecyclePolicy/m", time.Second)},
		"the runtime's, at a max":    {job: failed().TTL("none"), rules: with(all, func(r *Rules) { r.OwnTTL = true }), now: at(100), want: due(100, "LifecyclePolicy/m")},
		"Trainer's, suspended":       {job: complete().RunPolicy(nil, setting).Suspended(), rules: all, now: at(1e9)},
		"Trainer's, not finished":    {job: running().RunPolicy(nil, setting), rules: all, now: at(1e9)},

		"its own, 0: at once":               {job: complete().TTL("0"), rules: runtime, now: at(0), want: due(0, annotated)},
		"its own before all others":         {job: complete().TTL("99"), rules: all, now: at(0), want: waiting(99, annotated, 99*time.Second)},
		"its own, longer than all defaults": {job: failed().TTL("86400"), rules: Rules{Runtime: runtime.Runtime, Failed: defaults.Failed}, now: at(0), want: waiting(day, annotated, day*time.Second)},
		"its own at the max":                {job: complete().TTL("100"), rules: all, now: at(100), want: due(100, annotated)},
		"its own over the max":              {job: complete().TTL("101"), rules: all, now: at(100), want: due(100, "LifecyclePolicy/m")},
		"its own, the most":                 {job: complete().TTL("4294967295"), now: at(0), want: waiting(4294967295, annotated, 4294967295*time.Second)},
		"opts out":                          {job: complete().TTL("none"), rules: Rules{Runtime: runtime.Runtime, Succeeded: defaults.Succeeded}, now: at(1e9)},
		"opts out, under a max":             {job: complete().TTL("none"), rules: all, now: at(99), want: waiting(100, "LifecyclePolicy/m", time.Second)},
		"garbage stays as long as it may":   {job: complete().TTL("1h"), rules: Rules{Runtime: runtime.Runtime, Succeeded: defaults.Succeeded}, now: at(1e9)},
		"garbage under a max":               {job: complete().TTL("-1"), rules: all, now: at(100), want: due(100, "LifecyclePolicy/m")},
		"empty stays as long as it may":     {job: complete().TTL(""), rules: defaults, now: at(1e9)},
		"too large stays as long as it may": {job: complete().TTL("4294967296"), rules: defaults, now: at(1e9)},

		"the runtime's":                     {job: complete(), rules: runtime, now: at(59), want: waiting(60, "ClusterTrainingRuntime/torch", time.Second)},
		"the runtime's, at once":            {job: failed(), rules: Rules{Runtime: limit(0, "TrainingRuntime/torch"), Failed: defaults.Failed}, now: at(0), want: due(0, "TrainingRuntime/torch")},
		"the runtime's before the policies": {job: failed(), rules: all, now: at(60), want: due(60, "TrainingRuntime/torch")},
		"the runtime's over the max":        {job: complete(), rules: cut, now: at(100), want: due(100, "LifecyclePolicy/m")},
		"a policy's, complete":              {job: complete(), rules: defaults, now: at(60), want: due(60, "LifecyclePolicy/s")},
		"a policy's, failed":                {job: failed(), rules: defaults, now: at(60), want: waiting(120, "LifecyclePolicy/f", time.Minute)},
		"a policy's, failed by deadline":    {job: running().Condition(trainer.ConditionFailed, yes, "DeadlineExceeded", finishedAt), rules: defaults, now: at(120), want: due(120, "LifecyclePolicy/f")},
		"a policy's for the other end":      {job: failed(), rules: Rules{Succeeded: defaults.Succeeded}, now: at(1e9)},
		"a policy's for the good end":       {job: complete(), rules: Rules{Failed: defaults.Failed}, now: at(1e9)},
		"a policy's, over the max":          {job: complete(), rules: Rules{Succeeded: cut.Succeeded, Max: most.Max}, now: at(100), want: due(100, "LifecyclePolicy/m")},
		"a policy's, failed, over the max":  {job: failed(), rules: Rules{Failed: cut.Failed, Max: most.Max}, now: at(100), want: due(100, "LifecyclePolicy/m")},
		"equal to the max: the default's":   {job: complete(), rules: Rules{Succeeded: limit(100, "LifecyclePolicy/s"), Max: most.Max}, now: at(100), want: due(100, "LifecyclePolicy/s")},
		"a max alone":                       {job: failed(), rules: most, now: at(40), want: waiting(100, "LifecyclePolicy/m", time.Minute)},

		"a copy of MultiKueue":               {job: complete().CopyOfMultiKueue().TTL("0"), rules: Rules{Runtime: runtime.Runtime, Succeeded: defaults.Succeeded}, now: at(1e9)},
		"a copy of MultiKueue, under a max":  {job: complete().CopyOfMultiKueue().TTL("0"), rules: all, now: at(99), want: waiting(100, "LifecyclePolicy/m", time.Second)},
		"a failed copy, opted out, at a max": {job: failed().CopyOfMultiKueue().TTL("none"), rules: all, now: at(100), want: due(100, "LifecyclePolicy/m")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Evaluate(tc.job.Obj(), tc.rules, tc.now), cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("Evaluate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefault(t *testing.T) {
	const by = "ClusterTrainingRuntime/torch"
	for value, want := range map[string]*Limit{
		"0": {By: by}, "60": {After: time.Minute, By: by}, "4294967295": {After: 4294967295 * time.Second, By: by},
		"4294967296": nil, "-1": nil, "": nil, "none": nil, "1h": nil, "1.5": nil, "60s": nil,
	} {
		got := Default(map[string]string{v1alpha1.AnnotationDefaultTTLSecondsAfterFinished: value}, by)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Default of %q (-want +got):\n%s", value, diff)
		}
	}
	// The annotation of a TrainJob says nothing on a runtime.
	for name, annotations := range map[string]map[string]string{"none": nil, "other": {v1alpha1.AnnotationTTLSecondsAfterFinished: "60"}} {
		if got := Default(annotations, by); got != nil {
			t.Errorf("%s: Default = %+v, want none", name, got)
		}
	}
}

func TestValidate(t *testing.T) {
	const path = "metadata.annotations[lifecycle.trainer.kubeflow.org/ttl-seconds-after-finished]: Invalid value: "
	whole := func(value string) []string {
		return []string{path + value + ": must be a whole number of seconds from 0 to 4294967295, or none"}
	}
	for name, tc := range map[string]struct {
		before, after *builder.TrainJobBuilder
		want          []string
	}{
		"created without":          {after: running()},
		"created with the least":   {after: running().TTL("0")},
		"created with the most":    {after: running().TTL("4294967295")},
		"created with none":        {after: running().TTL("none")},
		"created with too few":     {after: running().TTL("-1"), want: []string{path + `"-1": must be greater than or equal to 0, or none`}},
		"created with too many":    {after: running().TTL("4294967296"), want: []string{path + `"4294967296": must be less than or equal to 4294967295, or none`}},
		"created with a duration":  {after: running().TTL("1h"), want: whole(`"1h"`)},
		"created with nothing":     {after: running().TTL(""), want: whole(`""`)},
		"created with None":        {after: running().TTL("None"), want: whole(`"None"`)},
		"changed":                  {before: running().TTL("60"), after: running().TTL("0")},
		"changed when finished":    {before: complete().TTL("60"), after: complete().TTL("none")},
		"added":                    {before: running(), after: running().TTL("60")},
		"added wrong":              {before: running(), after: running().TTL("1h"), want: whole(`"1h"`)},
		"added empty":              {before: running(), after: running().TTL(""), want: whole(`""`)},
		"removed":                  {before: running().TTL("60"), after: running()},
		"wrong, stored":            {before: running().TTL("1h"), after: running().TTL("1h").Suspended()},
		"wrong, stored and empty":  {before: running().TTL(""), after: running().TTL("")},
		"wrong, stored, put right": {before: running().TTL("1h"), after: running().TTL("3600")},
		"wrong, stored, removed":   {before: running().TTL("1h"), after: running()},
		"wrong, changed":           {before: running().TTL("1h"), after: running().TTL("2h"), want: whole(`"2h"`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before *trainer.TrainJob
			if tc.before != nil {
				before = tc.before.Obj()
			}
			var got []string
			for _, err := range Validate(before, tc.after.Obj()) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovedSaysWhy(t *testing.T) {
	decision := due(3600, "LifecyclePolicy/m")
	decision.Finished = finishedAt.In(time.FixedZone("", 7200))
	const want = "finished at 2026-03-01T12:00:00Z, to stay 3600 s (LifecyclePolicy/m)"
	if got := removed(decision); got != want {
		t.Errorf("removed = %q, want %q", got, want)
	}
}

// Whatever is said: nothing goes that is not finished or is suspended, nothing stays longer than
// the maximum, and what is due stays due.
func FuzzEvaluate(f *testing.F) {
	f.Add("60", int64(-1), int64(-1), int64(-1), int64(-1), int64(0), uint8(1))
	f.Add("0", int64(0), int64(0), int64(0), int64(0), int64(-1), uint8(2))
	f.Add("none", int64(60), int64(60), int64(60), int64(100), int64(100), uint8(1))
	f.Add("4294967295", int64(1), int64(1), int64(1), int64(4294967295), int64(4294967295), uint8(1))
	f.Add("9223372036854775807", int64(1), int64(-1), int64(7), int64(8), int64(8), uint8(2))
	f.Add("", int64(-1), int64(-1), int64(-1), int64(5), int64(4), uint8(1|4))
	f.Add("0", int64(-1), int64(-1), int64(-1), int64(5), int64(9), uint8(1|8))
	f.Add("5", int64(5), int64(5), int64(5), int64(-1), int64(5), uint8(2|16))
	f.Add("5", int64(5), int64(5), int64(5), int64(1), int64(5), uint8(1|32))
	f.Fuzz(func(t *testing.T, annotation string, runtime, succeeded, failed, most, now int64, flags uint8) {
		b := running().TTL(annotation)
		has := func(flag uint8) bool { return flags&flag != 0 }
		for flag, apply := range map[uint8]func(){
			4: func() { b.Suspended() }, 8: func() { b.Deleting(finishedAt) }, 16: func() { b.CopyOfMultiKueue() }, 32: func() { b.ManagedBy("x") },
		} {
			if has(flag) {
				apply()
			}
		}
		if has(1) {
			b.Condition(trainer.ConditionComplete, metav1.ConditionTrue, "Done", finishedAt)
		}
		if has(2) {
			b.Condition(trainer.ConditionFailed, metav1.ConditionTrue, "Crashed", finishedAt)
		}
		said := func(seconds int64, by string) *Limit {
			if seconds < 0 {
				return nil
			}
			return limit(int(seconds%(v1alpha1.MaxSeconds+1)), by)
		}
		rules := Rules{Runtime: said(runtime, "r"), Succeeded: said(succeeded, "s"), Failed: said(failed, "f"), Max: said(most, "m"), OwnTTL: has(64)}
		instant := at(float64(now % (2 * v1alpha1.MaxSeconds)))
		job := b.Obj()
		got := Evaluate(job, rules, instant)
		leave := !has(1|2) || has(4|8|32|64)
		switch {
		case leave && got != Decision{}:
			t.Errorf("%+v of one to be left alone", got)
		case (got.State == None) != (got == Decision{}):
			t.Errorf("None and nothing else is empty: %+v", got)
		case (got.State == Waiting) != (got.RequeueAfter > 0):
			t.Errorf("it is looked at again while Waiting alone: %+v", got)
		case got.State != None && (got.After < 0 || !got.Expires.Equal(got.Finished.Add(got.After)) || got.By == ""):
			t.Errorf("does not hold together: %+v", got)
		}
		if rules.Max != nil && !leave {
			if got.State == None || got.After > rules.Max.After {
				t.Errorf("%+v is over the maximum %v", got, rules.Max.After)
			}
			if end := finishedAt.Add(rules.Max.After); !instant.Before(end) && got.State != Due {
				t.Errorf("%+v, not due after the maximum", got)
			}
		}
		if got.State == Waiting && Evaluate(job, rules, got.Expires).State != Due {
			t.Errorf("not due at its own end: %+v", got)
		}
		if got.State == Due && (instant.Before(got.Expires) || Evaluate(job, rules, instant.Add(time.Hour)).State != Due) {
			t.Errorf("due too early, or no longer an hour later: %+v", got)
		}
	})
}
