package deadline

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Where a user sets a deadline.
var (
	specPath       = field.NewPath("spec", "activeDeadlineSeconds")
	annotationPath = field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationActiveDeadlineSeconds)
)

// immutable is apimachinery's text.
const immutable = "field is immutable"

// Settings are the places in which a TrainJob carries a deadline, nil where it does not.
type Settings struct {
	Spec       *int64
	Annotation *string
}

// SettingsOf returns the deadline settings of the TrainJob.
func SettingsOf(job *trainer.TrainJob) Settings {
	settings := Settings{Spec: job.Spec.ActiveDeadlineSeconds}
	if value, found := job.Annotations[v1alpha1.AnnotationActiveDeadlineSeconds]; found {
		settings.Annotation = &value
	}
	return settings
}

// Keep returns the settings that the TrainJob must have once the UPDATE from before to
// after is stored, and a warning for each that this puts back. A removal is put back: it is
// no different from the write of an old client that does not know the setting. While the
// TrainJob is being deleted, changes and additions are put back too, since nothing is
// refused then and nobody may buy time with a finalizer.
func Keep(before, after *trainer.TrainJob) (Settings, []string) {
	var warnings []string
	// The stored one tells: what is written may leave the time of the deletion out, and the
	// API server puts it back only later.
	deleting := !before.DeletionTimestamp.IsZero()
	was, is := SettingsOf(before), SettingsOf(after)
	keep := is
	if lost(was.Spec, is.Spec, deleting) {
		keep.Spec = was.Spec
		warnings = append(warnings, specPath.String()+": "+immutable+": the change was undone")
	}
	if lost(was.Annotation, is.Annotation, deleting) {
		keep.Annotation = was.Annotation
		warnings = append(warnings, annotationPath.String()+": "+immutable+": the change was undone")
	}
	return keep, warnings
}

// lost tells whether a setting is not as it was and must be put back.
func lost[T comparable](was, is *T, deleting bool) bool {
	return !equal(was, is) && (is == nil || deleting)
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Validate checks the deadline settings of a write that turns before into after, all at
// once; before is nil on CREATE. Settings can only be made at creation. What was stored
// before anyone checked is not held against an update that leaves it as it is.
func Validate(before, after *trainer.TrainJob) field.ErrorList {
	is := SettingsOf(after)
	if before == nil {
		return append(validateSpec(is.Spec), validateAnnotation(is.Annotation)...)
	}
	var errs field.ErrorList
	was := SettingsOf(before)
	if !equal(was.Spec, is.Spec) {
		errs = append(errs, field.Invalid(specPath, shown(is.Spec), immutable))
	}
	if !equal(was.Annotation, is.Annotation) {
		errs = append(errs, field.Invalid(annotationPath, shown(is.Annotation), immutable))
	}
	return errs
}

// Warnings tells the user of settings that are valid but have no effect.
func Warnings(job *trainer.TrainJob) []string {
	if is := SettingsOf(job); is.Spec != nil && is.Annotation != nil {
		return []string{fmt.Sprintf("%s is ignored: %s is set", annotationPath, specPath)}
	}
	return nil
}

func validateSpec(seconds *int64) field.ErrorList {
	if seconds == nil {
		return nil
	}
	return validateSeconds(specPath, strconv.FormatInt(*seconds, 10), *seconds)
}

func validateAnnotation(value *string) field.ErrorList {
	if value == nil || *value == v1alpha1.None {
		return nil
	}
	return validateSeconds(annotationPath, *value, *value)
}

func validateSeconds(path *field.Path, text string, value any) field.ErrorList {
	if _, err := v1alpha1.ParseSeconds(text, v1alpha1.MinDeadlineSeconds); err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return nil
}

// shown is the value of a setting for an error's text, null where it is missing.
func shown[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}
