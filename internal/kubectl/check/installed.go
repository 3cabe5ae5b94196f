package check

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

// The two kinds of webhooks.
const (
	mutating   = "mutating"
	validating = "validating"
)

// expected are the webhooks that the chart registers by default, and what is lost without one.
// Optional ones are left out by a value of the chart, which is named.
var expected = []struct{ kind, name, lost, value string }{
	{mutating, "trainjob", "TrainJobs start without stamp, seal and default deadline", ""},
	{mutating, "trainjob-status", "the end of a TrainJob may get lost", ""},
	{mutating, "runtime", "", ""},
	{mutating, "workload", "", ""},
	{validating, "trainjob", "deadlines are neither checked nor kept", ""},
	{validating, "jobset", "JobSets start whatever they were built from, and for finished TrainJobs", ""},
	{validating, "runtime", "runtimes may have clocks of their own, and be broken or deleted while in use", "runtimes.guard=true"},
}

// isInstalled tells whether Signalbox is: by its webhook configurations. CRDs, Lease and annotations
// stay when it is uninstalled.
func isInstalled(facts *Facts) bool { return facts.Mutating.There() || facts.Validating.There() }

// mayBe tells whether there is reason to look at the parts of Signalbox: also where its webhook
// configurations may not be read, and one of its Deployments is there.
func mayBe(facts *Facts) bool {
	known := facts.Mutating.Unread == "" && facts.Validating.Unread == ""
	return isInstalled(facts) || !known && (facts.Webhook.There() || facts.Reconciler.There())
}

// theSignalbox judges whether Signalbox is installed. Where it is not, nothing else of it need be
// looked at.
func theSignalbox(facts *Facts) []Item {
	const check = "Signalbox"
	switch {
	case isInstalled(facts):
		return append(webhooks(facts), features(facts)...)
	case facts.Mutating.Unread != "" || facts.Validating.Unread != "":
		return []Item{{check, Unknown, "whether it is installed is not known: " + cmp.Or(facts.Mutating.Unread, facts.Validating.Unread), ""}}
	case facts.Webhook.There() || facts.Reconciler.There():
		return []Item{{check, Fault, "its webhook configurations are gone, so that it is asked nothing: TrainJobs start without stamp, seal and limits",
			upgrade(facts, "")}}
	}
	finding := "not installed: deadlines are what Trainer makes of them"
	for _, d := range ofOwn {
		if state, _ := look(facts, d); state == installed {
			finding = "not installed; CRDs of an earlier installation are there: deadlines are what Trainer makes of them"
		}
	}
	return []Item{{check, Fault, finding, fmt.Sprintf("install it: helm install signalbox charts/signalbox --namespace %s --create-namespace", facts.Namespace)}}
}

// hookName is the name of a webhook with the suffix that all have.
func hookName(name string) string { return name + "." + v1alpha1.Group }

// hook returns a webhook by the beginning of its name; a validating one as if it were mutating.
func hook(facts *Facts, kind, name string) (admissionregistrationv1.MutatingWebhook, bool) {
	for _, hook := range hooks(facts, kind) {
		if hook.Name == hookName(name) {
			return hook, true
		}
	}
	return admissionregistrationv1.MutatingWebhook{}, false
}

// hooks returns the webhooks of a kind. Of a validating one only what both kinds have is returned.
func hooks(facts *Facts, kind string) []admissionregistrationv1.MutatingWebhook {
	if kind == mutating {
		if !facts.Mutating.There() {
			return nil
		}
		return facts.Mutating.Value.Webhooks
	}
	if !facts.Validating.There() {
		return nil
	}
	var found []admissionregistrationv1.MutatingWebhook
	for _, hook := range facts.Validating.Value.Webhooks {
		found = append(found, admissionregistrationv1.MutatingWebhook{
			Name: hook.Name, ClientConfig: hook.ClientConfig, FailurePolicy: hook.FailurePolicy,
			NamespaceSelector: hook.NamespaceSelector, MatchConditions: hook.MatchConditions, Rules: hook.Rules,
		})
	}
	return found
}

// all returns the webhooks of both kinds.
func all(facts *Facts) []admissionregistrationv1.MutatingWebhook {
	return slices.Concat(hooks(facts, mutating), hooks(facts, validating))
}

// serviceAccountName finds the user name of a service account in a condition.
var serviceAccountName = regexp.MustCompile(`system:serviceaccount:[a-z0-9.-]+:[a-z0-9.-]+`)

// accountIn returns the user name of the service account that the conditions of a webhook name; "" for
// none.
func accountIn(hook admissionregistrationv1.MutatingWebhook) string {
	for _, condition := range hook.MatchConditions {
		if user := serviceAccountName.FindString(condition.Expression); user != "" {
			return user
		}
	}
	return ""
}

// webhooks judges what is registered with the API server.
func webhooks(facts *Facts) []Item {
	const check = "webhooks"
	var items []Item
	unread := map[string]string{mutating: facts.Mutating.Unread, validating: facts.Validating.Unread}
	for _, kind := range []string{mutating, validating} {
		if unread[kind] != "" {
			items = append(items, Item{check, Unknown, "the " + kind + " ones are not known: " + unread[kind], ""})
		}
	}
	var open, bare []string
	for _, e := range expected {
		if unread[e.kind] != "" {
			continue
		}
		hook, found := hook(facts, e.kind, e.name)
		switch {
		case !found && e.value != "":
			items = append(items, Item{check, Warning, fmt.Sprintf("%s (%s) is not registered: %s", e.name, e.kind, e.lost), upgrade(facts, e.value)})
		case !found && e.lost != "":
			items = append(items, Item{check, Fault, fmt.Sprintf("%s (%s) is not registered: %s", e.name, e.kind, e.lost), upgrade(facts, "")})
		case !found:
		default:
			if ptr.Deref(hook.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Ignore && e.name != "runtime" && e.name != "workload" {
				open = append(open, fmt.Sprintf("%s (%s)", e.name, e.kind))
			}
			if len(hook.ClientConfig.CABundle) == 0 {
				bare = append(bare, fmt.Sprintf("%s (%s)", e.name, e.kind))
			}
		}
	}
	if len(bare) > 0 {
		items = append(items, Item{check, Fault, "no CA is given for " + strings.Join(bare, ", ") + ": the API server cannot verify what answers, and calls nothing",
			"see that a pod of the webhook is ready, which writes its own CA, or that what injects another one works"})
	}
	if len(open) > 0 {
		items = append(items, Item{check, Warning, "failurePolicy is Ignore for " + strings.Join(open, ", ") + ": what comes while no webhook answers passes unasked",
			upgrade(facts, "webhook.failurePolicy=Fail")})
	}
	if len(items) == 0 {
		items = append(items, Item{Check: check, Level: OK, Finding: fmt.Sprintf("%s registered, called at %s", plural(len(all(facts)), "webhook"), target(facts))})
	}
	return items
}

// service returns namespace and name of the Service that the API server calls, which is that of the
// chart where the configurations may not be read; false where it calls a URL.
func service(facts *Facts) (namespace, name string, found bool) {
	for _, hook := range all(facts) {
		if s := hook.ClientConfig.Service; s != nil {
			return s.Namespace, s.Name, true
		}
	}
	return facts.Namespace, webhookName, !isInstalled(facts)
}

// target is where the API server calls the webhooks.
func target(facts *Facts) string {
	if namespace, name, found := service(facts); found {
		return name + "." + namespace + ".svc"
	}
	for _, hook := range all(facts) {
		if url := ptr.Deref(hook.ClientConfig.URL, ""); url != "" {
			_, rest, _ := strings.Cut(url, "://")
			host, _, _ := strings.Cut(rest, "/")
			return host
		}
	}
	return "nowhere"
}

// upgrade is the command that sets a value of the chart, or with "" the former values once more.
func upgrade(facts *Facts, value string) string {
	set := ""
	if value != "" {
		set = " --set " + value
	}
	release := "signalbox"
	for _, labels := range []map[string]string{labelsOf(facts.Mutating), labelsOf(facts.Validating)} {
		release = cmp.Or(labels["app.kubernetes.io/instance"], release)
	}
	return fmt.Sprintf("helm upgrade %s charts/signalbox --namespace %s --reset-then-reuse-values%s", release, facts.Namespace, set)
}

// labelsOf returns the labels of an object; nil where it was not read.
func labelsOf[T metav1.Object](seen Seen[T]) map[string]string {
	if !seen.There() {
		return nil
	}
	return seen.Value.GetLabels()
}
