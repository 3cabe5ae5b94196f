// Package check is the command check of the kubectl plugin: whether a cluster is set up right. What is read is
// a Facts; all judgement of it is Judge.
package check

import "slices"

// Judge says how the cluster is, from what was read of it.
func Judge(facts *Facts) Answer {
	items := slices.Concat(kubernetes(facts), theClock(facts), theTrainer(facts), jobSet(facts), theSignalbox(facts))
	if mayBe(facts) {
		items = slices.Concat(items, ownCRDs(facts), versions(facts), theWebhook(facts), certificate(facts), reconciler(facts))
	}
	return answer(slices.Concat(items, theKueue(facts), policies(facts), runtimes(facts)))
}
