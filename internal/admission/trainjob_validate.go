package admission

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// TrainJobValidatePath is where the validating webhook of TrainJobs is served.
const TrainJobValidatePath = "/validate-trainjob"

// TrainJobValidator is the validating webhook of TrainJobs, on CREATE and UPDATE. It refuses
// deadlines and times to stay that are out of bounds, changes of a deadline, new TrainJobs whose
// deadline a LifecyclePolicy does not allow, and runtimePatches that would forge what Signalbox
// writes on the JobSet.
//
// It fails closed, for the same requests as the mutating webhook: a deadline that slipped
// past could not be corrected later, being immutable.
type TrainJobValidator struct {
	// Policies finds what LifecyclePolicies say.
	Policies *policy.Reader
	Runtimes *snapshot.Resolver
	// Decisions counts what was decided of new TrainJobs.
	Decisions *policy.Metrics
}

// Handle answers one admission request: all mistakes at once as Invalid (422), 400 for what it
// cannot decode, and 500 when the policies, or a runtime that they ask for, cannot be read. A
// TrainJob that is being deleted is never refused.
func (v *TrainJobValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	stored, sent, err := decodeTrainJobs(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	before, after := stored.TrainJob, sent.TrainJob
	deleting := before != nil && !before.DeletionTimestamp.IsZero()
	if !after.ManagedByTrainer() || deleting {
		return admission.Allowed("")
	}
	errs := append(deadline.Validate(before, after), ttl.Validate(before, after)...)
	patched, err := validatePatches(stored.runtimePatches, sent.runtimePatches)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	errs = append(errs, patched...)
	if before == nil {
		decision, err := v.judge(ctx, req, after)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		// What is refused for another reason has no decision to be counted.
		if !ptr.Deref(req.DryRun, false) && (len(errs) == 0 || decision.Refusal != nil) {
			v.Decisions.Count(decision)
		}
		if decision.Refusal != nil {
			errs = append(errs, decision.Refusal)
		}
	}
	if len(errs) > 0 {
		return invalid(after, errs)
	}
	return admission.Allowed("").WithWarnings(deadline.Warnings(after)...)
}

// runtimePatch is the part of an entry of runtimePatches that Trainer copies to the JobSet as it is.
type runtimePatch struct {
	TrainingRuntimeSpec struct {
		Template struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		} `json:"template"`
	} `json:"trainingRuntimeSpec"`
}

// validatePatches refuses annotations of ours in runtimePatches, unless they are stored: what
// slipped in while the webhook was away must not hold up a suspension.
func validatePatches(rawBefore, rawAfter stdjson.RawMessage) (field.ErrorList, error) {
	var before, after []runtimePatch
	if err := decodePart(rawAfter, &after); err != nil {
		return nil, fmt.Errorf("decode runtimePatches: %w", err)
	}
	if err := decodePart(rawBefore, &before); err != nil {
		return nil, fmt.Errorf("decode stored runtimePatches: %w", err)
	}
	stored := map[[2]string]bool{}
	for _, patch := range before {
		for key, value := range patch.TrainingRuntimeSpec.Template.Metadata.Annotations {
			stored[[2]string{key, value}] = true
		}
	}
	var errs field.ErrorList
	for i, patch := range after {
		annotations := patch.TrainingRuntimeSpec.Template.Metadata.Annotations
		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			if strings.HasPrefix(key, v1alpha1.Group+"/") && !stored[[2]string{key, annotations[key]}] {
				path := field.NewPath("spec", "runtimePatches").Index(i).Child("trainingRuntimeSpec", "template", "metadata", "annotations").Key(key)
				errs = append(errs, field.Forbidden(path, "annotations of "+v1alpha1.Group+" on a JobSet are Signalbox's own"))
			}
		}
	}
	return errs, nil
}

// invalid refuses the TrainJob with all that is wrong with it.
func invalid(job *trainer.TrainJob, errs field.ErrorList) admission.Response {
	name := job.Name
	if name == "" {
		name = job.GenerateName
	}
	status := apierrors.NewInvalid(trainer.GroupVersion.WithKind(trainer.TrainJobKind).GroupKind(), name, errs).Status()
	response := admission.Denied("")
	response.Result = &status
	return response
}
