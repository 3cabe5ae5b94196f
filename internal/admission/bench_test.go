package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// What the webhooks cost, each for the operations that it is called for: what is ours alone, the
// reads are free. The sizes are those of the objects as JSON; every second of two objects of a
// request is as large.

var runtimeSizes = []int{2 * kilobyte, 20 * kilobyte, 300 * kilobyte}

// creations are requests to create a TrainJob, by the size of its runtime and its own: all are
// sealed where they are active.
func creations(t testing.TB, suspend bool, handler func(d desk) admission.Handler, patches int) []measured {
	var all []measured
	for _, sizes := range [][2]int{{2 * kilobyte, 2 * kilobyte}, {20 * kilobyte, 2 * kilobyte}, {300 * kilobyte, 2 * kilobyte}, {2 * kilobyte, megabyte}} {
		all = append(all, measured{
			name:    fmt.Sprintf("runtime=%s/trainjob=%s", sized(sizes[0]), sized(sizes[1])),
			handler: handler(onDesk(t, runtimeSized(sizes[0]))),
			request: sealRequest("", trainJobSized(t, sizes[1], suspend, nil)),
			allowed: true, patches: patches,
		})
	}
	return all
}

func BenchmarkTrainJobMutator(b *testing.B) {
	handler := func(d desk) admission.Handler { return quick(b, d) }
	// What a TrainJob carries while it waits for its first start, and once it has had one.
	waiting := map[string]string{source: torchID}
	b.Run("create", func(b *testing.B) { ran(b, creations(b, false, handler, 1)...) })
	b.Run("create-suspended", func(b *testing.B) { ran(b, creations(b, true, handler, 1)...) })
	var resumes, pauses []measured
	for _, m := range creations(b, false, handler, 0) {
		size := len(m.request.Object.Raw)
		resume := m
		resume.request, resume.patches = sealRequest(trainJobSized(b, size, true, waiting), trainJobSized(b, size, false, waiting)), 3
		resumes = append(resumes, resume)
	}
	for _, size := range runtimeSizes {
		d := onDesk(b, runtimeSized(size))
		pauses = append(pauses, measured{
			name: fmt.Sprintf("runtime=%s/trainjob=2KB", sized(size)), handler: quick(b, d), allowed: true, patches: 1,
			request: sealRequest(trainJobSized(b, 2*kilobyte, false, d.job.Annotations), trainJobSized(b, 2*kilobyte, true, d.job.Annotations)),
		})
	}
	// The first TrainJob after an edit of the runtime, which is read whole and packed for it.
	b.Run("create-after-edit", func(b *testing.B) {
		for _, size := range runtimeSizes {
			d := onDesk(b, runtimeSized(size))
			m := quick(b, d)
			first := measured{name: "runtime=" + sized(size) + "/trainjob=2KB", allowed: true, patches: 1}
			first.request = sealRequest("", trainJobSized(b, 2*kilobyte, false, nil))
			first.handler = admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
				m.Runtimes = snapshot.NewResolver(d)
				return m.Handle(ctx, req)
			})
			ran(b, first)
		}
	})
	b.Run("resume", func(b *testing.B) { ran(b, resumes...) })
	b.Run("suspend", func(b *testing.B) { ran(b, pauses...) })
}

func BenchmarkTrainJobValidator(b *testing.B) {
	handler := func(d desk) admission.Handler {
		m := quick(b, d)
		return &TrainJobValidator{Policies: m.Policies, Runtimes: m.Runtimes}
	}
	b.Run("create", func(b *testing.B) { ran(b, creations(b, false, handler, 0)...) })
}

// What Trainer writes too early is taken out, an end that is dropped is put back.
func BenchmarkTrainJobStatusMutator(b *testing.B) {
	handler := &TrainJobStatusMutator{Clock: clocktesting.NewFakePassiveClock(now), TrainerUser: trainerUser}
	withStatus := func(job, conditions string) string {
		return strings.TrimSuffix(job, "}") + `,"status":{"conditions":[` + conditions + `]}}`
	}
	const exceeded = `{"type":"Failed","status":"True","reason":"DeadlineExceeded","message":"by Trainer","lastTransitionTime":"2026-03-01T12:00:00Z"}`
	var early, dropped []measured
	for _, size := range []int{2 * kilobyte, megabyte} {
		job := trainJobSized(b, size, false, nil)
		m := measured{name: "trainjob=" + sized(size), handler: handler, allowed: true, patches: 1}
		m.request = sealRequest(withStatus(job, ""), withStatus(job, exceeded))
		m.request.UserInfo.Username = trainerUser
		early = append(early, m)
		m.request = sealRequest(withStatus(job, exceeded), withStatus(job, ""))
		dropped = append(dropped, m)
	}
	b.Run("early", func(b *testing.B) { ran(b, early...) })
	b.Run("dropped", func(b *testing.B) { ran(b, dropped...) })
}

func BenchmarkJobSetValidator(b *testing.B) {
	var created, started []measured
	for _, size := range runtimeSizes {
		runtime := runtimeSized(size)
		d := onDesk(b, runtime)
		spec := runtime.Obj().Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		document := func(suspend bool) string {
			spec["suspend"] = suspend
			annotations := map[string]string{
				v1alpha1.AnnotationRuntimeRevision: d.job.Annotations[v1alpha1.AnnotationRuntimeRevision],
				v1alpha1.AnnotationRuntimeSource:   d.job.Annotations[v1alpha1.AnnotationRuntimeSource],
			}
			jobSet := unstructuredOf(builder.JobSet(d.job).Obj(), spec, "spec")
			jobSet.SetAnnotations(annotations)
			text, err := json.Marshal(jobSet.Object)
			if err != nil {
				b.Fatal(err)
			}
			return string(text)
		}
		m := measured{name: "runtime=" + sized(size), allowed: true, handler: &JobSetValidator{
			TrainJobs: d, ConfigMaps: d, Clock: clocktesting.NewFakePassiveClock(now), TrainerUser: trainerUser,
			KeepsSnapshots: func(context.Context) bool { return true },
		}}
		m.request = sealRequest("", document(false))
		created = append(created, m)
		m.request = sealRequest(document(true), document(false))
		started = append(started, m)
	}
	b.Run("create", func(b *testing.B) { ran(b, created...) })
	b.Run("unsuspend", func(b *testing.B) { ran(b, started...) })
}

func BenchmarkRuntimeMutator(b *testing.B) {
	var created, updated []measured
	for _, size := range runtimeSizes {
		runtime := runtimeSized(size)
		m := measured{name: "runtime=" + sized(size), handler: &RuntimeMutator{}, allowed: true, patches: 1}
		m.request = runtimeRequest(b, admissionv1.Create, nil, runtime)
		created = append(created, m)
		stamped := runtimeSized(size).Revision(take(b, runtime).Revision)
		m.request = runtimeRequest(b, admissionv1.Update, stamped, runtimeSized(size).Revision(take(b, runtime).Revision).Image("image:2"))
		updated = append(updated, m)
	}
	b.Run("create", func(b *testing.B) { ran(b, created...) })
	b.Run("update", func(b *testing.B) { ran(b, updated...) })
}

// An edit of an image breaks nothing; to rename a container breaks those who use the runtime, of
// whom there are none or a hundred.
func BenchmarkRuntimeValidator(b *testing.B) {
	var users []trainer.TrainJob
	for i := range 100 {
		users = append(users, *builder.TrainJob("ns", fmt.Sprintf("job-%03d", i)).Runtime(clusterKind, "torch").Obj())
	}
	var edited, free, held []measured
	for _, size := range runtimeSizes {
		before, after := runtimeSized(size), runtimeSized(size)
		m := measured{name: "runtime=" + sized(size), handler: guarded(b, users...), allowed: true}
		m.request = runtimeRequest(b, admissionv1.Update, before, after.Image("image:2"))
		edited = append(edited, m)
		m.request = runtimeRequest(b, admissionv1.Update, before, renamed(after))
		m.allowed = false
		held = append(held, m)
		m.handler, m.allowed = guarded(b), true
		free = append(free, m)
	}
	b.Run("edit", func(b *testing.B) { ran(b, edited...) })
	b.Run("rename/users=0", func(b *testing.B) { ran(b, free...) })
	b.Run("rename/users=100", func(b *testing.B) { ran(b, held...) })
	deletion := runtimeRequest(b, admissionv1.Delete, runtimeSized(2*kilobyte), nil)
	b.Run("delete", func(b *testing.B) {
		ran(b, measured{name: "users=0", handler: guarded(b), request: deletion, allowed: true},
			measured{name: "users=100", handler: guarded(b, users...), request: deletion})
	})
}
