package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// anyPolicies makes some policies at random, a few of which select nothing.
func anyPolicies(random *rand.Rand, count int) []v1alpha1.LifecyclePolicy {
	after := func() time.Duration { return time.Duration(1+random.IntN(8)) * time.Second }
	policies := make([]v1alpha1.LifecyclePolicy, count)
	for i, name := range random.Perm(count) {
		b := builder.LifecyclePolicy(fmt.Sprint("policy-", name))
		for _, say := range []func(){
			func() { b.Default(after()) }, func() { b.Max(after()) }, func() { b.Required() },
			func() { b.Succeeded(after()) }, func() { b.Failed(after()) }, func() { b.MaxTTL(after()) },
			func() { b.Namespaces("team", fmt.Sprint(random.IntN(2))) },
			func() { b.Runtimes("gpu", fmt.Sprint(random.IntN(2))) },
		} {
			if random.IntN(3) == 0 {
				say()
			}
		}
		if random.IntN(12) == 0 {
			b.NamespaceSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Near"}}})
		}
		policies[i] = *b.Obj()
	}
	return policies
}

// anyJob makes a TrainJob with any kind of deadline, or none, near to what policies say.
func anyJob(random *rand.Rand) *trainer.TrainJob {
	b := builder.TrainJob("ns", "job")
	seconds := int64(random.IntN(10))
	switch random.IntN(6) {
	case 0:
		b.Deadline(seconds)
	case 1:
		b.DeadlineAnnotation(fmt.Sprint(seconds))
	case 2:
		b.DeadlineAnnotation(v1alpha1.None)
	}
	own := int64(random.IntN(10))
	switch random.IntN(6) {
	case 0:
		b.RunPolicy(&trainer.Setting{Seconds: &own}, nil)
	case 1:
		b.RunPolicy(&trainer.Setting{}, nil)
	case 2:
		b.RunPolicy(nil, &trainer.Setting{Seconds: &own})
	}
	if random.IntN(4) == 0 {
		b.CopyOfMultiKueue()
	}
	return b.Obj()
}

func anyRuntime(random *rand.Rand) trainer.RuntimeSettings {
	settings := trainer.RuntimeSettings{}
	if random.IntN(2) == 0 {
		settings = runtimeWith(fmt.Sprint(random.IntN(10)))
	}
	settings.OwnDeadline = random.IntN(6) == 0
	return settings
}

// ours is the deadline that a TrainJob ends up with and that Signalbox looks after; zero for
// none.
func ours(job *trainer.TrainJob, decision Decision) time.Duration {
	switch {
	case decision.Deadline != 0:
		return decision.Deadline
	case job.Spec.ActiveDeadlineSeconds != nil:
		return time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
	}
	after, _ := v1alpha1.ParseSeconds(job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds], v1alpha1.MinDeadlineSeconds)
	return after
}

// outcome is the deadline that ends the TrainJob: the shorter of ours and that of a run policy,
// where this can be read and is one; zero for none.
func outcome(job *trainer.TrainJob, decision Decision) time.Duration {
	after := ours(job, decision)
	if own := job.OwnDeadline(); own != nil && own.Seconds != nil && *own.Seconds > 0 {
		seconds := time.Duration(*own.Seconds) * time.Second
		if after == 0 || seconds < after {
			return seconds
		}
	}
	return after
}

// Whatever policies there are: no TrainJob gets past a maximum, with a run policy or without one;
// the order of the policies does not matter, and one more policy makes nothing laxer.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, uint8(seed%7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, count uint8) {
		random := rand.New(rand.NewPCG(seed, 0))
		policies := anyPolicies(random, int(count%16))
		job, runtime := anyJob(random), anyRuntime(random)
		namespaceLabels, torch := labels.Set{"team": "0"}, torchWith(labels.Set{"gpu": "0"})
		rules := strictest(t, policies, namespaceLabels, torch)
		checkStrictest(t, policies, rules)
		decision := Decide(job, runtime, rules)
		checkDecision(t, job, rules, decision)

		shuffled := slices.Clone(policies)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(rules, strictest(t, shuffled, namespaceLabels, torch)); diff != "" {
			t.Errorf("the order matters (-one +other):\n%s", diff)
		}

		more := strictest(t, append(shuffled, anyPolicies(random, 1)...), namespaceLabels, torch)
		for name, limits := range map[string][2]Limit{
			"default": {rules.Default, more.Default}, "max": {rules.Max, more.Max}, "succeeded": {rules.Succeeded, more.Succeeded},
			"failed": {rules.Failed, more.Failed}, "max of the TTL": {rules.MaxTTL, more.MaxTTL},
		} {
			if was, is := limits[0], limits[1]; was != (Limit{}) && (is == (Limit{}) || is.After > was.After) {
				t.Errorf("one more policy makes %s %+v, from %+v", name, is, was)
			}
		}
		if rules.Required != "" && more.Required == "" {
			t.Error("one more policy lifts the requirement")
		}
		stricter := Decide(job, runtime, more)
		checkDecision(t, job, more, stricter)
		if decision.Refusal == nil && stricter.Refusal == nil {
			if was, is := outcome(job, decision), outcome(job, stricter); was != 0 && (is == 0 || is > was) {
				t.Errorf("one more policy makes the deadline %v, from %v", is, was)
			}
		}
		if decision.What == OverMax && stricter.What != OverMax {
			t.Errorf("refused for the maximum, then with one more policy %s", stricter.What)
		}
	})
}

// checkStrictest compares the rules with each policy that selects.
func checkStrictest(t *testing.T, policies []v1alpha1.LifecyclePolicy, rules Rules) {
	t.Helper()
	for i := range policies {
		policy := &policies[i]
		spec := policy.Spec
		if len(Validate(policy)) > 0 || spec.NamespaceSelector != nil && spec.NamespaceSelector.MatchLabels["team"] != "0" ||
			spec.RuntimeSelector != nil && spec.RuntimeSelector.MatchLabels["gpu"] != "0" {
			for _, limit := range []Limit{rules.Default, rules.Max, rules.Succeeded, rules.Failed, rules.MaxTTL, {Policy: rules.Required}} {
				if limit.Policy == policy.Name {
					t.Errorf("%s counts and selects nothing", policy.Name)
				}
			}
			continue
		}
		if deadline := spec.ActiveDeadline; deadline != nil && deadline.Max != nil && (rules.Max == (Limit{}) || rules.Max.After > deadline.Max.Duration.Duration) {
			t.Errorf("the max is %+v, laxer than that of %s", rules.Max, policy.Name)
		}
	}
}

// checkDecision checks what holds for any decision.
func checkDecision(t *testing.T, job *trainer.TrainJob, rules Rules, decision Decision) {
	t.Helper()
	refused := decision.What == OverMax || decision.What == NotNone || decision.What == Missing
	given := decision.What == Defaulted || decision.What == Limited
	if refused != (decision.Refusal != nil) || given != (decision.Deadline != 0) || (refused || given) != (decision.By != "") {
		t.Errorf("does not hold together: %+v", decision)
	}
	if refused || rules.Max == (Limit{}) {
		return
	}
	// What is no deadline at all, the validation refuses.
	if spec, text := job.Spec.ActiveDeadlineSeconds, job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]; spec != nil && *spec == 0 || spec == nil && text == "0" {
		return
	}
	// That of a run policy is no substitute: whatever Trainer makes of it, the maximum holds.
	if got := ours(job, decision); got == 0 || got > rules.Max.After {
		t.Errorf("%s gives %v under the maximum %v", decision.What, got, rules.Max.After)
	}
	if own := job.OwnDeadline(); own != nil && given && decision.What != Limited {
		t.Errorf("%s is given beside a run policy, want the maximum or nothing", decision.What)
	}
	if own := job.OwnDeadline(); own != nil && own.Seconds != nil && time.Duration(*own.Seconds)*time.Second > rules.Max.After {
		t.Errorf("%s lets a run policy of %d s pass under the maximum %v", decision.What, *own.Seconds, rules.Max.After)
	}
}
