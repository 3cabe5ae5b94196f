package diff

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// target is a runtime that was asked for.
type target struct {
	kind string
	key  types.NamespacedName
	live kubectl.Live
}

// String names it as people do.
func (t target) String() string { return t.kind + "/" + t.key.Name }

// headline says what it is now.
func (t target) headline() string {
	switch {
	case t.live.Gone:
		return t.String() + " is gone"
	case t.live.Revision == "":
		return t.String() + " could not be read"
	}
	return t.String() + " is of revision " + t.live.Revision
}

// report is the same for -o json and yaml.
func (t target) report() runtimeReport {
	return runtimeReport{Kind: t.kind, Namespace: t.key.Namespace, Name: t.key.Name, Revision: t.live.Revision, Gone: t.live.Gone}
}

// ofRuntime shows which revision of a runtime its unfinished TrainJobs run on.
func ofRuntime(ctx context.Context, o *kubectl.Options, argument string) error {
	kind, name, err := kubectl.RuntimeArgument(argument)
	if err != nil {
		return err
	}
	if err := o.Resolve(kubectl.OutputWide, kubectl.OutputJSON, kubectl.OutputYAML, kubectl.OutputName); err != nil {
		return err
	}
	if kind == trainer.TrainingRuntimeKind && o.AllNamespaces {
		return errors.New("a TrainingRuntime belongs to one namespace: name that instead of --all-namespaces")
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	notes := &kubectl.Notes{}
	defer notes.Print(o.ErrOut)
	runtime, err := find(ctx, o, reader, kind, name, notes)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	uses, err := gather(ctx, o, reader, runtime, notes)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	switch {
	case runtime.live.Gone && len(uses) == 0:
		return fmt.Errorf("there is no %s, and no unfinished TrainJob refers to it", runtime)
	case runtime.live.Gone:
		notes.Add(fmt.Sprintf("%s is gone: Trainer refuses every change of its TrainJobs until it is back", runtime))
	}
	if runtime.kind == trainer.ClusterTrainingRuntimeKind && !o.AllNamespaces {
		notes.Add(fmt.Sprintf("TrainJobs of namespace %s only; --all-namespaces shows those of all", o.Namespace))
	}
	sortUses(uses)
	if err := printUses(o, runtime, uses); err != nil {
		return err
	}
	for _, use := range uses {
		if use.Why != "" {
			notes.Add("it is not known what some TrainJobs run on: " + use.Why)
		}
	}
	return exit(exitOf(uses))
}

// find finds the runtime of this name, of either kind where none is given.
func find(ctx context.Context, o *kubectl.Options, reader *kubectl.Reader, kind, name string, notes *kubectl.Notes) (target, error) {
	look := func(kind string) target {
		runtime := target{kind: kind, key: types.NamespacedName{Name: name}}
		if kind == trainer.TrainingRuntimeKind {
			runtime.key.Namespace = o.Namespace
		}
		_, runtime.live = reader.LiveRuntime(ctx, kind, runtime.key, notes)
		return runtime
	}
	if kind != "" {
		return look(kind), nil
	}
	cluster := look(trainer.ClusterTrainingRuntimeKind)
	if o.AllNamespaces {
		return cluster, nil
	}
	namespaced := look(trainer.TrainingRuntimeKind)
	switch {
	case namespaced.live.Gone && cluster.live.Gone:
		if err := kubectl.WithoutTrainer(reader.List(ctx, &trainer.TrainJobList{}, client.InNamespace(o.Namespace), client.Limit(1))); errors.Is(err, kubectl.ErrNoTrainer) {
			return target{}, err
		}
		return target{}, fmt.Errorf("there is neither a TrainingRuntime %s in namespace %s nor a ClusterTrainingRuntime %s; of one that is gone, give TYPE/NAME", name, o.Namespace, name)
	case namespaced.live.Gone:
		return cluster, nil
	case cluster.live.Gone:
		return namespaced, nil
	case namespaced.live.Revision != "" && cluster.live.Revision == "":
		return namespaced, nil
	case namespaced.live.Revision == "" && cluster.live.Revision != "":
		return cluster, nil
	}
	return target{}, fmt.Errorf("there may be both a TrainingRuntime %s in namespace %s and a ClusterTrainingRuntime %s: give TYPE/NAME", name, o.Namespace, name)
}
