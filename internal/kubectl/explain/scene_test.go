package explain

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// noon is when the TrainJobs of the tests are created, unless they say otherwise.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time { return noon.Add(time.Duration(minutes * float64(time.Minute))) }

// scene makes the facts of a TrainJob in a cluster with all parts, read as they are stored.
type scene struct {
	t     *testing.T
	facts Facts
	of    kubectl.Facts
}

// newScene starts with a Signalbox that is a day old, a Trainer that keeps runtimes, no Kueue, and
// the runtime torch as it is sealed into the TrainJob, if it is.
func newScene(t *testing.T, job *builder.TrainJobBuilder) *scene {
	t.Helper()
	s := &scene{t: t}
	s.facts = Facts{
		Job:         job.Obj(),
		Signalbox:   kubectl.Installation{Known: true, Is: true, Since: noon.AddDate(0, 0, -1)},
		Trainer:     &trainer.Capabilities{ActiveDeadline: true, RuntimeSnapshot: true},
		Kueue:       Kueue{Installed: ptr.To(false)},
		TTL:         &ttl.Rules{},
		LeavesAlone: ptr.To(false),
	}
	s.live(torch())
	return s
}

func torch() *builder.RuntimeBuilder { return builder.ClusterTrainingRuntime("torch") }

// job starts with an active TrainJob of the runtime torch, created at noon.
func job() *builder.TrainJobBuilder {
	return builder.TrainJob("team-a", "tune").Created(noon).Generation(1).Runtime(trainer.ClusterTrainingRuntimeKind, "torch")
}

// started is one that became active at the time that the webhook stamped.
func started(t *testing.T, minutes float64) *builder.TrainJobBuilder {
	return sealed(t, job().Stamp(at(minutes)), minutes)
}

// sealed seals the runtime torch into a TrainJob.
func sealed(t *testing.T, job *builder.TrainJobBuilder, minutes float64) *builder.TrainJobBuilder {
	t.Helper()
	return job.Annotations(take(t, torch()).Pack().Seal(at(minutes)))
}

func take(t *testing.T, runtime *builder.RuntimeBuilder) *snapshot.Snapshot {
	t.Helper()
	taken, err := snapshot.Take(runtime.Obj().Object)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// live sets the runtime as it is now.
func (s *scene) live(runtime *builder.RuntimeBuilder) *scene {
	s.facts.Content.LiveRuntime = runtime.Obj()
	s.of.Live = kubectl.Live{Revision: take(s.t, runtime).Revision}
	return s
}

// gone takes the runtime away.
func (s *scene) gone() *scene {
	s.facts.Content.LiveRuntime, s.of.Live = nil, kubectl.Live{Gone: true}
	return s
}

// jobSet adds the JobSet of the TrainJob, of the revision that is sealed.
func (s *scene) jobSet(change func(*trainer.JobSet)) *scene {
	jobSet := builder.JobSet(s.facts.Job).Obj()
	jobSet.CreationTimestamp = metav1.NewTime(at(1))
	if change != nil {
		change(jobSet)
	}
	s.of.JobSet = jobSet
	return s
}

// with changes the facts.
func (s *scene) with(change func(*Facts)) *scene {
	change(&s.facts)
	return s
}

// report makes the report, some minutes after noon.
func (s *scene) report(minutes float64) Report {
	s.t.Helper()
	s.of.Job = s.facts.Job
	if s.facts.Trainer != nil {
		s.of.Keeps = &s.facts.Trainer.RuntimeSnapshot
	}
	content := &s.facts.Content
	content.Built, content.Live, content.JobSet = kubectl.BuiltFrom(s.of), s.of.Live, s.of.JobSet
	content.Sealed, content.SealErr = snapshot.Of(s.facts.Job)
	switch content.From {
	case kubectl.FromSeal:
		content.Snapshot = content.Sealed
	case kubectl.FromLive:
		if content.LiveRuntime != nil {
			content.Snapshot, _ = snapshot.Take(content.LiveRuntime.Object)
		}
	}
	raw, err := json.Marshal(s.facts.Job)
	if err != nil {
		s.t.Fatal(err)
	}
	s.facts.Size = len(raw)
	return Of(s.facts, at(minutes))
}

// pod makes a pod that waits, or one that runs since some minutes after noon.
func pod(reason, message string) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message},
	}}}
}

func running(minutes float64) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(minutes))}}},
	}}}
}

// event makes a warning event about a TrainJob.
func event(reason, message string, minutes float64) corev1.Event {
	return corev1.Event{
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, LastTimestamp: metav1.NewTime(at(minutes)),
		InvolvedObject: corev1.ObjectReference{Kind: trainer.TrainJobKind},
	}
}
