package check

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// theTrainer judges what is there of Trainer, and what it can do.
func theTrainer(facts *Facts) []Item {
	const check = "Trainer"
	if items := lacking(facts, check, ofTrainer, getTrainer); len(items) > 0 {
		return items
	}
	crd := facts.CRDs[trainer.CRDName]
	if !crd.There() {
		return append([]Item{{check, Unknown, "installed; what it can do is not known: " + crd.Unread, ""}}, controller(facts)...)
	}
	can := trainer.Detect(crd.Value)
	finding := ""
	switch {
	case can.RuntimeSnapshot && can.ActiveDeadline:
		finding = "2.3 or later: it enforces spec.activeDeadlineSeconds and keeps the runtime of a TrainJob"
	case can.ActiveDeadline:
		finding = "2.2: it enforces spec.activeDeadlineSeconds, and keeps no runtimes: a TrainJob that was suspended goes on with the runtime as it is then"
	default:
		finding = "2.0 or 2.1: deadlines are by annotation or policy, and it keeps no runtimes: a TrainJob that was suspended goes on with the runtime as it is then"
	}
	if can.TTL || can.RunPolicy {
		finding += "; limits that its own fields set are its own business"
	}
	return append([]Item{{Check: check, Level: OK, Finding: finding}}, controller(facts)...)
}

// controller judges the Deployment of Trainer, and whether Signalbox knows who it acts as.
func controller(facts *Facts) []Item {
	const check = "Trainer"
	switch {
	case facts.Trainers.Unread != "":
		return []Item{{check, Unknown, "whether its controller runs, and who it acts as, is not known: " + facts.Trainers.Unread, ""}}
	case len(facts.Trainers.Value) == 0:
		return []Item{{check, Warning, "no Deployment looks like Trainer's: TrainJobs do not start if nothing else runs its controller",
			"find out what runs it, and see that trainer.serviceAccount of the chart is who it acts as"}}
	}
	var items []Item
	for _, deployment := range facts.Trainers.Value {
		if deployment.Status.ReadyReplicas == 0 && ptr.Deref(deployment.Spec.Replicas, 1) > 0 {
			name := deployment.Namespace + "/" + deployment.Name
			items = append(items, Item{check, Fault, fmt.Sprintf("no pod of %s is ready: TrainJobs do not start, and do not say that they have ended", name),
				"look at its pods: kubectl --namespace " + deployment.Namespace + " get pods"})
		}
	}
	users := accounts(facts.Trainers.Value)
	hook, found := hook(facts, mutating, "trainjob-status")
	user := accountIn(hook)
	switch {
	case !found:
		return items
	case user == "":
		items = append(items, Item{check, Warning, "what it ends before the deadline stays ended", upgrade(facts, "trainer.correctEarlyDeadlines=true")})
	case !slices.Contains(users, user):
		items = append(items, Item{check, Fault, fmt.Sprintf("it acts as %s, and Signalbox takes it for %s: what it ends before the deadline stays ended", strings.Join(users, ", "), user),
			upgrade(facts, "trainer.serviceAccount="+short(users[0]))})
	}
	return items
}

// isTrainer tells whether a Deployment is that of Trainer's controller, as the chart does.
func isTrainer(deployment *appsv1.Deployment) bool {
	labels := deployment.Labels
	return labels["app.kubernetes.io/part-of"] == "kubeflow" && labels["app.kubernetes.io/component"] == "manager" &&
		strings.HasSuffix(deployment.Name, "-controller-manager") &&
		strings.Contains(deployment.Name+" "+labels["app.kubernetes.io/name"], "trainer")
}

// account returns the user name of the pods of a Deployment.
func account(deployment *appsv1.Deployment) string {
	name := deployment.Spec.Template.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	return accountPrefix + deployment.Namespace + ":" + name
}

// accounts returns the user names of the pods of the Deployments.
func accounts(deployments []appsv1.Deployment) []string {
	var users []string
	for i := range deployments {
		if user := account(&deployments[i]); !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	return users
}

const accountPrefix = "system:serviceaccount:"

// short returns the user name of a service account as the chart takes it: NAMESPACE/NAME.
func short(user string) string {
	return strings.Replace(strings.TrimPrefix(user, accountPrefix), ":", "/", 1)
}
