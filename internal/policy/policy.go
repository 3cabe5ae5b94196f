// Package policy finds what the LifecyclePolicies of the cluster, and the defaults of a runtime,
// say about a TrainJob.
package policy

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Limit is a length of time, and the name of the policy that says so. The zero Limit is none: no
// policy says less than a second.
type Limit struct {
	After  time.Duration
	Policy string
}

// By names the policy as KIND/NAME.
func (l Limit) By() string { return name(l.Policy) }

// Rules are the strictest of each limit of some policies.
type Rules struct {
	// Default and Max are of the deadline of new TrainJobs.
	Default, Max Limit
	// Required is the name of a policy that requires a deadline; "" where none does.
	Required string
	// Succeeded, Failed and MaxTTL are of how long finished TrainJobs stay.
	Succeeded, Failed, MaxTTL Limit
}

// Strictest returns the rules for TrainJobs in a namespace with these labels, on a runtime, which
// is asked for only where a policy selects by it. Of equal limits it names the policy that comes
// first by its name. A policy with a selector that is not valid selects nothing, nor does one
// that selects by the runtime where nothing is known of that. The error is that of the runtime.
func Strictest(policies []v1alpha1.LifecyclePolicy, namespace labels.Set, runtime func() (trainer.RuntimeSettings, error)) (Rules, error) {
	var rules Rules
	for i := range policies {
		policy := &policies[i]
		if !Selects(policy.Spec.NamespaceSelector, namespace) {
			continue
		}
		if selector := policy.Spec.RuntimeSelector; selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			settings, err := runtime()
			if err != nil {
				return Rules{}, err
			}
			if settings.Name == "" || !Selects(selector, settings.Labels) {
				continue
			}
		}
		if deadline := policy.Spec.ActiveDeadline; deadline != nil {
			rules.Default = stricter(rules.Default, deadline.Default, policy.Name)
			rules.Max = stricter(rules.Max, deadline.Max, policy.Name)
			if deadline.Required && (rules.Required == "" || policy.Name < rules.Required) {
				rules.Required = policy.Name
			}
		}
		if ttl := policy.Spec.TTLAfterFinished; ttl != nil {
			rules.Succeeded = stricter(rules.Succeeded, ttl.Succeeded, policy.Name)
			rules.Failed = stricter(rules.Failed, ttl.Failed, policy.Name)
			rules.MaxTTL = stricter(rules.MaxTTL, ttl.Max, policy.Name)
		}
	}
	return rules, nil
}

// stricter returns the shorter of a limit and what another policy says.
func stricter(limit Limit, other *v1alpha1.Duration, policy string) Limit {
	if other == nil || other.Duration.Duration <= 0 {
		return limit
	}
	after := other.Duration.Duration
	if limit == (Limit{}) || after < limit.After || after == limit.After && policy < limit.Policy {
		return Limit{After: after, Policy: policy}
	}
	return limit
}

// Selects tells whether the selector, which is nil for all, matches the labels.
func Selects(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(set)
}

// Validate returns what is wrong with the selectors of a policy. The API server validates the
// rest.
func Validate(policy *v1alpha1.LifecyclePolicy) field.ErrorList {
	path := field.NewPath("spec")
	return append(validateSelector(path.Child("namespaceSelector"), policy.Spec.NamespaceSelector),
		validateSelector(path.Child("runtimeSelector"), policy.Spec.RuntimeSelector)...)
}

func validateSelector(path *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	if selector == nil {
		return nil
	}
	return validation.ValidateLabelSelector(selector, validation.LabelSelectorValidationOptions{}, path)
}

// What is decided of the deadline of a new TrainJob: values of the label decision of the metric.
const (
	// Own: it came with its deadline.
	Own = "own"
	// Defaulted: it got the default of its runtime or of a policy.
	Defaulted = "default"
	// Limited: it got the maximum of a policy, having no deadline, or a longer default.
	Limited = "max"
	// OptedOut: it wants no deadline, and no policy minds.
	OptedOut = "opt_out"
	// OverMax, NotNone and Missing: it is refused, for a deadline over the maximum of a policy,
	// for wanting none where a policy does mind, and for having none where one is required.
	OverMax = "refused_max"
	NotNone = "refused_none"
	Missing = "refused_required"
	// Unlimited: nobody says anything.
	Unlimited = "none"
)

// Decision is what Decide finds for a new TrainJob.
type Decision struct {
	// What is decided, one of the constants above.
	What string
	// By names, as KIND/NAME, the runtime or the policy that decided; "" where none did.
	By string
	// Deadline is what the TrainJob gets; zero where it keeps what it has.
	Deadline time.Duration
	// Refusal is why the TrainJob is refused; nil where it is not.
	Refusal *field.Error
}

var (
	specPath       = field.NewPath("spec", "activeDeadlineSeconds")
	annotationPath = field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationActiveDeadlineSeconds)
	runPolicyPath  = field.NewPath("spec", "runPolicy", "activeDeadlineSeconds")
)

// Decide finds the deadline of a new TrainJob: its own, else the default of its runtime, else
// that of a policy, and the maximum over all. To a copy that MultiKueue made, the maximum alone
// applies: the label that tells is one that anybody can set. The same goes for one with a
// deadline that Trainer itself looks after by a run policy, beside which the maximum stands. What
// is no deadline at all is left to the validation to refuse.
func Decide(job *trainer.TrainJob, runtime trainer.RuntimeSettings, rules Rules) Decision {
	own := job.OwnDeadline()
	alone := maxAlone(job) || runtime.OwnDeadline
	if own != nil && own.Seconds != nil {
		if decision := judge(runPolicyPath, *own.Seconds, *own.Seconds, rules.Max); decision.Refusal != nil {
			return decision
		}
	}
	text, annotated := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]
	switch {
	case job.Spec.ActiveDeadlineSeconds != nil:
		seconds := *job.Spec.ActiveDeadlineSeconds
		return judge(specPath, seconds, seconds, rules.Max)
	case annotated && text == v1alpha1.None:
		return optOut(alone, rules)
	case annotated:
		after, err := v1alpha1.ParseSeconds(text, v1alpha1.MinDeadlineSeconds)
		if err != nil {
			return Decision{What: Own}
		}
		return judge(annotationPath, int64(after/time.Second), text, rules.Max)
	}
	decision := fill(alone, runtime, rules)
	if decision.What == Unlimited && own != nil {
		decision.What = Own
	}
	return decision
}

// maxAlone tells whether neither defaults nor requirements are for the TrainJob.
func maxAlone(job *trainer.TrainJob) bool { return job.CopyOfMultiKueue() || job.OwnDeadline() != nil }

// AsksRuntime tells whether it can depend on the runtime whether Judge refuses the TrainJob.
func AsksRuntime(job *trainer.TrainJob, rules Rules) bool {
	text, annotated := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]
	return rules.Required != "" && !maxAlone(job) && job.Spec.ActiveDeadlineSeconds == nil && (!annotated || text == v1alpha1.None)
}

// Judge finds what was decided of a new TrainJob as it is about to be stored. Where it says that its
// deadline was given to it, that is who gave it and as what. One that has none where a maximum
// applies is refused: others have taken out what it was given.
func Judge(job *trainer.TrainJob, runtime trainer.RuntimeSettings, rules Rules) Decision {
	decision := Decide(job, runtime, rules)
	if decision.Deadline != 0 && rules.Max != (Limit{}) {
		return Decision{What: OverMax, By: rules.Max.By(), Refusal: field.Required(specPath, needed(rules.Max))}
	}
	by, given := job.Annotations[v1alpha1.AnnotationActiveDeadlineSource]
	if !given || decision.What != Own {
		return decision
	}
	seconds := strconv.FormatInt(int64(rules.Max.After/time.Second), 10)
	carried := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]
	if job.Spec.ActiveDeadlineSeconds != nil {
		carried = strconv.FormatInt(*job.Spec.ActiveDeadlineSeconds, 10)
	}
	if by == rules.Max.By() && carried == seconds {
		return Decision{What: Limited, By: by}
	}
	return Decision{What: Defaulted, By: by}
}

// judge decides on the deadline that a TrainJob came with.
func judge(path *field.Path, seconds int64, value any, most Limit) Decision {
	limit := int64(most.After / time.Second)
	if limit == 0 || seconds <= limit {
		return Decision{What: Own}
	}
	return Decision{What: OverMax, By: most.By(), Refusal: field.Invalid(path, value,
		fmt.Sprintf("must be less than or equal to %d (%s), the maximum of %s", limit, most.After, most.By()))}
}

// optOut decides on a TrainJob that wants no deadline.
func optOut(maxAlone bool, rules Rules) Decision {
	switch {
	case rules.Max != (Limit{}):
		return Decision{What: NotNone, By: rules.Max.By(), Refusal: field.Invalid(annotationPath, v1alpha1.None, needed(rules.Max))}
	case rules.Required != "" && !maxAlone:
		return Decision{What: NotNone, By: name(rules.Required), Refusal: field.Invalid(annotationPath, v1alpha1.None,
			"a deadline is needed: "+name(rules.Required)+" requires one")}
	}
	return Decision{What: OptedOut}
}

// needed says that there must be a deadline because of a maximum.
func needed(most Limit) string {
	return fmt.Sprintf("a deadline is needed: %s allows %d seconds (%s) at most", most.By(), int64(most.After/time.Second), most.After)
}

// fill decides on a TrainJob that says nothing of a deadline that Signalbox looks after.
func fill(maxAlone bool, runtime trainer.RuntimeSettings, rules Rules) Decision {
	decision := Decision{What: Unlimited}
	if !maxAlone {
		text, found := runtime.Annotations[v1alpha1.AnnotationDefaultActiveDeadlineSeconds]
		after, err := v1alpha1.ParseSeconds(text, v1alpha1.MinDeadlineSeconds)
		switch {
		case found && err == nil:
			decision = Decision{What: Defaulted, By: runtime.Name, Deadline: after}
		case rules.Default != (Limit{}):
			decision = Decision{What: Defaulted, By: rules.Default.By(), Deadline: rules.Default.After}
		case rules.Required != "":
			return Decision{What: Missing, By: name(rules.Required), Refusal: field.Required(specPath, hint(rules))}
		}
	}
	if most := rules.Max; most != (Limit{}) && (decision.Deadline == 0 || decision.Deadline > most.After) {
		return Decision{What: Limited, By: most.By(), Deadline: most.After}
	}
	return decision
}

// hint says how to meet the requirement of a deadline.
func hint(rules Rules) string {
	text := fmt.Sprintf("%s requires a deadline: set this field, or the annotation %s, to a number of seconds",
		name(rules.Required), v1alpha1.AnnotationActiveDeadlineSeconds)
	if most := rules.Max; most != (Limit{}) {
		text += fmt.Sprintf(" up to %d (%s), the maximum of %s", int64(most.After/time.Second), most.After, most.By())
	}
	return text
}

// name names a policy as KIND/NAME.
func name(policy string) string { return v1alpha1.LifecyclePolicyKind + "/" + policy }
