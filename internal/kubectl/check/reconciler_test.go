package check

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

func TestJudgeReconciler(t *testing.T) {
	ca := newAuthority(t, now.AddDate(8, 0, 0))
	judged(t, ca, map[string]verdict{
		"a stale Lease": {
			func(f *Facts) { f.Lease.Value.Spec.RenewTime.Time = now.Add(-15 * time.Second) },
			[]Item{{"reconciler", Fault, "none acts since 2026-03-01T11:59:45Z (15s): " + noDeadlines, logs}}, 1,
		},
		"a Lease that looks stale, and is renewed": {
			func(f *Facts) {
				f.Lease.Value.Spec.RenewTime.Time = now.Add(-time.Minute)
				f.Later, f.LaterAt = f.Lease.Value.DeepCopy(), now.Add(2*time.Second)
				f.Later.Spec.RenewTime.Time = now.Add(-58 * time.Second)
			},
			[]Item{{"reconciler", Warning, "signalbox-reconciler-1 acts, and its clock is about 60s behind the API server's: deadlines end as much later", "set the clock of its node right"}}, 0,
		},
		"a Lease that looks stale, and is": {
			func(f *Facts) {
				f.Lease.Value.Spec.RenewTime.Time = now.Add(-time.Minute)
				f.Later, f.LaterAt = f.Lease.Value.DeepCopy(), now.Add(2*time.Second)
			},
			[]Item{{"reconciler", Fault, "none acts since 2026-03-01T11:59:00Z (60s): " + noDeadlines, logs}}, 1,
		},
		"a Lease that another replica takes": {
			func(f *Facts) {
				f.Lease.Value.Spec.RenewTime.Time = now.Add(-16 * time.Second)
				f.Later, f.LaterAt = f.Lease.Value.DeepCopy(), now.Add(2*time.Second)
				f.Later.Spec.HolderIdentity, f.Later.Spec.RenewTime.Time = ptr.To("signalbox-reconciler-2"), now.Add(time.Second)
			},
			[]Item{{"reconciler", OK, "signalbox-reconciler-2 acts, and has renewed its Lease 1s ago", ""}}, 0,
		},
		"a Lease that is renewed, just as old as it may be": {
			func(f *Facts) {
				f.Lease.Value.Spec.RenewTime.Time = now.Add(-16 * time.Second)
				f.Later, f.LaterAt = f.Lease.Value.DeepCopy(), now.Add(2*time.Second)
				f.Later.Spec.RenewTime.Time = now.Add(-13 * time.Second)
			},
			[]Item{{"reconciler", Warning, "signalbox-reconciler-1 acts, and its clock is about 15s behind the API server's: deadlines end as much later", "set the clock of its node right"}}, 0,
		},
		"a Lease of the future": {
			func(f *Facts) { f.Lease.Value.Spec.RenewTime.Time = now.Add(time.Minute) },
			[]Item{{"reconciler", Warning, "signalbox-reconciler-1 acts, and its clock is at least 60s ahead of the API server's: deadlines end as much earlier", "set the clock of its node right"}}, 0,
		},
		"a Lease that was given back": {
			func(f *Facts) { f.Lease.Value.Spec.HolderIdentity = ptr.To("") },
			[]Item{{"reconciler", Fault, "none acts: the last has given its Lease back: " + noDeadlines, logs}}, 1,
		},
		"no Lease": {
			func(f *Facts) { f.Lease = missing[*coordinationv1.Lease]() },
			[]Item{{"reconciler", Fault, "none has ever acted: there is no Lease signalbox-system/signalbox-reconciler: " + noDeadlines, logs}}, 1,
		},
		"no right to read the Lease": {
			func(f *Facts) { f.Lease = unread[*coordinationv1.Lease]() },
			[]Item{{"reconciler", Unknown, "whether a replica acts is not known: no right to do so", ""}}, 2,
		},
		"one reconciler less": {
			func(f *Facts) { f.Reconciler.Value.Status.ReadyReplicas = 1 },
			[]Item{{"reconciler", Warning, "1 of 2 replicas ready", logs}}, 0,
		},
	})
}
