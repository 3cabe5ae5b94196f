package admission

import (
	"context"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// decide finds the deadline of a new TrainJob. It returns the value that its spec must have, nil
// for none, and sets in want the annotations that it must have. The refusal is that of a policy.
func (m *TrainJobMutator) decide(ctx context.Context, req admission.Request, job *trainer.TrainJob, runtime func() (*snapshot.Packed, error), want map[string]*string) (spec *int64, refusal *field.Error, err error) {
	var settings trainer.RuntimeSettings
	if job.Spec.RuntimeRef.Name != "" && job.Spec.RuntimeRef.Known() {
		switch packed, err := runtime(); {
		case err == nil:
			settings = packed.Settings
		case !apierrors.IsNotFound(err):
			return nil, nil, err
		}
	}
	rules, err := m.Policies.Rules(ctx, req.Namespace, labels.Set(settings.Labels))
	if err != nil {
		return nil, nil, err
	}
	decision := policy.Decide(job, settings, rules)
	if by, found := decidedBefore(job, settings, rules); found {
		want[v1alpha1.AnnotationActiveDeadlineSource] = &by
	}
	if !ptr.Deref(req.DryRun, false) {
		m.Decisions.Count(decision)
	}
	if decision.Refusal != nil || decision.Deadline == 0 {
		return job.Spec.ActiveDeadlineSeconds, decision.Refusal, nil
	}
	want[v1alpha1.AnnotationActiveDeadlineSource] = &decision.By
	seconds := int64(decision.Deadline / time.Second)
	if m.HasActiveDeadline(ctx) {
		return &seconds, nil, nil
	}
	want[v1alpha1.AnnotationActiveDeadlineSeconds] = ptr.To(strconv.FormatInt(seconds, 10))
	return nil, nil, nil
}

// decidedBefore tells whether the deadline that the TrainJob comes with is what it would get if
// it came with none, and says so itself: the webhook is called once more for the same creation,
// or a copy comes to where the same is said. It returns by whom it would be.
func decidedBefore(job *trainer.TrainJob, settings trainer.RuntimeSettings, rules policy.Rules) (by string, found bool) {
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
