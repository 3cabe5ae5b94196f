package check

import (
	"cmp"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// theWebhook judges whether anything answers the API server.
func theWebhook(facts *Facts) []Item {
	const check = "webhook"
	namespace, name, found := service(facts)
	if !found {
		return []Item{{check, Unknown, "called at " + target(facts) + ", not by a Service: whether it answers cannot be seen from here", "look at the requests that it refuses or lets pass"}}
	}
	todo := fmt.Sprintf("look at its pods: kubectl --namespace %s get pods", namespace)
	switch {
	case facts.Answer.Tried && facts.Answer.Failure == "":
		// Something has just answered, whatever the slices say.
	case facts.Slices.Unread != "" && !facts.Answer.Tried:
		return []Item{{check, Unknown, "whether it is ready is not known: " + cmp.Or(facts.Answer.Untold, facts.Slices.Unread), ""}}
	case facts.Slices.There() && ready(facts.Slices.Value) == 0:
		return []Item{{check, Fault, fmt.Sprintf("no pod of %s is ready: %s", name, outage(facts)), todo}}
	case facts.Answer.Tried:
		return []Item{{check, Fault, fmt.Sprintf("the API server does not reach it: %s: %s", facts.Answer.Failure, outage(facts)),
			"see what lies between the API server and port 9443 of its pods: a network policy, a firewall; and " + todo}}
	case facts.Answer.Untold != "":
		return []Item{{check, Unknown, fmt.Sprintf("%s ready; whether the API server reaches it is not known: %s", plural(ready(facts.Slices.Value), "replica"), facts.Answer.Untold), ""}}
	}
	finding := "the API server reaches it"
	if !facts.Answer.Tried {
		finding = plural(ready(facts.Slices.Value), "replica") + " ready"
	}
	if facts.Webhook.There() {
		has, wants := facts.Webhook.Value.Status.ReadyReplicas, ptr.Deref(facts.Webhook.Value.Spec.Replicas, 1)
		if has < wants {
			return []Item{{check, Warning, fmt.Sprintf("%s; %d of %d replicas ready", finding, has, wants), todo}}
		}
		if facts.Answer.Tried {
			finding += fmt.Sprintf("; %d of %d replicas ready", has, wants)
		}
	}
	return []Item{{Check: check, Level: OK, Finding: finding}}
}

// ready returns how many pods of the slices are ready. One that does not say counts, as it does for the
// API server; one with addresses of both families, and so in two slices, counts once.
func ready(slices []discoveryv1.EndpointSlice) int {
	found := map[string]bool{}
	for _, slice := range slices {
		for _, endpoint := range slice.Endpoints {
			if !ptr.Deref(endpoint.Conditions.Ready, true) || len(endpoint.Addresses) == 0 {
				continue
			}
			pod := endpoint.Addresses[0]
			if endpoint.TargetRef != nil {
				pod = endpoint.TargetRef.Name
			}
			found[pod] = true
		}
	}
	return len(found)
}

// outage says what becomes of what needs the webhook while it is away.
func outage(facts *Facts) string {
	hook, found := hook(facts, mutating, "trainjob")
	if found && ptr.Deref(hook.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Ignore {
		return "TrainJobs start without stamp, seal and limits"
	}
	return "TrainJobs cannot be created, suspended or resumed"
}

// versions judges whether the parts are of one version, and the CRDs, too.
func versions(facts *Facts) []Item {
	const label = "app.kubernetes.io/version"
	parts := map[string][]string{}
	var order []string
	add := func(part string, labels map[string]string) {
		version := labels[label]
		if version == "" {
			return
		}
		if parts[version] == nil {
			order = append(order, version)
		}
		parts[version] = append(parts[version], part)
	}
	add("webhook", labelsOf(facts.Webhook))
	add("reconciler", labelsOf(facts.Reconciler))
	add("webhook configurations", labelsOf(facts.Mutating))
	for _, d := range ofOwn {
		name, _, _ := strings.Cut(d.Name, ".")
		add("CRD "+name, labelsOf(facts.CRDs[d.Name]))
	}
	if unread := cmp.Or(facts.Webhook.Unread, facts.Reconciler.Unread); unread != "" {
		return []Item{{"version", Unknown, "the versions of its parts, and what is switched off, are not known: " + unread, ""}}
	}
	switch len(order) {
	case 0:
		return nil
	case 1:
		return []Item{{Check: "version", Level: OK, Finding: order[0]}}
	}
	var texts []string
	for _, version := range order {
		texts = append(texts, fmt.Sprintf("%s (%s)", version, strings.Join(parts[version], ", ")))
	}
	return []Item{{"version", Warning, "the parts are of different versions: " + strings.Join(texts, ", "), upgrade(facts, "crds.install=true")}}
}

// switches are the flags of both programs that turn a feature off, and the value of the chart for each.
var switches = []struct{ flag, value, text string }{
	{"--snapshots=false", "snapshots.enabled", "TrainJobs run on what Trainer makes of their runtime"},
	{"--gate=false", "snapshots.gate", "JobSets start whatever they were built from"},
	{"--policies=false", "policies.enabled", "LifecyclePolicies mean nothing"},
	{"--ttl=false", "ttl.enabled", "finished TrainJobs are not removed"},
	{"--audit=false", "runtimes.guard", "runtimes may have clocks of their own"},
}

// features judges what is switched off, as the arguments of the programs say.
func features(facts *Facts) []Item {
	var items []Item
	for _, s := range switches {
		if has(facts.Webhook, s.flag) || has(facts.Reconciler, s.flag) {
			items = append(items, Item{"features", Warning, fmt.Sprintf("%s is off: %s", s.value, s.text), "if that is not meant: " + upgrade(facts, s.value+"=true")})
		}
	}
	return items
}

// has tells whether the pods of a Deployment are started with this argument.
func has(deployment Seen[*appsv1.Deployment], argument string) bool {
	_, found := value(deployment, argument)
	return found
}

// value returns what follows an argument that starts like this.
func value(deployment Seen[*appsv1.Deployment], prefix string) (string, bool) {
	if !deployment.There() {
		return "", false
	}
	for _, container := range deployment.Value.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			if rest, found := strings.CutPrefix(arg, prefix); found {
				return rest, true
			}
		}
	}
	return "", false
}
