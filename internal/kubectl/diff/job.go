package diff

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// ofJob compares what one TrainJob runs on with its runtime.
func ofJob(ctx context.Context, o *kubectl.Options, argument string) error {
	name, err := kubectl.JobArgument(argument)
	if err != nil {
		return err
	}
	if o.AllNamespaces || o.Selector != "" || o.FieldSelector != "" {
		return errors.New("one TrainJob is compared by its name; --all-namespaces, --selector and --field-selector go with --jobs")
	}
	if err := o.Resolve(kubectl.OutputJSON, kubectl.OutputYAML); err != nil {
		return err
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	job := &trainer.TrainJob{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, job); err != nil {
		return kubectl.WithoutTrainer(err)
	}
	notes := &kubectl.Notes{}
	defer notes.Print(o.ErrOut)
	content := reader.Content(ctx, job, notes)
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := compare(job, content)
	for _, note := range found.notes {
		notes.Add(note)
	}
	if o.Output != "" {
		ref := job.Spec.RuntimeRef
		runtime := target{kind: ref.GroupVersionKind().Kind, key: ref.Key(job.Namespace), live: content.Live}
		report := jobReport{Runtime: runtime.report(), TrainJob: useOf(job, content.Built, content.Live), Diff: found.text}
		if err := kubectl.Encode(o.Out, report, o.Output); err != nil {
			return err
		}
	} else if found.text != "" {
		if err := printUnified(o.Out, found.text, o.Terminal()); err != nil {
			return err
		}
	}
	if err == nil && !found.same {
		return exit(exitDifferent)
	}
	return err
}
