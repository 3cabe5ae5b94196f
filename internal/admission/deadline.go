package admission

import (
	"context"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// give returns where a new TrainJob must carry which deadline, and sets in want who it is from.
// What it came with stays; what a policy does not allow is for the validating webhook to refuse,
// which sees what all others have made of the TrainJob.
func (m *TrainJobMutator) give(ctx context.Context, req admission.Request, job *trainer.TrainJob, runtime func() (*snapshot.Packed, error), want map[string]*string) (deadline.Settings, error) {
	carried := deadline.SettingsOf(job)
	settings, rules, err := m.said(ctx, req, job, runtime)
	if err != nil {
		return carried, err
	}
	decision := policy.Decide(job, settings, rules)
	if decision.Deadline == 0 {
		if by, found := givenBefore(job, settings, rules); found {
			want[v1alpha1.AnnotationActiveDeadlineSource] = &by
		}
		return carried, nil
	}
	want[v1alpha1.AnnotationActiveDeadlineSource] = &decision.By
	seconds := int64(decision.Deadline / time.Second)
	// Trainer need not take the field beside a run policy.
	if job.OwnDeadline() == nil && m.HasActiveDeadline(ctx) {
		carried.Spec = &seconds
	} else {
		carried.Annotation = ptr.To(strconv.FormatInt(seconds, 10))
	}
	return carried, nil
}

// takeBack returns where a new TrainJob that Trainer does not run must carry which deadline: what
// it was given by the call before this one, when it did not say yet who runs it, is taken out.
func (m *TrainJobMutator) takeBack(ctx context.Context, req admission.Request, job *trainer.TrainJob, runtime func() (*snapshot.Packed, error)) (deadline.Settings, error) {
	carried := deadline.SettingsOf(job)
	if _, found := job.Annotations[v1alpha1.AnnotationActiveDeadlineSource]; !found {
		return carried, nil
	}
	settings, rules, err := m.said(ctx, req, job, runtime)
	if err != nil {
		return carried, err
	}
	if _, found := givenBefore(job, settings, rules); !found {
		return carried, nil
	}
	if carried.Spec != nil {
		carried.Spec = nil
	} else {
		carried.Annotation = nil
	}
	return carried, nil
}

// said returns what the runtime of a TrainJob and the policies say.
func (m *TrainJobMutator) said(ctx context.Context, req admission.Request, job *trainer.TrainJob, runtime func() (*snapshot.Packed, error)) (trainer.RuntimeSettings, policy.Rules, error) {
	settings, err := settingsOf(job, runtime)
	if err != nil {
		return settings, policy.Rules{}, err
	}
	rules, err := m.Policies.Rules(ctx, req.Namespace, func() (trainer.RuntimeSettings, error) { return settings, nil })
	return settings, rules, err
}

// settingsOf returns what the runtime of a TrainJob says; nothing where there is none.
func settingsOf(job *trainer.TrainJob, runtime func() (*snapshot.Packed, error)) (trainer.RuntimeSettings, error) {
	if ref := job.Spec.RuntimeRef; ref.Name == "" || !ref.Known() {
		return trainer.RuntimeSettings{}, nil
	}
	packed, err := runtime()
	if apierrors.IsNotFound(err) {
		return trainer.RuntimeSettings{}, nil
	}
	if err != nil {
		return trainer.RuntimeSettings{}, err
	}
	return packed.Settings, nil
}

// givenBefore tells whether the deadline that the TrainJob comes with is what it would get if
// it came with none, and says so itself: the webhook is called once more for the same creation,
// or a copy comes to where the same is said. It returns by whom it would be.
func givenBefore(job *trainer.TrainJob, settings trainer.RuntimeSettings, rules policy.Rules) (by string, found bool) {
	by, found = job.Annotations[v1alpha1.AnnotationActiveDeadlineSource]
	if !found {
		return "", false
	}
	without := job.DeepCopy()
	without.Spec.ActiveDeadlineSeconds = nil
	delete(without.Annotations, v1alpha1.AnnotationActiveDeadlineSeconds)
	decision := policy.Decide(without, settings, rules)
	seconds := int64(decision.Deadline / time.Second)
	same := seconds > 0 && decision.By == by
	if job.Spec.ActiveDeadlineSeconds != nil {
		return by, same && *job.Spec.ActiveDeadlineSeconds == seconds
	}
	return by, same && job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds] == strconv.FormatInt(seconds, 10)
}

// judge finds what is decided of a new TrainJob, with a refusal where a policy does not allow its
// deadline, or want of one. The runtime is read only where that can make a difference.
func (v *TrainJobValidator) judge(ctx context.Context, req admission.Request, job *trainer.TrainJob) (policy.Decision, error) {
	runtime := sync.OnceValues(func() (trainer.RuntimeSettings, error) {
		return settingsOf(job, func() (*snapshot.Packed, error) {
			return v.Runtimes.Runtime(ctx, req.Namespace, job.Spec.RuntimeRef)
		})
	})
	rules, err := v.Policies.Rules(ctx, req.Namespace, runtime)
	if err != nil {
		return policy.Decision{}, err
	}
	var settings trainer.RuntimeSettings
	if policy.AsksRuntime(job, rules) {
		if settings, err = runtime(); err != nil {
			return policy.Decision{}, err
		}
	}
	return policy.Judge(job, settings, rules), nil
}
