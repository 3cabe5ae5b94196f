package check

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

// tolerance is how far clocks may differ without a word. It is more than a request takes.
const tolerance = 5 * time.Second

// theClock judges the difference between the clock of this machine and that of the API server.
func theClock(facts *Facts) []Item {
	const check = "clock"
	switch skew := facts.Skew.Value; {
	case facts.Skew.Unread != "":
		return []Item{{check, Unknown, "the time of the API server is not known: " + facts.Skew.Unread, ""}}
	case skew > tolerance:
		return []Item{{check, Warning, fmt.Sprintf("this machine's is %s behind the API server's", span(skew)), "set it right; what kubectl signalbox tells is by the API server's"}}
	case skew < -tolerance:
		return []Item{{check, Warning, fmt.Sprintf("this machine's is %s ahead of the API server's", span(-skew)), "set it right; what kubectl signalbox tells is by the API server's"}}
	}
	return []Item{{Check: check, Level: OK, Finding: "this machine and the API server agree"}}
}

// stale tells whether a Lease looks as if nobody renewed it any more at the instant now.
func stale(lease *coordinationv1.Lease, now time.Time) bool {
	return now.Sub(renewedAt(lease)) >= leaseDuration(lease)
}

// leaseDuration is how long nobody else takes the Lease.
func leaseDuration(lease *coordinationv1.Lease) time.Duration {
	return time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second
}

// reconciler judges whether a replica acts.
func reconciler(facts *Facts) []Item {
	const check = "reconciler"
	const harm = "deadlines are enforced by Trainer alone, finished TrainJobs stay, and TrainJobs may wait for their snapshot"
	todo := fmt.Sprintf("look at its pods and their log: kubectl --namespace %s logs --selector app.kubernetes.io/component=reconciler --tail=50", facts.Namespace)
	if facts.Lease.Unread != "" {
		return append([]Item{{check, Unknown, "whether a replica acts is not known: " + facts.Lease.Unread, ""}}, fewer(facts, todo)...)
	}
	if facts.Lease.Missing {
		return []Item{{check, Fault, fmt.Sprintf("none has ever acted: there is no Lease %s/%s: %s", facts.Namespace, reconcilerName, harm), todo}}
	}
	lease := facts.Lease.Value
	age, renewed := facts.Now.Sub(renewedAt(lease)), false
	if later := facts.Later; later != nil {
		renewed = !renewedAt(later).Equal(renewedAt(lease))
		if lease = later; renewed {
			age = facts.LaterAt.Sub(renewedAt(later))
		}
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	switch {
	case holder == "":
		return []Item{{check, Fault, "none acts: the last has given its Lease back: " + harm, todo}}
	case renewed && age >= leaseDuration(lease):
		// What is just renewed is not that old: a Lease that another replica has taken is not, either.
		return append([]Item{{check, Warning, fmt.Sprintf("%s acts, and its clock is about %s behind the API server's: deadlines end as much later", holder, span(age)), "set the clock of its node right"}}, fewer(facts, todo)...)
	case age >= leaseDuration(lease):
		return []Item{{check, Fault, fmt.Sprintf("none acts since %s (%s): %s", stamp(renewedAt(lease)), span(age), harm), todo}}
	case age < -tolerance:
		return append([]Item{{check, Warning, fmt.Sprintf("%s acts, and its clock is at least %s ahead of the API server's: deadlines end as much earlier", holder, span(-age)), "set the clock of its node right"}}, fewer(facts, todo)...)
	}
	if items := fewer(facts, todo); len(items) > 0 {
		return items
	}
	return []Item{{Check: check, Level: OK, Finding: fmt.Sprintf("%s acts, and has renewed its Lease %s ago", holder, span(max(age, 0)))}}
}

// renewedAt is when the Lease was renewed last, by the clock of who holds it.
func renewedAt(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return lease.CreationTimestamp.Time
	}
	return lease.Spec.RenewTime.Time
}

// fewer tells of replicas that are not ready.
func fewer(facts *Facts, todo string) []Item {
	if !facts.Reconciler.There() {
		return nil
	}
	has, wants := facts.Reconciler.Value.Status.ReadyReplicas, ptr.Deref(facts.Reconciler.Value.Spec.Replicas, 1)
	if has >= wants {
		return nil
	}
	return []Item{{"reconciler", Warning, fmt.Sprintf("%d of %d replicas ready", has, wants), todo}}
}

// span writes a length of time, as kubectl does.
func span(d time.Duration) string { return duration.HumanDuration(d) }
