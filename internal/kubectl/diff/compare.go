package diff

import (
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// comparison is what came of comparing the content that a TrainJob runs on with its live runtime.
type comparison struct {
	// same tells whether they are of one revision.
	same bool
	// text is the unified diff; "" where they are the same, or what differs is not known.
	text string
	// notes are for the eyes of people: what else is to be known.
	notes []string
}

// compare compares what a TrainJob runs on, or has run on, with its runtime as it is now. Where one
// of them is not known the error says why.
func compare(job *trainer.TrainJob, content kubectl.Content) (comparison, error) {
	name := "TrainJob " + job.Namespace + "/" + job.Name
	runtime := runtimeName(job)
	notes := notesOn(job, content)
	switch {
	case content.Revision == "":
		return comparison{notes: notes}, fmt.Errorf("it is not known what %s runs on: %s", name, content.Why)
	case content.From == kubectl.FromLive:
		return comparison{same: true, notes: notes}, nil
	case content.Live == kubectl.Live{}:
		return comparison{notes: notes}, fmt.Errorf("%s could not be read", runtime)
	case content.Revision == content.Live.Revision:
		return comparison{same: true, notes: notes}, nil
	case content.Snapshot == nil:
		text := fmt.Sprintf("%s is of revision %s now; what %s runs on, revision %s, is kept nowhere, so that the differences cannot be shown", runtime, content.Live.Revision, name, content.Revision)
		if content.Live.Gone {
			text = fmt.Sprintf("%s is gone, and what %s runs on, revision %s, is kept nowhere", runtime, name, content.Revision)
		}
		return comparison{notes: append(notes, text)}, nil
	}
	before, after, err := sides(job, content)
	if err != nil {
		return comparison{notes: notes}, err
	}
	text := unified(before, after)
	if text == "" {
		return comparison{notes: notes}, errors.New("two revisions of one content")
	}
	return comparison{text: text, notes: notes}, nil
}

// sides writes both contents, which are of different revisions, as YAML.
func sides(job *trainer.TrainJob, content kubectl.Content) (before, after side, err error) {
	runtime := runtimeName(job)
	namespace := job.Spec.RuntimeRef.Key(job.Namespace).Namespace
	before = side{label: fmt.Sprintf("%s (%s, revision %s)", runtime, kept(content.From), content.Revision)}
	after = side{label: fmt.Sprintf("%s (live, revision %s)", runtime, content.Live.Revision)}
	source := content.Snapshot.Source
	if before.text, err = document(source, namespace, content.Snapshot.Spec()); err != nil {
		return before, after, err
	}
	if content.LiveRuntime == nil {
		after.label = "/dev/null"
		return before, after, nil
	}
	spec, _ := content.LiveRuntime.Object["spec"].(map[string]any)
	source = v1alpha1.RuntimeSource{APIVersion: content.LiveRuntime.GetAPIVersion(), Kind: content.LiveRuntime.GetKind(), Name: content.LiveRuntime.GetName()}
	after.text, err = document(source, namespace, spec)
	return before, after, err
}

// kept says in a word where content comes from.
func kept(from kubectl.From) string {
	switch from {
	case kubectl.FromSeal:
		return "sealed"
	case kubectl.FromSnapshot:
		return "filed"
	}
	return "kept by Trainer"
}

// notesOn says what is to be known of what a TrainJob runs on, beside how it differs.
func notesOn(job *trainer.TrainJob, content kubectl.Content) []string {
	var notes []string
	name, runtime := "TrainJob "+job.Namespace+"/"+job.Name, runtimeName(job)
	if content.SealErr != nil {
		notes = append(notes, fmt.Sprintf("what is sealed into %s cannot be read, so that it counts for nothing: %v", name, content.SealErr))
	}
	if content.Mismatch {
		notes = append(notes, fmt.Sprintf("the JobSet of %s runs on revision %s and not on what is sealed, revision %s: it has not passed Signalbox's webhook", name, content.Revision, content.Sealed.Revision))
	}
	sealed := content.Sealed
	switch {
	case content.Revision == "":
	case content.From == kubectl.FromLive && content.Next == kubectl.FromLive && sealed == nil:
		notes = append(notes, fmt.Sprintf("nothing is kept for %s yet: it is built from %s as that is when it starts", name, runtime))
	case sealed != nil && content.Revision != sealed.Revision && !content.Mismatch:
		notes = append(notes, fmt.Sprintf("what is sealed into %s, revision %s, is a record: this Trainer builds from the live runtime", name, sealed.Revision))
	case content.Next == kubectl.FromLive:
		notes = append(notes, fmt.Sprintf("when %s is suspended and resumed, this Trainer builds it from the live runtime", name))
	}
	if content.Live.Gone && content.Revision != "" && !job.Terminal() {
		notes = append(notes, fmt.Sprintf("%s is gone: Trainer refuses every change of %s until it is back", runtime, name))
	}
	return notes
}

// runtimeName names the runtime of a TrainJob as KIND/NAME.
func runtimeName(job *trainer.TrainJob) string {
	ref := job.Spec.RuntimeRef
	return snapshot.Name(v1alpha1.RuntimeSource{Kind: ref.GroupVersionKind().Kind, Name: ref.Name})
}
