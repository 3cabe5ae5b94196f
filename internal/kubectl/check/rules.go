package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Audit is what was found of the stored runtimes of a kind, by [NAMESPACE/]NAME: what the rules say of
// each, "" where it breaks none.
type Audit map[string]string

// add looks at one runtime. Of one that comes twice the later counts.
func (a Audit) add(runtime *unstructured.Unstructured) {
	spec, _ := runtime.Object["spec"].(map[string]any)
	errs := append(guard.Clocks(nil, spec), guard.Defaults(nil, runtime.GetAnnotations())...)
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	name := runtime.GetName()
	if runtime.GetNamespace() != "" {
		name = runtime.GetNamespace() + "/" + name
	}
	a[name] = strings.Join(texts, "; ")
}

// runtimeKinds are the kinds of runtimes.
var runtimeKinds = []string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind}

// runtimes judges the stored runtimes.
func runtimes(facts *Facts) []Item {
	const check = "runtimes"
	var items []Item
	var counts []string
	for _, kind := range runtimeKinds {
		seen, looked := facts.Runtimes[kind]
		switch {
		case !looked || seen.Missing:
			continue
		case seen.Unread != "":
			items = append(items, Item{check, Unknown, kind + "s are not known: " + seen.Unread, ""})
			continue
		}
		counts = append(counts, plural(len(seen.Value), kind))
		for _, name := range slices.Sorted(maps.Keys(seen.Value)) {
			if broken := seen.Value[name]; broken != "" {
				items = append(items, Item{check, Warning, fmt.Sprintf("%s/%s: %s", kind, name, broken), "correct it: " + edit(kind, name)})
			}
		}
	}
	if len(items) == 0 && len(counts) > 0 {
		items = append(items, Item{Check: check, Level: OK, Finding: strings.Join(counts, " and ") + ", none with a clock of its own or a default that is none"})
	}
	return items
}

// edit is the command that edits a runtime.
func edit(kind, name string) string {
	in := ""
	if namespace, rest, found := strings.Cut(name, "/"); found {
		in, name = " --namespace "+namespace, rest
	}
	return fmt.Sprintf("kubectl%s edit %s %s", in, strings.ToLower(kind), name)
}

// mostNames is how many namespaces are named.
const mostNames = 5

// policies judges the LifecyclePolicies.
func policies(facts *Facts) []Item {
	const check = "policies"
	switch {
	case facts.Policies.Missing:
		return nil
	case facts.Policies.Unread != "":
		return []Item{{check, Unknown, "not known: " + facts.Policies.Unread, ""}}
	case len(facts.Policies.Value) == 0:
		return []Item{{Check: check, Level: OK, Finding: "there are none: what TrainJobs and runtimes say counts"}}
	case !isInstalled(facts) && facts.Mutating.Unread == "" && facts.Validating.Unread == "":
		return []Item{{check, Warning, plural(len(facts.Policies.Value), "LifecyclePolicy") + " in the cluster: without Signalbox they mean nothing", ""}}
	}
	var items []Item
	for i := range facts.Policies.Value {
		items = append(items, onePolicy(facts, &facts.Policies.Value[i]))
	}
	return items
}

// onePolicy judges one policy.
func onePolicy(facts *Facts, one *v1alpha1.LifecyclePolicy) Item {
	item := Item{Check: "policies", Level: OK}
	about := v1alpha1.LifecyclePolicyKind + "/" + one.Name
	change := "kubectl edit lifecyclepolicy " + one.Name
	if errs := policy.Validate(one); len(errs) > 0 {
		item.Level, item.Finding, item.Todo = Fault, about+" selects nothing: "+errs.ToAggregate().Error(), "correct it: "+change
		return item
	}
	if !facts.Namespaces.There() {
		item.Level, item.Finding = Unknown, about+": which namespaces it selects is not known: "+facts.Namespaces.Unread
		if one.Status.MatchingNamespaces != nil && one.Status.ObservedGeneration == one.Generation {
			item.Level, item.Finding = OK, fmt.Sprintf("%s selects %s, as its status tells", about, plural(int(*one.Status.MatchingNamespaces), "namespace"))
		}
		return item
	}
	var names, unasked []string
	for _, name := range slices.Sorted(maps.Keys(facts.Namespaces.Value)) {
		set := labels.Set(facts.Namespaces.Value[name])
		if !policy.Selects(one.Spec.NamespaceSelector, set) {
			continue
		}
		names = append(names, name)
		if name != metav1.NamespaceSystem && name != facts.Namespace && !asked(facts, set) {
			unasked = append(unasked, name)
		}
	}
	switch {
	case len(names) == 0:
		item.Level, item.Finding, item.Todo = Warning, about+" selects none of "+plural(len(facts.Namespaces.Value), "namespace"), "label the namespaces that it is for, or correct it: "+change
		return item
	case len(names) == len(facts.Namespaces.Value):
		item.Finding = fmt.Sprintf("%s selects all %s", about, plural(len(names), "namespace"))
	default:
		item.Finding = fmt.Sprintf("%s selects %d of %s: %s", about, len(names), plural(len(facts.Namespaces.Value), "namespace"), some(names, mostNames))
	}
	if len(unasked) > 0 {
		item.Level = Warning
		item.Finding += fmt.Sprintf("; its limits mean nothing in %s, about which the webhook is not asked", some(unasked, mostNames))
		item.Todo = "see webhook.excludedNamespaces and webhook.namespaceSelector of the chart"
	}
	return item
}

// asked tells whether the webhook of TrainJobs is asked about a namespace with these labels; true
// where that is not known.
func asked(facts *Facts, set labels.Set) bool {
	hook, found := hook(facts, mutating, "trainjob")
	return !found || policy.Selects(hook.NamespaceSelector, set)
}
