package deadline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const annotationField = "metadata.annotations[lifecycle.trainer.kubeflow.org/active-deadline-seconds]"

func TestValidate(t *testing.T) {
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	for name, tc := range map[string]struct {
		before, after *builder.TrainJobBuilder
		want          []string
	}{
		"created without":             {after: job()},
		"created with the least":      {after: job().Deadline(1).DeadlineAnnotation("1")},
		"created with the most":       {after: job().Deadline(4294967295).DeadlineAnnotation("4294967295")},
		"created with zero":           {after: job().Deadline(0), want: []string{"spec.activeDeadlineSeconds: Invalid value: 0: must be greater than or equal to 1"}},
		"created with one too many":   {after: job().Deadline(4294967296), want: []string{"spec.activeDeadlineSeconds: Invalid value: 4294967296: must be less than or equal to 4294967295"}},
		"created with what overflows": {after: job().Deadline(9223372037), want: []string{"spec.activeDeadlineSeconds: Invalid value: 9223372037: must be less than or equal to 4294967295"}},
		"created with all wrong, told at once": {
			after: job().Deadline(-5).DeadlineAnnotation("8h"),
			want: []string{
				"spec.activeDeadlineSeconds: Invalid value: -5: must be greater than or equal to 1",
				annotationField + `: Invalid value: "8h": must be a whole number of seconds from 1 to 4294967295`,
			},
		},
		"created with an annotation too low":  {after: job().DeadlineAnnotation("0"), want: []string{annotationField + `: Invalid value: "0": must be greater than or equal to 1`}},
		"created with an annotation too high": {after: job().DeadlineAnnotation("4294967296"), want: []string{annotationField + `: Invalid value: "4294967296": must be less than or equal to 4294967295`}},
		"created with an empty annotation":    {after: job().DeadlineAnnotation(""), want: []string{annotationField + `: Invalid value: "": must be a whole number of seconds from 1 to 4294967295`}},
		"created, opting out":                 {after: job().DeadlineAnnotation("none")},
		"created, opting out in capitals":     {after: job().DeadlineAnnotation("None"), want: []string{annotationField + `: Invalid value: "None": must be a whole number of seconds from 1 to 4294967295`}},
		"opting out later":                    {before: job().DeadlineAnnotation("60"), after: job().DeadlineAnnotation("none"), want: []string{annotationField + `: Invalid value: "none": field is immutable`}},
		"opting out of nothing later":         {before: job(), after: job().DeadlineAnnotation("none"), want: []string{annotationField + `: Invalid value: "none": field is immutable`}},
		"opting in later":                     {before: job().DeadlineAnnotation("none"), after: job().DeadlineAnnotation("60"), want: []string{annotationField + `: Invalid value: "60": field is immutable`}},
		"unchanged":                           {before: job().Deadline(60).DeadlineAnnotation("60"), after: job().Deadline(60).DeadlineAnnotation("60")},
		"unchanged though out of bounds":      {before: job().Deadline(9223372037).DeadlineAnnotation("x"), after: job().Deadline(9223372037).DeadlineAnnotation("x")},
		"changed": {
			before: job().Deadline(60).DeadlineAnnotation("60"), after: job().Deadline(61).DeadlineAnnotation("61"),
			want: []string{
				"spec.activeDeadlineSeconds: Invalid value: 61: field is immutable",
				annotationField + `: Invalid value: "61": field is immutable`,
			},
		},
		"added": {
			before: job(), after: job().Deadline(60).DeadlineAnnotation("60"),
			want: []string{
				"spec.activeDeadlineSeconds: Invalid value: 60: field is immutable",
				annotationField + `: Invalid value: "60": field is immutable`,
			},
		},
		"removed, had nothing put it back": {
			before: job().Deadline(60).DeadlineAnnotation("60"), after: job(),
			want: []string{
				"spec.activeDeadlineSeconds: Invalid value: null: field is immutable",
				annotationField + ": Invalid value: null: field is immutable",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before *trainer.TrainJob
			if tc.before != nil {
				before = tc.before.Obj()
			}
			var got []string
			for _, err := range Validate(before, tc.after.Obj()) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	const (
		specUndone       = "spec.activeDeadlineSeconds: field is immutable: the change was undone"
		annotationUndone = annotationField + ": field is immutable: the change was undone"
	)
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job") }
	both := func() *builder.TrainJobBuilder { return job().Deadline(60).DeadlineAnnotation("60") }
	for name, tc := range map[string]struct {
		before, after, want *builder.TrainJobBuilder
		wantWarnings        []string
	}{
		"unchanged":                         {before: both(), after: both(), want: both()},
		"none":                              {before: job(), after: job(), want: job()},
		"removals come back":                {before: both(), after: job(), want: both(), wantWarnings: []string{specUndone, annotationUndone}},
		"one removal":                       {before: both(), after: job().Deadline(60), want: both(), wantWarnings: []string{annotationUndone}},
		"changes are left for validation":   {before: both(), after: job().Deadline(61).DeadlineAnnotation("61"), want: job().Deadline(61).DeadlineAnnotation("61")},
		"additions are left for validation": {before: job(), after: both(), want: both()},
		"changes while being deleted come back": {
			before: both().Deleting(created), after: job().Deadline(61).DeadlineAnnotation("61").Deleting(created), want: both(),
			wantWarnings: []string{specUndone, annotationUndone},
		},
		"changes while being deleted, with the deletion left out, come back": {
			before: both().Deleting(created), after: job().Deadline(61).DeadlineAnnotation("61"), want: both(),
			wantWarnings: []string{specUndone, annotationUndone},
		},
		"additions while being deleted go again": {
			before: job().Deleting(created), after: both(), want: job(), wantWarnings: []string{specUndone, annotationUndone},
		},
		"removals while being deleted come back": {
			before: both().Deleting(created), after: job().Deleting(created), want: both(), wantWarnings: []string{specUndone, annotationUndone},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, warnings := Keep(tc.before.Obj(), tc.after.Obj())
			if diff := cmp.Diff(SettingsOf(tc.want.Obj()), got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	job := builder.TrainJob("ns", "job").Deadline(60)
	if got := Warnings(job.Obj()); len(got) != 0 {
		t.Errorf("warnings about one setting: %q", got)
	}
	want := []string{annotationField + " is ignored: spec.activeDeadlineSeconds is set"}
	if diff := cmp.Diff(want, Warnings(job.DeadlineAnnotation("60").Obj())); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
