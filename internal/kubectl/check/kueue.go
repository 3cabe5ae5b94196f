package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
)

// theKueue judges whether Kueue is there, and whether Signalbox answers it.
func theKueue(facts *Facts) []Item {
	const check = "Kueue"
	state, versions := look(facts, ofKueue)
	switch state {
	case dark:
		return []Item{{check, Unknown, "not known: " + facts.Served.Unread, ""}}
	case absent:
		return []Item{{Check: check, Level: OK, Finding: "not installed, and not needed"}}
	}
	serves := "serves " + orNone(versions)
	if !isInstalled(facts) {
		return []Item{{Check: check, Level: OK, Finding: serves}}
	}
	const harm = "Kueue stops a TrainJob when its runtime is edited, and queues it anew"
	hook, found := hook(facts, mutating, "workload")
	if !found {
		return []Item{{check, Warning, serves + "; it is not shown what sealed TrainJobs run on: " + harm, upgrade(facts, "kueue.showSnapshots=true")}}
	}
	if state == other || !slices.ContainsFunc(versions, func(v string) bool { return asks(&hook, v) }) {
		return []Item{{check, Warning, serves + ", of which this Signalbox knows none: " + harm, "upgrade Signalbox"}}
	}
	user := accountIn(hook)
	switch {
	case !facts.Kueues.There():
		return []Item{{check, Unknown, fmt.Sprintf("%s; whether it acts as %s is not known: %s", serves, user, facts.Kueues.Unread), ""}}
	case len(facts.Kueues.Value) == 0:
		return []Item{{check, Warning, fmt.Sprintf("%s; no Deployment looks like Kueue's, so that it may act as somebody else than %s", serves, user),
			"find out whether that is its service account, and set kueue.serviceAccount of the chart if not"}}
	}
	users := accounts(facts.Kueues.Value)
	if !slices.Contains(users, user) {
		return []Item{{check, Fault, fmt.Sprintf("it acts as %s, and Signalbox takes it for %s: %s", strings.Join(users, ", "), user, harm),
			upgrade(facts, "kueue.serviceAccount="+short(users[0]))}}
	}
	return []Item{{Check: check, Level: OK, Finding: fmt.Sprintf("%s, and acts as %s, as Signalbox knows", serves, user)}}
}

// asks tells whether a webhook is asked about objects of this version.
func asks(hook *admissionregistrationv1.MutatingWebhook, version string) bool {
	return slices.ContainsFunc(hook.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.APIVersions, version) || slices.Contains(rule.APIVersions, "*")
	})
}

// chartOfKueue is what Kueue's chart says of itself in a label, where every name can be another.
var chartOfKueue = regexp.MustCompile(`^kueue-v?[0-9]`)

// isKueue tells whether a Deployment is that of Kueue's controller, as Signalbox's chart does.
func isKueue(deployment *appsv1.Deployment) bool {
	labels := deployment.Labels
	return labels["control-plane"] == "controller-manager" &&
		(labels["app.kubernetes.io/name"] == "kueue" || chartOfKueue.MatchString(labels["helm.sh/chart"]))
}
